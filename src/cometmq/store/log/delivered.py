"""For which delayed messages the log already holds a delivered copy.

A waiting message is in the schedule topic; its delivery is a second record, in its real topic. Both are in one log, so
the log itself can tell what was delivered, whatever else was lost in a crash: a delivered copy carries the offset of
the record it was made from. It is kept in the record's prepared-transaction offset, which has no meaning outside
transactions. It is written as the complement of the physical offset: always negative, so it cannot be confused with
the half message of a transaction, whose offset is 0 or more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from cometmq.model.messages.properties import REAL_TOPIC
from cometmq.model.messages.record import Record, readable_record
from cometmq.model.names import SCHEDULE_TOPIC
from cometmq.store.log.commit_log import CommitLog
from cometmq.store.log.log_scan import LogWalk

_SCHEDULE_TOPIC: Final = SCHEDULE_TOPIC.encode()
_REAL_TOPIC: Final = f"{REAL_TOPIC}\x01".encode()


class Delivered(NamedTuple):
    """A message of the schedule topic that has been delivered."""

    queue_id: int
    queue_offset: int


def delivery_mark(physical_offset: int) -> int:
    """The prepared-transaction offset of the copy of a message that waited at ``physical_offset``."""
    return ~physical_offset


def delivered_since(log: CommitLog, start: int) -> Iterator[Delivered]:
    """What the records from ``start`` on have delivered, in order. A record must begin at ``start``."""
    for waited in copied_since(log, start, SCHEDULE_TOPIC):
        yield Delivered(waited.queue_id, waited.queue_offset)


def copied_since(log: CommitLog, start: int, topic: str) -> Iterator[Record]:
    """The waiting records of a topic that have a copy among the records from ``start`` on."""
    first = max(start, log.start)
    for scanned in LogWalk(log.row, first, stop=log.end, check_crc=False, passes_damage=True):
        if _REAL_TOPIC not in scanned.properties or scanned.topic == _SCHEDULE_TOPIC:
            continue
        copy = _decoded(log, scanned.physical_offset)
        if copy is None or copy.prepared_transaction_offset >= 0:
            continue
        waited = _decoded(log, ~copy.prepared_transaction_offset)
        if waited is not None and waited.topic == topic:
            yield waited


def _decoded(log: CommitLog, physical_offset: int) -> Record | None:
    return readable_record(log.record(physical_offset))
