"""The settings of a running server: their current values, and how they may be changed over the network.

This is an allow-list: rows marked ``live`` change at once, rows marked ``next_start`` in the file. Nothing else can be
changed: no path, no address, no port.
"""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from cometmq.base.errors import CometError, ConfigError
from cometmq.base.ports import Files
from cometmq.base.properties_file import (
    decode_file,
    edit_properties,
    encode_file,
    render_properties,
)
from cometmq.base.setting_keys import NotChangeable, OtherKeys, sort_keys, split_changes
from cometmq.base.settings import Row, load, render, value_of

_PROTECTED: Final = frozenset({"configBlackList", "rocketmqHome"})


class ServerConfig(Protocol):
    @property
    def config_path(self) -> str:
        """The file that changes are written to; empty if there is none."""
        ...


C = TypeVar("C", bound=ServerConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema(Generic[C]):
    """Which settings a kind of server has. ``noun`` and ``file`` are for messages: name server, namesrv.conf."""

    config_class: type[C]
    rows: Mapping[str, Row]
    others: OtherKeys
    noun: str
    file: str
    logger: str

    def load(self, values: Mapping[str, str]) -> tuple[C, list[str]]:
        """The configuration, and RocketMQ's keys among ``values`` that have no effect here.

        Raises:
            ConfigError: a key that RocketMQ does not know either, one that asks for something that does not exist
                here, or a value that does not fit.
        """
        meant, ignored = sort_keys(self.rows, self.others, values)
        return load(self.config_class, meant), ignored

    def texts(self, config: C) -> dict[str, str]:
        """All settings but secrets, as strings by key."""
        return {
            key: render(value_of(config, row))
            for key, row in self.rows.items()
            if not row.is_secret
        }


class LiveSettings(Generic[C]):
    """Components that follow changes read ``current`` each time."""

    def __init__(self, schema: Schema[C], config: C, files: Files) -> None:
        self.current = config
        self._at_next_start = config
        self.on_change: list[Callable[[C], None]] = []
        """Called with the new settings after each change."""
        self._schema = schema
        self._files = files
        self._log = logging.getLogger(schema.logger)

    def text(self) -> str:
        """All settings as ``key=value`` lines: the file's values, which the next start will use."""
        return render_properties(self._schema.texts(self._at_next_start))

    def update(self, values: Mapping[str, str]) -> list[str]:
        """Apply all of ``values`` or none, and write them to ``configStorePath`` if there is one.

        Returns:
            The keys that take effect at the next start.

        Raises:
            NotChangeable: a setting that cannot be changed over the network, or no file to keep it in.
            ConfigError: an unknown key, a bad value, or a file that cannot be written.
        """
        schema = self._schema
        meant, ignored = sort_keys(schema.rows, schema.others, values)
        for key in _PROTECTED.intersection(ignored):
            raise NotChangeable(f"{key} cannot be changed over the network")
        now, later = split_changes(schema.rows, meant)
        if later and not self.current.config_path:
            raise NotChangeable(
                f"{', '.join(later)} takes effect at a start only, and this {schema.noun} has no file to keep it in: "
                f"start it with -c {schema.file}"
            )
        config = load(schema.config_class, now, base=self.current)
        at_next_start = load(schema.config_class, meant, base=self._at_next_start)
        if meant:
            self._write(meant)
            self.current, self._at_next_start = config, at_next_start
            for listener in self.on_change:
                listener(config)
            self._log.info(
                "config changed keys=%s at_next_start=%s", ",".join(now), ",".join(later)
            )
        if ignored:
            self._log.warning("settings without effect here keys=%s", ",".join(ignored))
        return list(later)

    def _write(self, values: Mapping[str, str]) -> None:
        path = self.current.config_path
        if not path:
            return
        try:
            self._files.make_directory(posixpath.dirname(path) or ".")
            old = self._files.read(path) if self._files.exists(path) else b""
            self._files.replace(path, encode_file(edit_properties(decode_file(old), values)))
        except (OSError, CometError) as error:
            self._log.error("config not saved path=%s cause=%s", path, error)
            raise ConfigError(f"{path} cannot be changed: {error}") from error
