"""A search through the queues of a topic, newest first, with a budget and a place to go on from.

Of a message only what its row shows is kept: hundreds of messages of 4 MB would not fit into memory.
"""

from __future__ import annotations

import asyncio
import heapq
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import msgspec

from cometmq.admin.admin import Admin
from cometmq.client.core.consume.expression import Expression
from cometmq.client.core.queue_answers import Bounds
from cometmq.dashboard.problems import bad_request
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage

CHUNK_MAX: Final = 64
CHUNK_MIN: Final = 4
AT_ONCE: Final = 8

T = TypeVar("T")

Wanted = Callable[[ReceivedMessage], bool]


@dataclass(frozen=True, slots=True)
class Read(Generic[T]):
    """What is kept of a message, and where it was."""

    offset: int
    stored_ms: int
    kept: T


@dataclass(slots=True)
class Part(Generic[T]):
    """Of one queue: what was read and not yet returned (oldest first), and what is still to be read below."""

    queue: MessageQueue
    first: int
    upto: int
    read: list[Read[T]] = field(default_factory=list)

    @property
    def is_exhausted(self) -> bool:
        return not self.read and self.upto <= self.first

    @property
    def goes_on_at(self) -> int:
        """The offset below which nothing was returned yet."""
        return self.read[-1].offset + 1 if self.read else self.upto


@dataclass(slots=True)
class Found(Generic[T]):
    """``cursor`` is empty if everything was looked at."""

    rows: list[T]
    scanned: int
    cursor: str


async def newest_first(
    admin: Admin,
    bounds: Mapping[MessageQueue, Bounds],
    *,
    expression: Expression,
    is_wanted: Wanted,
    keep: Callable[[ReceivedMessage], T],
    size: int,
    scan_max: int,
    cursor: str,
) -> Found[T]:
    """Up to ``size`` messages that match, of each what ``keep`` makes of it.

    ``scan_max`` bounds how many are looked at, give or take a chunk.
    """
    positions = _positions(cursor)
    parts: list[Part[T]] = [
        Part(queue, limits.first, min(limits.end, positions.get(_key(queue), limits.end)))
        for queue, limits in bounds.items()
    ]
    count = max(len(parts), 1)
    chunk = min(CHUNK_MAX, max(CHUNK_MIN, 2 * size // count), max(scan_max // count, 1))
    room = asyncio.Semaphore(AT_ONCE)
    scanned = 0

    async def fill(part: Part[T]) -> int:
        async with room:
            begin = max(part.first, part.upto - chunk)
            async for message in admin.messages.read(
                part.queue, Bounds(begin, part.upto), expression
            ):
                if is_wanted(message):
                    part.read.append(
                        Read(message.queue_offset, message.store_timestamp, keep(message))
                    )
            count, part.upto = part.upto - begin, begin
            return count

    rows: list[T] = []
    while len(rows) < size:
        empty = [part for part in parts if not part.read and part.upto > part.first]
        if empty:
            if scanned >= scan_max:
                break
            scanned += sum(await asyncio.gather(*(fill(part) for part in empty)))
            continue
        ready = [part for part in parts if part.read]
        if not ready:
            break
        newest = heapq.nlargest(1, ready, key=lambda part: part.read[-1].stored_ms)[0]
        rows.append(newest.read.pop().kept)
    left = {_key(part.queue): part.goes_on_at for part in parts}
    is_over = all(part.is_exhausted for part in parts)
    return Found(rows, scanned, "" if is_over else _cursor(left))


def _key(queue: MessageQueue) -> str:
    return f"{queue.broker_name}/{queue.queue_id}"


def _cursor(positions: Mapping[str, int]) -> str:
    return urlsafe_b64encode(msgspec.msgpack.encode(positions)).decode().rstrip("=")


def _positions(cursor: str) -> dict[str, int]:
    """Raises Problem: it is none of ours."""
    if not cursor:
        return {}
    try:
        packed = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        found = msgspec.msgpack.decode(packed, type=dict[str, int])
    except (ValueError, msgspec.DecodeError):
        raise bad_request("this is no cursor of a search", field="cursor") from None
    if any(not 0 <= offset < 2**62 for offset in found.values()):
        raise bad_request("this is no cursor of a search", field="cursor")
    return found
