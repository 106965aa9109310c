"""The settings of a running broker: what they are now, and how they may change.

Over the network only rows marked ``live`` change; who the broker is, where it listens and where its files lie do not.
Parts that must follow a change read ``live.current`` each time or register with ``on_change``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import PurePath

from cometmq.base.errors import ConfigError
from cometmq.base.ports import Clock, Files
from cometmq.base.settings import load
from cometmq.broker.config import BrokerConfig, broker_rows, config_text, sort_keys
from cometmq.broker.config_file import with_changes
from cometmq.broker.known_keys import ALIASES
from cometmq.model.topic import DataVersion

log = logging.getLogger("cometmq.broker")

_PROTECTED = frozenset({"configBlackList", "rocketmqHome", "messageStorePlugIn"})

# Without meaning here, but exportConfigs of RocketMQ 4.9's mqadmin fails when a broker does not tell them.
_ALWAYS_TOLD = {"filterServerNums": "0", "useTLS": "false"}


class NotChangeable(ConfigError):
    """A setting that cannot change while the broker runs."""


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
        self.ignored = dict(ignored or {})
        self.version = DataVersion(timestamp=clock.wall_ms())
        self._clock = clock
        self._files = files
        self._path = path
        self._listeners: list[Callable[[BrokerConfig], None]] = []

    def on_change(self, listener: Callable[[BrokerConfig], None]) -> None:
        """Call ``listener`` with the new config after each change."""
        self._listeners.append(listener)

    def update(self, values: Mapping[str, str]) -> None:
        """Apply all of ``values`` or none, and write them to the config file if there is one.

        Raises:
            NotChangeable: a key that must not change while running.
            ConfigError: an unknown key or a value that does not fit.
        """
        _check_changeable(values)
        meant, ignored = sort_keys(values)
        config = load(BrokerConfig, meant, base=self.current)
        if not values:
            return
        self._write(values)
        self.current = config
        self.ignored.update({key: values[key] for key in ignored})
        self.version = self.version.next(self._clock.wall_ms())
        log.info("config changed keys=%s without_effect=%s", ",".join(meant), ",".join(ignored))
        for listener in self._listeners:
            listener(config)

    def text(self) -> str:
        """The config as GET_BROKER_CONFIG answers it."""
        return config_text(self.current, {**_ALWAYS_TOLD, **self.ignored})

    def _write(self, changed: Mapping[str, str]) -> None:
        if self._path is None:
            return
        text = self._files.read(self._path).decode() if self._files.exists(self._path) else ""
        self._files.replace(self._path, with_changes(text, changed).encode())

    def __repr__(self) -> str:
        name = PurePath(self._path).name if self._path else "no file"
        return f"<LiveConfig {name} version={self.version.counter}>"


def _check_changeable(values: Mapping[str, str]) -> None:
    known = broker_rows()
    for given in values:
        key = ALIASES.get(given, given)
        row = known.get(key)
        if row is not None and not row.live:
            raise NotChangeable(f"{given} cannot be changed while the broker runs")
        if row is None and ("path" in key.lower() or key in _PROTECTED):
            raise NotChangeable(f"{given} cannot be changed over the network")
