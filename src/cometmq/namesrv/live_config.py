"""The settings of a running name server: what they are now, and how they may change over the network.

An allow-list: rows marked ``live`` change, nothing else does. No path, no address, no port.
"""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Mapping

from cometmq.base.errors import CometError, ConfigError
from cometmq.base.ports import Files
from cometmq.base.settings import parse_properties, render_properties, rows
from cometmq.namesrv.config import NamesrvConfig, load_namesrv_config, texts
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused

_log = logging.getLogger("cometmq.namesrv")


class LiveConfig:
    """Parts that follow changes read ``current`` each time."""

    def __init__(self, config: NamesrvConfig, files: Files) -> None:
        self.current = config
        self._files = files

    def text(self) -> str:
        """All settings as ``key=value`` lines."""
        return render_properties(texts(self.current))

    def update(self, text: str) -> None:
        """Apply all of some ``key=value`` lines or none, and write them to ``configStorePath`` if there is one.

        Raises:
            Refused: a setting that takes a restart, an unknown key, a bad value, or a file that cannot be written.
        """
        try:
            values = parse_properties(text)
            _check_changeable(values)
            config, ignored = load_namesrv_config(values, base=self.current)
        except ConfigError as error:
            raise Refused(ResponseCode.SYSTEM_ERROR, str(error)) from None
        meant = {key: value.strip() for key, value in values.items() if key not in ignored}
        if meant:
            self._write(meant)
            self.current = config
            _log.info("config changed %s", " ".join(f"{k}={v}" for k, v in meant.items()))
        if ignored:
            _log.warning("settings without effect here keys=%s", ",".join(ignored))

    def _write(self, values: Mapping[str, str]) -> None:
        path = self.current.config_path
        if not path:
            return
        try:
            self._files.make_directory(posixpath.dirname(path) or ".")
            old = self._files.read(path).decode() if self._files.exists(path) else ""
            self._files.replace(path, edit_properties(old, values).encode())
        except (OSError, UnicodeDecodeError, CometError) as error:
            _log.error("config not saved path=%s cause=%s", path, error)
            raise Refused(
                ResponseCode.SYSTEM_ERROR, f"{path} cannot be changed: {error}"
            ) from error


def _check_changeable(values: Mapping[str, str]) -> None:
    fixed = {row.key for row in rows(NamesrvConfig) if not row.live} | {
        "configBlackList",
        "rocketmqHome",
    }
    for key in values:
        if key in fixed:
            raise Refused(
                ResponseCode.NO_PERMISSION,
                f"Can not update config in black list: {key} takes a restart with a changed file",
            )


def edit_properties(text: str, values: Mapping[str, str]) -> str:
    """The text of a properties file with ``values`` set; comments and all other lines stay as they are."""
    left = dict(values)
    out: list[str] = []
    group = ""
    for line in text.splitlines(keepends=True):
        group += line
        bare = group.rstrip("\r\n")
        if (len(bare) - len(bare.rstrip("\\"))) % 2 == 1 and bare.lstrip()[:1] not in ("#", "!"):
            continue
        key = next(iter(parse_properties(group)), None)
        if key in values:
            if key in left:
                out.append(f"{key}={left.pop(key)}\n")
        else:
            out.append(group)
        group = ""
    out.append(group)
    result = "".join(out)
    if left and result and not result.endswith("\n"):
        result += "\n"
    return result + "".join(f"{key}={value}\n" for key, value in left.items())
