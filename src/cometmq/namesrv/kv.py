"""Key-value pairs by namespace that operators keep in a name server, in one file: RocketMQ's ``kvConfig.json``.

A change is on disk before it is visible and before its request is answered. Writing happens on the event loop: these
are rare operator actions on a small file, and doing one at a time keeps file and memory in step.
"""

from __future__ import annotations

import logging
import posixpath
from typing import Final

import msgspec

from cometmq.base.errors import CometError, ConfigError
from cometmq.base.ports import Files
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused

ORDER_TOPIC_NAMESPACE: Final = "ORDER_TOPIC_CONFIG"
ENTRIES_MAX: Final = 20_000
NAME_CHARS_MAX: Final = 1_024
VALUE_CHARS_MAX: Final = 65_536
FILE_BYTES_MAX: Final = 16 * 1024 * 1024

_log = logging.getLogger("cometmq.namesrv")

Table = dict[str, dict[str, str]]


class _FileContent(msgspec.Struct, rename="camel"):
    config_table: Table | None = None


class KVConfig:
    """Values by namespace and key. With an empty path they are kept in memory only."""

    def __init__(self, path: str, files: Files) -> None:
        self._path = path
        self._files = files
        self._table: Table = {}

    def load(self) -> None:
        """Read the file if there is one.

        Raises:
            ConfigError: it is not what this class writes. The file is left unchanged.
        """
        if not self._path or not self._files.exists(self._path):
            return
        try:
            data = self._files.read(self._path)
        except OSError as error:
            raise ConfigError(
                f"kvConfigPath {self._path} cannot be read: {error.strerror}"
            ) from None
        # RocketMQ may leave an empty file behind; it means an empty table there, too.
        if not data.strip():
            return
        try:
            self._table = msgspec.json.decode(data, type=_FileContent).config_table or {}
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ConfigError(
                f"kvConfigPath {self._path} is damaged or not a key-value file: {error}. Repair it,"
                " or move it away to start without key-values; nothing was overwritten"
            ) from None

    def get(self, namespace: str, key: str) -> str | None:
        return self._table.get(namespace, {}).get(key)

    def namespace(self, namespace: str) -> dict[str, str] | None:
        """All values of a namespace; None if nothing was ever put there, empty if everything was deleted."""
        return self._table.get(namespace)

    def put(self, namespace: str, key: str, value: str) -> None:
        """Raises Refused if a limit is reached or the file cannot be written; nothing has changed then."""
        if not namespace or not key or max(len(namespace), len(key)) > NAME_CHARS_MAX:
            raise _refused(f"namespace and key must have 1 to {NAME_CHARS_MAX} characters")
        if len(value) > VALUE_CHARS_MAX:
            raise _refused(f"a value must have at most {VALUE_CHARS_MAX} characters")
        entries = self._table.get(namespace, {})
        if key not in entries and sum(map(len, self._table.values())) >= ENTRIES_MAX:
            raise _refused(f"the name server holds {ENTRIES_MAX} key-values already")
        self._replace({**self._table, namespace: {**entries, key: value}})
        _log.info("key-value put namespace=%s key=%s", namespace, key)

    def delete(self, namespace: str, key: str) -> None:
        """Delete a value; the namespace stays, as in RocketMQ. Raises Refused if the file cannot be written."""
        if self.get(namespace, key) is None:
            return
        rest = {k: v for k, v in self._table[namespace].items() if k != key}
        self._replace({**self._table, namespace: rest})
        _log.info("key-value deleted namespace=%s key=%s", namespace, key)

    def _replace(self, table: Table) -> None:
        if self._path:
            data = encode_file(table)
            if len(data) > FILE_BYTES_MAX:
                raise _refused(f"key-values would take more than {FILE_BYTES_MAX} bytes")
            try:
                self._files.make_directory(posixpath.dirname(self._path) or ".")
                self._files.replace(self._path, data)
            except (OSError, CometError) as error:
                _log.error("key-values not saved path=%s cause=%s", self._path, error)
                raise _refused(f"{self._path} cannot be written: {error}") from error
        self._table = table


def encode_file(table: Table) -> bytes:
    """The file's content in fastjson's layout: a tab per level, no blank after the colon."""
    namespaces = ",\n".join(
        f"\t\t{_quote(namespace)}:{_block(entries)}" for namespace, entries in table.items()
    )
    tables = f"{{\n{namespaces}\n\t}}" if table else "{}"
    return f'{{\n\t"configTable":{tables}\n}}'.encode()


def _block(entries: dict[str, str]) -> str:
    if not entries:
        return "{}"
    lines = ",\n".join(f"\t\t\t{_quote(key)}:{_quote(value)}" for key, value in entries.items())
    return f"{{\n{lines}\n\t\t}}"


def _quote(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _refused(remark: str) -> Refused:
    return Refused(ResponseCode.SYSTEM_ERROR, remark)
