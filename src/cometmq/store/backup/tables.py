"""The small files of a restored store: those of one backup, made to fit the log."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from cometmq.base.errors import CorruptFile
from cometmq.base.ports import Clock, Files
from cometmq.model.messages.checksum import crc32
from cometmq.protocol import fastjson
from cometmq.store.backup.backups import Backups
from cometmq.store.backup.manifest import Manifest
from cometmq.store.backup.point_in_time import Chosen
from cometmq.store.backup.source import DELETED_TOPICS
from cometmq.store.meta.delay_offsets import DelayOffsetTable
from cometmq.store.meta.json_file import pretty, table_in

_NAMED: Final = {
    "config/topics.json": "topicConfigTable",
    "config/subscriptionGroup.json": "subscriptionGroupTable",
}
"""Tables of names. Those that came after the older tables were copied are taken from the newer ones."""
_TIMERS_OF_ROCKETMQ: Final = "config/timercheck"
"""Says what was delivered. Without it, the log does."""


def restored_tables(
    backups: Backups, chosen: Chosen, deleted: dict[str, int], log_end: int
) -> dict[str, bytes]:
    """Contents by name. Raises CorruptFile."""
    tables = _read(backups, chosen.tables_of)
    if chosen.has_older_tables:
        newer = _read(backups, chosen.log_of)
        for name, key in _NAMED.items():
            if name in tables and name in newer:
                tables[name] = _with_missing(tables[name], newer[name], key)
    if chosen.tables_of.log_end > log_end:
        tables.pop(_TIMERS_OF_ROCKETMQ, None)
    tables.pop(DELETED_TOPICS, None)
    if deleted:
        tables[DELETED_TOPICS] = msgspec.json.encode(deleted)
    return tables


def fit_delay_offsets(directory: str, files: Files, clock: Clock, log_end: int) -> None:
    """Delay levels that were delivered further than the log goes begin anew: what the log holds is not repeated."""
    table = DelayOffsetTable(directory, files, clock)
    table.load()
    if table.log_offset > log_end:
        table.saving({}, 0)()


def _read(backups: Backups, manifest: Manifest) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for table in manifest.tables:
        path = f"{backups.tables_of(manifest.name)}/{table.name}"
        try:
            content = backups.files.read(path)
        except FileNotFoundError:
            raise CorruptFile(path, "missing", "Restore another backup") from None
        if crc32(content) != table.crc:
            raise CorruptFile(path, "not what was backed up", "Restore another backup")
        found[table.name] = content
    return found


def _with_missing(content: bytes, newer: bytes, key: str) -> bytes:
    document: dict[str, Any] = fastjson.loads(content)
    entries = {**table_in(fastjson.loads(newer), key), **table_in(document, key)}
    return pretty({**document, key: entries}).encode()
