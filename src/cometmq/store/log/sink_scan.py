"""What the log knows about sinks: which of their rows it holds.

Copies of a message have its properties, too: the delivered copy of a delayed message, and copies in a retry topic or
in the dead letters. They are not rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from cometmq.model.messages.properties import REAL_TOPIC, UNIQ_KEY, property_of
from cometmq.model.messages.sink_mark import SinkMark, sink_mark_in
from cometmq.model.names import DLQ_PREFIX, RETRY_PREFIX, SCHEDULE_TOPIC, TIMER_TOPIC
from cometmq.store.files.record_scan import Scanned
from cometmq.store.log.commit_log import CommitLog
from cometmq.store.log.log_scan import LogWalk

KEY_BYTES: Final = 16
_WAITING_TOPICS: Final = (SCHEDULE_TOPIC.encode(), TIMER_TOPIC.encode())
_COPY_TOPICS: Final = (RETRY_PREFIX.encode(), DLQ_PREFIX.encode())
_REAL_TOPIC: Final = f"{REAL_TOPIC}\x01".encode()
_REAL_COPY_TOPICS: Final = tuple(_REAL_TOPIC + prefix for prefix in _COPY_TOPICS)


class SinkRows(msgspec.Struct):
    """``rows`` has 24 bytes per row: physical offset and unique key."""

    rows: bytes
    count: int
    next_offset: int


def sink_marks_since(log: CommitLog, start: int) -> Iterator[tuple[SinkMark, int]]:
    """The marks and offsets of rows among the records from ``start`` on, where a record must begin."""
    first = max(start, log.start)
    for scanned in LogWalk(log.row, first, stop=log.end, check_crc=False, passes_damage=True):
        mark = sink_mark_in(scanned.properties)
        if mark is not None and not _is_copy(scanned):
            yield mark, scanned.physical_offset


def sink_rows(
    log: CommitLog, mark: SinkMark, start: int, stop: int, bytes_max: int, *, of_others: bool
) -> SinkRows:
    """The rows with a mark between two offsets, limited to ``bytes_max`` bytes of the log.

    Args:
        of_others: instead, the rows of the batch that other partitions wrote.
    """
    first = max(start, log.start)
    stop = min(stop, log.end)
    rows = bytearray()
    count = 0
    walk = LogWalk(log.row, first, stop=min(stop, first + bytes_max), check_crc=False)
    for scanned in walk:
        found = sink_mark_in(scanned.properties)
        if found is None or found.sink != mark.sink or found.batch != mark.batch:
            continue
        if (found.partition != mark.partition) == of_others and not _is_copy(scanned):
            rows += scanned.physical_offset.to_bytes(8, "big") + _key(scanned.properties)
            count += 1
    return SinkRows(bytes(rows), count, max(walk.position, first))


def _is_copy(scanned: Scanned) -> bool:
    properties = scanned.properties
    if scanned.topic.startswith(_COPY_TOPICS):
        return True
    if _REAL_TOPIC not in properties:
        return False
    if scanned.topic not in _WAITING_TOPICS:
        return True
    return any(real in properties for real in _REAL_COPY_TOPICS)


def _key(properties: bytes) -> bytes:
    """The unique key as bytes; zeros if it was not created by a sink."""
    try:
        key = bytes.fromhex(property_of(properties.decode(), UNIQ_KEY) or "")
    except (UnicodeDecodeError, ValueError):
        key = b""
    return key if len(key) == KEY_BYTES else bytes(KEY_BYTES)
