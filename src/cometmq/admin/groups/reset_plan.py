"""Where a group is to go on, and what that means for a queue. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from cometmq.admin.errors import NoSuchName
from cometmq.base.errors import UsageError
from cometmq.client.core.queue_answers import Bounds
from cometmq.model.message_queue import MessageQueue


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetPoint:
    """A time, an offset, or the end. Made by the methods.

    ``queue_id`` limits it to one queue of each broker. An offset needs it: offsets of queues have nothing in common.
    """

    time_ms: int | None = None
    offset: int | None = None
    queue_id: int | None = None

    @classmethod
    def time(cls, ms: int) -> Self:
        """The first message stored at or after a time; with RocketMQ 4 the one stored closest to it."""
        if ms < 0:
            raise UsageError(
                f"expected milliseconds since 1970, got {ms}; ResetPoint.end() is the end"
            )
        return cls(time_ms=ms)

    @classmethod
    def beginning(cls) -> Self:
        """The first message that is still there."""
        return cls(time_ms=0)

    @classmethod
    def end(cls) -> Self:
        """After the last message."""
        return cls()

    @classmethod
    def at(cls, queue_id: int, offset: int) -> Self:
        """An offset in one queue."""
        if offset < 0 or queue_id < 0:
            raise UsageError(
                f"expected a queue and an offset of at least 0, got {queue_id}, {offset}"
            )
        return cls(offset=offset, queue_id=queue_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetMove:
    """A queue's position before and after a reset; ``before`` is None if the group has none.

    ``min_offset`` and ``max_offset`` are the bounds of the queue; the last is not included.
    """

    queue: MessageQueue
    before: int | None
    after: int
    min_offset: int
    max_offset: int

    @property
    def again(self) -> int:
        """Messages that are consumed again; below 0: so many are passed over."""
        return (self.before or 0) - self.after


def checked_offset(queue: MessageQueue, offset: int, bounds: Bounds) -> int:
    """Raises NoSuchName for an offset that the queue does not have."""
    if not bounds.first <= offset <= bounds.end:
        raise NoSuchName(
            f"queue {queue.queue_id} of topic {queue.topic!r} at broker {queue.broker_name!r} has no offset {offset}; "
            f"expected {bounds.first} to {bounds.end}, which is its end"
        )
    return offset
