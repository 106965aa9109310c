"""The settings of a running name server: their current values, and how they may be changed over the network.

This is an allow-list: rows marked ``live`` change at once, rows marked ``next_start`` in the file. Nothing else can be
changed: no path, no address, no port.
"""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Mapping

from cometmq.base.errors import CometError, ConfigError
from cometmq.base.ports import Files
from cometmq.base.properties_file import (
    decode_file,
    edit_properties,
    encode_file,
    render_properties,
)
from cometmq.base.setting_keys import NotChangeable, sort_keys, split_changes
from cometmq.base.settings import load
from cometmq.namesrv.known_keys import OTHER_KEYS
from cometmq.namesrv.namesrv_config import NamesrvConfig, namesrv_rows, texts

_PROTECTED = frozenset({"configBlackList", "rocketmqHome"})

_log = logging.getLogger("cometmq.namesrv")


class LiveConfig:
    """Components that follow changes read ``current`` each time."""

    def __init__(self, config: NamesrvConfig, files: Files) -> None:
        self.current = config
        self._at_next_start = config
        self._files = files

    def text(self) -> str:
        """All settings as ``key=value`` lines: the file's values, which the next start will use."""
        return render_properties(texts(self._at_next_start))

    def update(self, values: Mapping[str, str]) -> list[str]:
        """Apply all of ``values`` or none, and write them to ``configStorePath`` if there is one.

        Returns:
            The keys that take effect at the next start.

        Raises:
            NotChangeable: a setting that cannot be changed over the network, or no file to keep it in.
            ConfigError: an unknown key, a bad value, or a file that cannot be written.
        """
        meant, ignored = sort_keys(namesrv_rows(), OTHER_KEYS, values)
        for key in _PROTECTED.intersection(ignored):
            raise NotChangeable(f"{key} cannot be changed over the network")
        now, later = split_changes(namesrv_rows(), meant)
        if later and not self.current.config_path:
            raise NotChangeable(
                f"{', '.join(later)} takes effect at a start only, and this name server has no file to keep it in: "
                "start it with -c namesrv.conf"
            )
        config = load(NamesrvConfig, now, base=self.current)
        at_next_start = load(NamesrvConfig, meant, base=self._at_next_start)
        if meant:
            self._write(meant)
            self.current, self._at_next_start = config, at_next_start
            _log.info("config changed keys=%s at_next_start=%s", ",".join(now), ",".join(later))
        if ignored:
            _log.warning("settings without effect here keys=%s", ",".join(ignored))
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
            _log.error("config not saved path=%s cause=%s", path, error)
            raise ConfigError(f"{path} cannot be changed: {error}") from error
