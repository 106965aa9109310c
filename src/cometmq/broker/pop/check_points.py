"""Check-points and acknowledgements as RocketMQ keeps them: JSON bodies in the revive topic, told apart by their tag.

A check-point says which messages of a queue one pop took, and until when nobody else gets them. Pure.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from cometmq.base.errors import RemoteProtocolError
from cometmq.model.ids import Int32, Int64
from cometmq.protocol.json_body import JsonBody

CK_TAG: Final = "ck"
ACK_TAG: Final = "ack"
BATCH_ACK_TAG: Final = "bAck"
COUNT_MAX: Final = 32
"""Most messages of one check-point: which of them are acknowledged has to fit into an int32."""


class Key(NamedTuple):
    """What names a check-point, in its own record and in every acknowledgement."""

    group: str
    topic: str
    queue_id: int
    start_offset: int
    pop_time: int


class CheckPointBody(JsonBody, kw_only=True):
    broker_name: str | None = msgspec.field(name="bn", default=None)
    acked_bits: Int32 = msgspec.field(name="bm", default=0)
    group: str = msgspec.field(name="c")
    offset_steps: list[Int32] | None = msgspec.field(name="d", default=None)
    """Offsets of the messages behind the first; without them they follow each other."""
    invisible_ms: Int64 = msgspec.field(name="it")
    count: Int32 = msgspec.field(name="n", default=0)
    pop_time: Int64 = msgspec.field(name="pt")
    queue_id: Int32 = msgspec.field(name="q")
    revive_offset: Int64 = msgspec.field(name="ro", default=0)
    start_offset: Int64 = msgspec.field(name="so")
    topic: str = msgspec.field(name="t")


class AckBody(JsonBody, kw_only=True):
    """Of one message, or (``offsets``) of several of one check-point."""

    offset: Int64 = msgspec.field(name="ao", default=0)
    offsets: list[Int64] | None = msgspec.field(name="aol", default=None)
    broker_name: str | None = msgspec.field(name="bn", default=None)
    group: str = msgspec.field(name="c")
    pop_time: Int64 = msgspec.field(name="pt")
    queue_id: Int32 = msgspec.field(name="q")
    start_offset: Int64 = msgspec.field(name="so")
    topic: str = msgspec.field(name="t")


class CheckPoint:
    """A pop of which not all messages are acknowledged."""

    __slots__ = (
        "broker_name",
        "due_ms",
        "invisible_ms",
        "key",
        "next_offset",
        "open",
        "revive_queue_id",
        "seat",
    )

    def __init__(
        self,
        key: Key,
        invisible_ms: int,
        offsets: set[int],
        *,
        revive_queue_id: int,
        broker_name: str,
    ) -> None:
        self.key = key
        self.invisible_ms = invisible_ms
        self.open = offsets
        """Offsets of the messages that are not acknowledged."""
        self.revive_queue_id = revive_queue_id
        self.broker_name = broker_name
        self.due_ms = key.pop_time + invisible_ms
        """When what is still open is to be tried again."""
        self.next_offset: int | None = None
        """Where the group goes on in the queue, when its record says so."""
        self.seat = -1
        """Offset of its record in the revive queue."""

    def __repr__(self) -> str:
        return f"<CheckPoint {self.key} open={sorted(self.open)} due_ms={self.due_ms}>"


class Ack(NamedTuple):
    key: Key
    offsets: tuple[int, ...]


def encode_check_point(point: CheckPoint) -> bytes:
    """The body of its record. What is acknowledged is left out: it is as if it had not been popped."""
    key = point.key
    offsets = sorted(point.open)
    return CheckPointBody(
        broker_name=point.broker_name,
        group=key.group,
        offset_steps=[offset - key.start_offset for offset in offsets],
        invisible_ms=point.invisible_ms,
        count=len(offsets),
        pop_time=key.pop_time,
        queue_id=key.queue_id,
        start_offset=key.start_offset,
        topic=key.topic,
    ).encode()


def decode_check_point(body: bytes, revive_queue_id: int) -> CheckPoint | None:
    """None when the body is no check-point."""
    try:
        read = CheckPointBody.decode(body)
    except RemoteProtocolError:
        return None
    steps = read.offset_steps or range(read.count)
    if len(steps) > COUNT_MAX or not read.topic or not read.group:
        return None
    key = Key(read.group, read.topic, read.queue_id, read.start_offset, read.pop_time)
    return CheckPoint(
        key,
        read.invisible_ms,
        {
            read.start_offset + step
            for at, step in enumerate(steps)
            if not read.acked_bits >> at & 1
        },
        revive_queue_id=revive_queue_id,
        broker_name=read.broker_name or "",
    )


def encode_ack(ack: Ack, broker_name: str) -> tuple[str, bytes]:
    """The tag and the body of its record."""
    key = ack.key
    is_one = len(ack.offsets) == 1
    body = AckBody(
        offset=ack.offsets[0] if is_one else 0,
        offsets=None if is_one else list(ack.offsets),
        broker_name=broker_name,
        group=key.group,
        pop_time=key.pop_time,
        queue_id=key.queue_id,
        start_offset=key.start_offset,
        topic=key.topic,
    )
    return (ACK_TAG if is_one else BATCH_ACK_TAG), body.encode()


def decode_ack(body: bytes) -> Ack | None:
    """None when the body is no acknowledgement."""
    try:
        read = AckBody.decode(body)
    except RemoteProtocolError:
        return None
    key = Key(read.group, read.topic, read.queue_id, read.start_offset, read.pop_time)
    return Ack(key, tuple(read.offsets) if read.offsets else (read.offset,))
