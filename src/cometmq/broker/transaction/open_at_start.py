"""Which transactions are open after a start: those of which no half message was decided about.

Both queues are read from the offsets that ``CID_RMQ_SYS_TRANS`` has in the table of consumer offsets, as RocketMQ keeps
them. So the work is that of the transactions since the oldest open one, not that of all there ever were.

A slave that becomes the master has the log up to some byte, and a table that was copied at another time. An older table
makes the start read more than it needs. A newer one passes over decisions that this log never got, hence nobody would
ask about those transactions again: then the queues are read from their beginnings. ``SEEN_GROUP`` tells which it is.

A mark says that a half message is done with: decided, or replaced by a copy of ours. RocketMQ's copies come without
a mark of what they replace, and what it decides about any of them it decides about the transaction.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from cometmq.broker.transaction.open_table import OpenHalf, OpenTable
from cometmq.broker.transaction.transaction_forms import (
    QUEUE_ID,
    check_count_of,
    followed_offset,
    follows,
    identity_of,
    marked_offsets,
)
from cometmq.broker.transaction.verdict import immunity_ms
from cometmq.model.messages.properties import (
    CHECK_IMMUNITY_SECONDS,
    PRODUCER_GROUP,
    REAL_TOPIC,
)
from cometmq.model.messages.record import Record
from cometmq.model.names import HALF_OP_TOPIC, HALF_TOPIC
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.consumer_offsets import OffsetTable

log = logging.getLogger("cometmq.broker")

TRANSACTION_GROUP: Final = "CID_RMQ_SYS_TRANS"
SEEN_GROUP: Final = "CID_RMQ_SYS_TRANS_SEEN"
"""Ours: where the log ended when the positions were noted, as the offset of the half queue."""
_READ_COUNT: Final = 1000


class Positions(NamedTuple):
    """Where a start begins to read."""

    half: int
    marks: int


def saved_positions(offsets: OffsetTable) -> Positions:
    """-1 where there is none."""
    return Positions(
        offsets.query(TRANSACTION_GROUP, HALF_TOPIC, QUEUE_ID),
        offsets.query(TRANSACTION_GROUP, HALF_OP_TOPIC, QUEUE_ID),
    )


def save_positions(offsets: OffsetTable, positions: Positions, log_end: int) -> None:
    """Note positions that pass over nothing but what is decided below ``log_end``."""
    if positions != saved_positions(offsets):
        offsets.commit(TRANSACTION_GROUP, HALF_TOPIC, QUEUE_ID, positions.half)
        offsets.commit(TRANSACTION_GROUP, HALF_OP_TOPIC, QUEUE_ID, positions.marks)
        offsets.commit(SEEN_GROUP, HALF_TOPIC, QUEUE_ID, log_end)


def are_ahead(store: MessageStore, offsets: OffsetTable) -> bool:
    """Whether the saved positions belong to a log that went on where this one ends."""
    saved = saved_positions(offsets)
    return (
        offsets.query(SEEN_GROUP, HALF_TOPIC, QUEUE_ID) > store.max_physical
        or saved.half > store.max_offset(HALF_TOPIC, QUEUE_ID)
        or saved.marks > store.max_offset(HALF_OP_TOPIC, QUEUE_ID)
    )


def open_transactions(store: MessageStore, offsets: OffsetTable) -> OpenTable:
    saved = Positions(0, 0) if are_ahead(store, offsets) else saved_positions(offsets)
    half_start = _within(store, HALF_TOPIC, saved.half)
    marks_start = _within(store, HALF_OP_TOPIC, saved.marks)
    marked = _marked(store, marks_start, half_start)
    replaced: Counter[int] = Counter()
    copies: list[tuple[int, int]] = []
    newest: dict[int, OpenHalf] = {}
    for queue_offset, physical_offset in _entries(store, HALF_TOPIC, half_start):
        half = store.decoded_at(physical_offset, HALF_TOPIC)
        if half is None or half.queue_offset != queue_offset:
            if queue_offset not in marked:
                log.error("half message lost queue_offset=%d", queue_offset)
            continue
        identity = identity_of(half)
        if identity != queue_offset:
            copies.append((identity, queue_offset))
            if (before := _replaced_by(store, half)) is not None:
                replaced[before.queue_offset] += 1
        elif queue_offset in marked:
            continue
        newest[identity] = open_half(half, identity, marks_start)
    # A half message that was replaced has one mark for that. RocketMQ may have added one that decides.
    decided = {offset for offset, count in marked.items() if count > replaced[offset]}
    ended = decided | {identity for identity, queue_offset in copies if queue_offset in decided}
    table = OpenTable()
    for still_open in sorted(newest.values(), key=lambda one: one.queue_offset):
        if still_open.identity not in ended:
            table.add(still_open)
    return table


def open_half(half: Record, identity: int, marks_before: int) -> OpenHalf:
    return OpenHalf(
        identity=identity,
        queue_offset=half.queue_offset,
        physical_offset=half.physical_offset,
        born_ms=half.born_timestamp,
        immunity_ms=immunity_ms(half.properties.get(CHECK_IMMUNITY_SECONDS)),
        check_count=check_count_of(half),
        group=sys.intern(half.properties.get(PRODUCER_GROUP, "")),
        marks_before=marks_before,
        topic=sys.intern(half.properties.get(REAL_TOPIC, "")),
    )


def unmarked_by_crash(store: MessageStore) -> Record | None:
    """The half message whose follower is the last record of the log, and whose mark a crash may have cut off."""
    last = store.decoded_at(store.last_record)
    return None if last is None else _replaced_by(store, last)


def _replaced_by(store: MessageStore, record: Record) -> Record | None:
    """The half message that a record follows from, and which is done with for that."""
    place = followed_offset(record)
    half = None if place is None else store.decoded_at(place, HALF_TOPIC)
    return half if half is not None and follows(record, half) else None


def _within(store: MessageStore, topic: str, saved: int) -> int:
    first = store.min_offset(topic, QUEUE_ID)
    return min(max(saved, first), store.max_offset(topic, QUEUE_ID))


def _marked(store: MessageStore, marks_start: int, half_start: int) -> Counter[int]:
    """How often each half message is marked, by its queue offset."""
    marked: Counter[int] = Counter()
    for queue_offset, physical_offset in _entries(store, HALF_OP_TOPIC, marks_start):
        mark = store.decoded_at(physical_offset, HALF_OP_TOPIC)
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
