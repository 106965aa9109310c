"""Which transactions are open after a start: the half messages without a mark.

Both queues are read from the offsets that ``CID_RMQ_SYS_TRANS`` has in the table of consumer offsets, as RocketMQ keeps
them. So the work is that of the transactions since the oldest open one, not that of all there ever were.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from cometmq.broker.transaction.forms import (
    QUEUE_ID,
    check_count_of,
    followed_offset,
    follows,
    identity_of,
    marked_offsets,
)
from cometmq.broker.transaction.open_table import OpenHalf, OpenTable
from cometmq.broker.transaction.verdict import immunity_ms
from cometmq.model.names import HALF_OP_TOPIC, HALF_TOPIC
from cometmq.model.properties import CHECK_IMMUNITY_SECONDS
from cometmq.model.record import BadRecord, Record, decode_record
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.offsets import OffsetTable

log = logging.getLogger("cometmq.broker")

TRANSACTION_GROUP: Final = "CID_RMQ_SYS_TRANS"
_READ_COUNT: Final = 1000


def open_transactions(store: MessageStore, offsets: OffsetTable) -> OpenTable:
    half_start = _start(store, offsets, HALF_TOPIC)
    marks_start = _start(store, offsets, HALF_OP_TOPIC)
    marked = _marked(store, marks_start, half_start)
    table = OpenTable()
    for queue_offset, physical_offset in _entries(store, HALF_TOPIC, half_start):
        if queue_offset in marked:
            continue
        half = record_of(store, physical_offset, HALF_TOPIC)
        if half is None or half.queue_offset != queue_offset:
            log.error("half message lost queue_offset=%d", queue_offset)
            continue
        identity = identity_of(half)
        if identity in marked and half.prepared_transaction_offset >= 0:
            # RocketMQ's copy of a message that its sender ended by the place of the first one. A copy of ours comes
            # with the mark of what it replaces, which therefore says nothing about it.
            continue
        table.add(open_half(half, identity, marks_start))
    return table


def open_half(half: Record, identity: int, marks_before: int) -> OpenHalf:
    return OpenHalf(
        identity=identity,
        queue_offset=half.queue_offset,
        physical_offset=half.physical_offset,
        born_ms=half.born_timestamp,
        immunity_ms=immunity_ms(half.properties.get(CHECK_IMMUNITY_SECONDS)),
        check_count=check_count_of(half),
        marks_before=marks_before,
    )


def unmarked_by_crash(store: MessageStore) -> Record | None:
    """The half message whose follower is the last record of the log, and whose mark a crash may have cut off."""
    last = record_of(store, store.last_record)
    place = None if last is None else followed_offset(last)
    half = None if place is None else record_of(store, place, HALF_TOPIC)
    return half if half is not None and last is not None and follows(last, half) else None


def record_of(store: MessageStore, physical_offset: int, topic: str | None = None) -> Record | None:
    """The record at an offset of the log; None when there is none, or none of that topic."""
    if physical_offset < 0 or (view := store.record_at(physical_offset)) is None:
        return None
    try:
        record = decode_record(view, check_crc=False)
    except BadRecord:
        return None
    return record if topic is None or record.topic == topic else None


def _start(store: MessageStore, offsets: OffsetTable, topic: str) -> int:
    saved = offsets.query(TRANSACTION_GROUP, topic, QUEUE_ID)
    first = store.min_offset(topic, QUEUE_ID)
    return min(max(saved, first), store.max_offset(topic, QUEUE_ID))


def _marked(store: MessageStore, marks_start: int, half_start: int) -> set[int]:
    marked: set[int] = set()
    for queue_offset, physical_offset in _entries(store, HALF_OP_TOPIC, marks_start):
        mark = record_of(store, physical_offset, HALF_OP_TOPIC)
        try:
            found = [] if mark is None else marked_offsets(mark.body)
        except ValueError as error:
            log.error(
                "transaction mark not understood queue_offset=%d reason=%s", queue_offset, error
            )
            continue
        marked.update(offset for offset in found if offset >= half_start)
    return marked


def _entries(store: MessageStore, topic: str, offset: int) -> Iterator[tuple[int, int]]:
    """Queue offset and physical offset of every entry from an offset on."""
    end = store.max_offset(topic, QUEUE_ID)
    while offset < end:
        entries = store.entries(topic, QUEUE_ID, offset, min(_READ_COUNT, end - offset))
        for physical_offset, _, _ in entries:
            yield offset, physical_offset
            offset += 1
        if not entries:
            # A file of the queue is missing: go on where the store says.
            following = store.get(topic, QUEUE_ID, offset, 1).next_offset
            if following <= offset:
                return
            offset = following
