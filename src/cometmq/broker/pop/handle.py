"""What a consumer gets to name a popped message by, and the infos from which Java's client makes it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from cometmq.broker.pop.pop_topics import kind_of
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused

_FIELDS_MIN: Final = 7
_FIELDS_MAX: Final = 8
_TEXT_MAX: Final = 1000


class Handle(NamedTuple):
    """The property POP_CK of a message, and ``extraInfo`` of what is done with it."""

    start_offset: int
    pop_time: int
    invisible_ms: int
    revive_queue_id: int
    kind: str
    broker_name: str
    queue_id: int
    offset: int | None = None

    def render(self) -> str:
        return " ".join(str(part) for part in self if part is not None)


def parse_handle(text: str) -> Handle:
    """Raises Refused when it is none."""
    parts = text.split(" ") if len(text) <= _TEXT_MAX else []
    if _FIELDS_MIN <= len(parts) <= _FIELDS_MAX:
        try:
            numbers = [int(parts[at]) for at in (0, 1, 2, 3, 6, *range(7, len(parts)))]
        except ValueError:
            numbers = []
        if numbers and min(numbers) >= 0:
            start, pop_time, invisible, revive_queue, queue, *offset = numbers
            return Handle(
                start,
                pop_time,
                invisible,
                revive_queue,
                parts[4],
                parts[5],
                queue,
                offset[0] if offset else None,
            )
    raise Refused(
        ResponseCode.SYSTEM_ERROR,
        "expected a handle of 7 or 8 fields (offset, pop time, invisible time, revive queue, kind, broker, queue, "
        f"offset), got {text[:200]!r}",
    )


class Popped(NamedTuple):
    """What a pop took of one queue."""

    topic: str
    queue_id: int
    offsets: Sequence[int]


def start_offset_info(popped: Iterable[Popped]) -> str:
    return ";".join(f"{kind_of(one.topic)} {one.queue_id} {one.offsets[0]}" for one in popped)


def message_offset_info(popped: Iterable[Popped]) -> str:
    return ";".join(
        f"{kind_of(one.topic)} {one.queue_id} {','.join(map(str, one.offsets))}" for one in popped
    )
