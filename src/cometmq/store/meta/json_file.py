"""A table in one JSON file of the ``config`` directory, in the format of RocketMQ's brokers.

The previous content is kept in ``<file>.bak``. A save replaces each of the two atomically, so that at any moment at
least one of them is complete; a load uses the first that can be read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from cometmq.base.errors import CorruptFile, ProtocolError
from cometmq.base.ports import Files
from cometmq.protocol import fastjson

logger = logging.getLogger("cometmq.store")

T = TypeVar("T")


class BadContent(Exception):
    """JSON that is not the expected table. A reader passed to ``JsonFile.load`` may raise it."""


class JsonFile:
    def __init__(self, path: str, files: Files) -> None:
        self.path = path
        self._files = files
        self._is_main_good = False

    def load(self, read: Callable[[dict[str, Any]], T]) -> T | None:
        """What ``read`` returns for the content, or None if there is neither a file nor a backup.

        Raises:
            CorruptFile: neither can be read; nothing was changed.
        """
        faults: list[str] = []
        for path in (self.path, self.path + ".bak"):
            try:
                value = read(_parse(self._files.read(path)))
            except FileNotFoundError:
                continue
            except (BadContent, ProtocolError, msgspec.ValidationError) as error:
                faults.append(f"{path}: {error}")
                continue
            self._is_main_good = path == self.path
            if not self._is_main_good:
                fault = faults[0] if faults else f"{self.path}: missing"
                logger.warning("table read from backup path=%s fault=%r", path, fault)
            return value
        if not faults:
            return None
        raise CorruptFile(
            self.path,
            "cannot be read, nor is there a good backup (" + "; ".join(faults) + ")",
            "Repair it by hand, or move it and its .bak away to start with an empty table.",
        )

    def save(self, data: bytes) -> None:
        """Make ``data`` the content, durably; the previous content becomes the backup.

        Raises:
            DiskFull: the old content is still there.
        """
        # A broken file must not replace the good backup that was read instead of it.
        if self._is_main_good and self._files.exists(self.path):
            self._files.replace(self.path + ".bak", self._files.read(self.path))
        self._files.replace(self.path, data)
        self._is_main_good = True


def _parse(data: bytes) -> dict[str, Any]:
    if not data.strip():
        raise BadContent("empty")
    value = fastjson.loads(data)
    if not isinstance(value, dict):
        raise BadContent(f"expected a JSON object, found a {type(value).__name__}")
    return value


def table_in(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The object under ``key``; empty if missing, because Java does not write a table that was never used."""
    table = content.get(key)
    if table is None:
        return {}
    if not isinstance(table, dict):
        raise BadContent(f"expected {key!r} to be an object, found a {type(table).__name__}")
    return table


def pretty(value: Any, depth: int = 0) -> str:
    """fastjson's pretty form: a tab per level, no blank after a colon, maps with integer keys on one line."""
    if isinstance(value, Mapping):
        if not value:
            return "{}"
        end = "\n" + "\t" * depth + "}"
        if all(isinstance(key, int) for key in value):
            pairs = [f"{key}:{pretty(item, depth + 1)}" for key, item in value.items()]
            return "{" + ",".join(pairs) + end
        pairs = [f"{_scalar(key)}:{pretty(item, depth + 1)}" for key, item in value.items()]
        return "{" + _lines(pairs, depth) + end
    if isinstance(value, list | tuple):
        if not value:
            return "[]"
        return (
            "["
            + _lines([pretty(item, depth + 1) for item in value], depth)
            + ("\n" + "\t" * depth + "]")
        )
    return _scalar(value)


def _lines(parts: list[str], depth: int) -> str:
    indent = "\n" + "\t" * (depth + 1)
    return indent + ("," + indent).join(parts)


def _scalar(value: Any) -> str:
    return msgspec.json.encode(value).decode()
