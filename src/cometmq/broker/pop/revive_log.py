"""The revive topic: check-points and acknowledgements on the disk.

Whatever is decided about a popped message is a record here, so that after a crash the records tell what was decided.
RocketMQ puts the same records, but through its timer, and they arrive when the check-point's time is over; ours are
here at once. Either is read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from cometmq.base.ports import Clock
from cometmq.broker.pop.check_points import (
    ACK_TAG,
    BATCH_ACK_TAG,
    CK_TAG,
    Ack,
    CheckPoint,
    decode_ack,
    decode_check_point,
    encode_ack,
    encode_check_point,
)
from cometmq.broker.pop.pop_topics import REVIVE_QUEUE_COUNT
from cometmq.model.java_hash import java_hash
from cometmq.model.messages.properties import TAGS, TIMER_DELIVER_MS, WAIT, render_properties
from cometmq.model.messages.record import Record
from cometmq.model.messages.timer_properties import TIMER_DEQUEUE_MS
from cometmq.store.log.new_messages import NewMessage, NewMessages, Stored
from cometmq.store.message_store import MessageStore

log = logging.getLogger("cometmq.broker")

READ_COUNT: Final = 1000
PEER_GRACE_MS: Final = 3000
"""RocketMQ's acknowledgements come through its timer, too, and a little later than the check-point."""

NEXT_OFFSET: Final = "POP_NEXT_OFFSET"
"""Ours: a RocketMQ broker saves the position of a group by itself."""

_DIGITS_MAX: Final = 20
_NOTHING: Final[Mapping[str, str]] = {}
_TAGS_CODES: Final = {tag: java_hash(tag) for tag in (CK_TAG, ACK_TAG, BATCH_ACK_TAG)}


class ReviveLog:
    """Args: make_topic: makes sure that the topic exists, with so many queues."""

    def __init__(
        self,
        *,
        topic: str,
        broker_name: str,
        store: MessageStore,
        clock: Clock,
        make_topic: Callable[[str, int], None],
    ) -> None:
        self.topic = topic
        self.broker_name = broker_name
        self._store = store
        self._clock = clock
        self._make_topic = make_topic
        self.is_putting = False
        """What arrives in the topic now is our own."""

    def point_message(self, point: CheckPoint, next_offset: int | None = None) -> NewMessage:
        """Args: next_offset: where the group goes on in the queue, for a pop that moves its position."""
        body = encode_check_point(point)
        more = {} if next_offset is None else {NEXT_OFFSET: str(next_offset)}
        return self._message(CK_TAG, body, point.revive_queue_id, more)

    def ack_message(self, ack: Ack, revive_queue_id: int) -> NewMessage:
        tag, body = encode_ack(ack, self.broker_name)
        return self._message(tag, body, revive_queue_id)

    def put(self, messages: list[NewMessage]) -> list[Stored]:
        """Messages of revive queues, and others that belong to them, all or none. Raises as ``MessageStore.put``."""
        self._make_topic(self.topic, REVIVE_QUEUE_COUNT)
        self.is_putting = True
        try:
            return self._store.put_all(messages)
        finally:
            self.is_putting = False

    def put_each(self, messages: list[NewMessage]) -> list[Stored | Exception]:
        """Messages that have nothing to do with each other, with one write if possible: the outcome of each."""
        self._make_topic(self.topic, REVIVE_QUEUE_COUNT)
        self.is_putting = True
        try:
            outcomes = self._store.append_each(NewMessages.of(messages))
        finally:
            self.is_putting = False
        each: list[Stored | Exception] = []
        for outcome in outcomes:
            each += [outcome] if isinstance(outcome, Exception) else outcome.each()
        return each

    def min_offset(self, queue_id: int) -> int:
        return self._store.min_offset(self.topic, queue_id)

    def max_offset(self, queue_id: int) -> int:
        return self._store.max_offset(self.topic, queue_id)

    def read(self, queue_id: int, offset: int) -> Iterator[tuple[int, CheckPoint | Ack]]:
        """What a revive queue says from an offset on, with the offsets."""
        while entries := self._store.entries(self.topic, queue_id, offset, READ_COUNT):
            for physical_offset, _, _ in entries:
                record = self._store.decoded_at(physical_offset, self.topic)
                said = None if record is None else _said(record, queue_id)
                if said is None:
                    log.error("revive record skipped queue=%d offset=%d", queue_id, offset)
                else:
                    yield offset, said
                offset += 1

    def _message(
        self, tag: str, body: bytes, queue_id: int, more: Mapping[str, str] = _NOTHING
    ) -> NewMessage:
        now_ms = self._clock.wall_ms()
        # RocketMQ looks for the time in each record, to see how far the queue has come.
        pairs = {TAGS: tag, WAIT: "false", TIMER_DELIVER_MS: str(now_ms), **more}
        return NewMessage(
            topic=self.topic,
            queue_id=queue_id,
            body=body,
            properties=render_properties(pairs).encode(),
            tags_code=_TAGS_CODES[tag],
            born_timestamp=now_ms,
        )

    def __repr__(self) -> str:
        return f"<ReviveLog {self.topic}>"


def _said(record: Record, queue_id: int) -> CheckPoint | Ack | None:
    tag = record.properties.get(TAGS)
    if tag in (ACK_TAG, BATCH_ACK_TAG):
        return decode_ack(record.body)
    if tag != CK_TAG:
        return None
    point = decode_check_point(record.body, queue_id)
    next_offset = record.properties.get(NEXT_OFFSET, "")
    if point is not None and next_offset.isdecimal() and len(next_offset) < _DIGITS_MAX:
        point.next_offset = int(next_offset)
    if point is not None and TIMER_DEQUEUE_MS in record.properties:
        point.due_ms += PEER_GRACE_MS
    return point
