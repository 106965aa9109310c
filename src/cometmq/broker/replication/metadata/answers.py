"""What a master's answers say. Pure functions, for a worker thread: the bodies are as large as the master's tables."""

from __future__ import annotations

import re
from typing import Any, Final, TypeVar

import msgspec

from cometmq.base.errors import RemoteProtocolError
from cometmq.broker.replication.metadata.paged_copy import Page
from cometmq.model.ids import Int32, Int64
from cometmq.model.topic import DataVersion
from cometmq.protocol import fastjson
from cometmq.protocol.bodies.kv import KVTable
from cometmq.protocol.json_body import JsonBody
from cometmq.store.meta.config_table import ConfigTable, TableEntry

T = TypeVar("T", bound=msgspec.Struct)

NAME_CHARACTERS_MAX: Final = 255
_UNSAFE = re.compile(r"[/\\\x00-\x1f]")

Offsets = dict[str, dict[Int32, Int64]]


class _OffsetBody(JsonBody):
    """Reply to 43."""

    LIMITS = fastjson.TABLE

    offset_table: Offsets = msgspec.field(default_factory=dict)


def decode_page(
    table: ConfigTable[T], body: bytes, total: int | None
) -> tuple[Page[TableEntry[T]], dict[str, Any]]:
    """A part of a config table, and what else the body holds. Raises RemoteProtocolError."""
    content = fastjson.loads(body, limits=fastjson.TABLE)
    if not isinstance(content, dict):
        raise RemoteProtocolError("expected a JSON object")
    rows = content.pop(table.TABLE_KEY, None)
    version = fastjson.convert(content.pop("dataVersion", None), DataVersion)
    if not isinstance(rows, dict):
        raise RemoteProtocolError(f"expected a table {table.TABLE_KEY}")
    entries = {name: _entry(table, name, fields) for name, fields in rows.items()}
    return Page(version, entries, total), content


def decode_offsets(body: bytes) -> Offsets:
    """Raises RemoteProtocolError."""
    return _OffsetBody.decode(body).offset_table


def log_end(body: bytes) -> int:
    """Where the master's log ends, of its runtime figures. Raises RemoteProtocolError."""
    text = KVTable.decode(body).table.get("commitLogMaxOffset", "")
    if not text.isdecimal() or len(text) > 19:
        raise RemoteProtocolError(f"expected the end of the log, got {text[:40]!r}")
    return int(text)


def _entry(table: ConfigTable[T], name: str, fields: object) -> TableEntry[T]:
    if not isinstance(fields, dict):
        raise RemoteProtocolError(f"expected entry {name!r} to be an object")
    # It may become the name of a directory. Brokers and clusters have topics named after them, with dots.
    if not name or len(name) > NAME_CHARACTERS_MAX or name in (".", "..") or _UNSAFE.search(name):
        raise RemoteProtocolError(f"{name[:80]!r} cannot be the name of a topic or group")
    try:
        return table.entry(name, fields)
    except msgspec.ValidationError as error:
        raise RemoteProtocolError(f"entry {name!r}: {error}") from None
