"""What the log tells about sinks: which of their rows it holds.

Copies of a message carry its properties, too: the delivered one of a delayed message, and those that go to a retry
topic or to the dead letters. They are no rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from cometmq.model.names import DLQ_PREFIX, RETRY_PREFIX, SCHEDULE_TOPIC, TIMER_TOPIC
from cometmq.model.properties import REAL_TOPIC, UNIQ_KEY, property_of
from cometmq.model.sink import SinkMark, sink_mark_in
from cometmq.store.commit_log import CommitLog
from cometmq.store.log_scan import LogWalk, Scanned

KEY_BYTES: Final = 16
_WAITING_TOPICS: Final = (SCHEDULE_TOPIC.encode(), TIMER_TOPIC.encode())
_COPY_TOPICS: Final = (RETRY_PREFIX.encode(), DLQ_PREFIX.encode())
_REAL_TOPIC: Final = f"{REAL_TOPIC}\x01".encode()
_REAL_COPY_TOPICS: Final = tuple(_REAL_TOPIC + prefix for prefix in _COPY_TOPICS)


class SinkRows(msgspec.Struct):
    """``rows`` is 24 bytes each: physical offset and unique key."""

    rows: bytes
    count: int
    next_offset: int


def sink_marks_since(log: CommitLog, start: int) -> Iterator[tuple[SinkMark, int]]:
    """Marks of rows, and where these are, of the records from ``start`` on, where one must begin."""
    for scanned in LogWalk(log.row, max(start, log.start), stop=log.end, check_crc=False):
        mark = sink_mark_in(scanned.properties)
        if mark is not None and not _is_copy(scanned):
            yield mark, scanned.physical_offset


def sink_rows(
    log: CommitLog, mark: SinkMark, start: int, stop: int, bytes_max: int, *, of_others: bool
) -> SinkRows:
    """The rows that carry a mark, between two offsets, as far as ``bytes_max`` bytes of the log go.

    Args:
        of_others: those of the batch that other partitions wrote instead.
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
    """The unique key as bytes; zeros for one that no sink made."""
    try:
        key = bytes.fromhex(property_of(properties.decode(), UNIQ_KEY) or "")
    except (UnicodeDecodeError, ValueError):
        key = b""
    return key if len(key) == KEY_BYTES else bytes(KEY_BYTES)
