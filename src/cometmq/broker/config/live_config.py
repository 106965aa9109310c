"""The settings of a running broker: what they are now, and how they may change.

Over the network rows marked ``live`` change at once and rows marked ``next_start`` in the file, for the next start; who
the broker is, where it listens and where its files lie do not change. Parts that must follow a change read
``live.current`` each time or register with ``on_change``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from cometmq.base.errors import CometError, ConfigError
from cometmq.base.ports import Clock, Files
from cometmq.base.properties_file import decode_file, edit_properties, encode_file
from cometmq.base.setting_keys import NotChangeable, sort_keys, split_changes
from cometmq.base.settings import load
from cometmq.broker.config.broker_config import (
    ROLE_KEYS,
    BrokerConfig,
    broker_rows,
    config_text,
)
from cometmq.broker.config.known_keys import OTHER_KEYS
from cometmq.model.topic import DataVersion

log = logging.getLogger("cometmq.broker")

_PROTECTED = frozenset({"configBlackList", "messageStorePlugIn"})

# Without meaning here, but exportConfigs of RocketMQ 4.9's mqadmin fails when a broker does not tell them.
_ALWAYS_TOLD = {"filterServerNums": "0", "useTLS": "false"}


class LiveConfig:
    """Holds the current config; used from the event loop's thread only.

    Args:
        ignored: settings of RocketMQ without effect here, as given; shown again when asked for the config.
        path: the file the config came from; accepted changes are written into it. None: they last until the stop.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock,
        files: Files,
        path: str | None = None,
        ignored: Mapping[str, str] | None = None,
    ) -> None:
        self.current = config
        self._at_next_start = config
        self.ignored = dict(ignored or {})
        self.version = DataVersion(timestamp=clock.wall_ms())
        self._clock = clock
        self._files = files
        self._path = path
        self._listeners: list[Callable[[BrokerConfig], None]] = []

    def on_change(self, listener: Callable[[BrokerConfig], None]) -> None:
        """Call ``listener`` with the new config after each change."""
        self._listeners.append(listener)

    def update(self, values: Mapping[str, str]) -> list[str]:
        """Apply all of ``values`` or none, and write them to the config file if there is one.

        Returns:
            The keys that take effect at the next start.

        Raises:
            NotChangeable: a key that must not change over the network, or that there is no file to keep it in.
            ConfigError: an unknown key, a value that does not fit, or protection that is not there.
        """
        meant, ignored = sort_keys(broker_rows(), OTHER_KEYS, values)
        _check_ignored(ignored)
        if self.current.controller.is_enabled and any(key in meant for key in ROLE_KEYS):
            raise NotChangeable(
                "the controller decides the role of this broker: elect another master there (mqadmin electMaster)"
            )
        now, later = split_changes(broker_rows(), meant)
        if later and self._path is None:
            raise NotChangeable(
                f"{', '.join(later)} takes effect at a start only, and this broker has no file to keep it in: "
                "start it with -c broker.conf"
            )
        config = load(BrokerConfig, now, base=self.current)
        at_next_start = load(BrokerConfig, meant, base=self._at_next_start)
        if not values:
            return []
        self._write(values)
        self.current, self._at_next_start = config, at_next_start
        self.ignored.update({key: values[key] for key in ignored})
        self.version = self.version.next(self._clock.wall_ms())
        log.info(
            "config changed keys=%s at_next_start=%s without_effect=%s",
            ",".join(now),
            ",".join(later),
            ",".join(ignored),
        )
        for listener in self._listeners:
            listener(config)
        return list(later)

    def take_role(self, role: str, slave_id: int) -> None:
        """Be what a controller says, until the stop; the file stays as it is."""
        identity = self.current.identity
        if (identity.role, identity.slave_id) == (role, slave_id):
            return
        identity = replace(identity, role=role, slave_id=slave_id)
        self.current = replace(self.current, identity=identity)
        self._at_next_start = replace(self._at_next_start, identity=identity)
        for key in ROLE_KEYS:
            # What the file says is not so.
            self.ignored.pop(key, None)
        for listener in self._listeners:
            listener(self.current)

    def text(self) -> str:
        """The config as GET_BROKER_CONFIG answers it: what the file says, that is what the next start will use."""
        return config_text(self._at_next_start, {**_ALWAYS_TOLD, **self.ignored})

    def _write(self, changed: Mapping[str, str]) -> None:
        if self._path is None:
            return
        try:
            old = self._files.read(self._path) if self._files.exists(self._path) else b""
            self._files.replace(self._path, encode_file(edit_properties(decode_file(old), changed)))
        except (OSError, CometError) as error:
            log.error("config not saved path=%s cause=%s", self._path, error)
            raise ConfigError(f"{self._path} cannot be changed: {error}") from error

    def __repr__(self) -> str:
        name = PurePath(self._path).name if self._path else "no file"
        return f"<LiveConfig {name} version={self.version.counter}>"


def _check_ignored(keys: Sequence[str]) -> None:
    for key in keys:
        if "path" in key.lower() or key in _PROTECTED:
            raise NotChangeable(f"{key} cannot be changed over the network")
