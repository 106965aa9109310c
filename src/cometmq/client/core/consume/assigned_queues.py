"""The queues that a lite pull consumer holds: what to pull next, what to hand out next, what is done. No I/O.

A queue has three positions, which only move apart in this order:

    done <= position <= pull offset
      |        |           where the next pull starts; what lies between is cached here
      |        the next message to hand out
      everything below was handed out before the last poll, so the user is through with it

A seek makes all three one, empties the cache and starts a new epoch: the answer of a pull that was asked for in an
older epoch is refused, so that nothing from before the seek can come after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from cometmq.base.errors import UsageError
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLimits:
    """No queue is pulled while more than this is cached. A pull under way may still add its messages."""

    count_all: int = 10_000
    count_queue: int = 1_000
    bytes_queue: int = 100 * 1024 * 1024
    span: int = 2_000
    """From the first to the last cached offset of a queue."""


class NextPull(NamedTuple):
    """One pull to make. Give it back with the answer."""

    queue: MessageQueue
    offset: int
    epoch: int


class _Batch:
    """The messages of one pull, those before ``at`` already handed out."""

    __slots__ = ("at", "messages", "next_offset")

    def __init__(self, messages: list[ReceivedMessage], next_offset: int) -> None:
        self.messages = messages
        self.next_offset = next_offset
        self.at = 0


class _Assigned:
    __slots__ = (
        "batches",
        "bytes",
        "committed",
        "count",
        "done",
        "epoch",
        "is_dropped",
        "is_paused",
        "is_queued",
        "position",
        "pull_offset",
        "queue",
    )

    def __init__(self, queue: MessageQueue, epoch: int) -> None:
        self.queue = queue
        self.epoch = epoch
        self.pull_offset = self.position = self.done = -1
        self.committed = -1
        self.batches: deque[_Batch] = deque()
        self.count = 0
        self.bytes = 0
        self.is_paused = False
        self.is_dropped = False
        self.is_queued = False


class AssignedQueues:
    """Belongs to one consumer; not thread-safe."""

    def __init__(self, limits: CacheLimits) -> None:
        self._limits = limits
        self._assigned: dict[MessageQueue, _Assigned] = {}
        # Queues with something to hand out, each at most once; paused and dropped ones are passed over.
        self._ready: deque[_Assigned] = deque()
        self._handed: list[_Assigned] = []
        self._cached_count = 0
        # Never used twice, so that a queue that is lost and won again does not take an answer for its past.
        self._epoch = 0

    def __contains__(self, queue: MessageQueue) -> bool:
        return queue in self._assigned

    @property
    def queues(self) -> list[MessageQueue]:
        return sorted(self._assigned)

    @property
    def cached_count(self) -> int:
        return self._cached_count

    def add(self, queue: MessageQueue) -> None:
        """Hold a queue from now on; it is pulled once ``begin`` or ``seek`` told where to start."""
        assert queue not in self._assigned, queue
        self._epoch += 1
        self._assigned[queue] = _Assigned(queue, self._epoch)

    def drop(self, queue: MessageQueue) -> None:
        """Hold it no longer; what is cached of it is gone, and late answers are refused."""
        assigned = self._assigned.pop(queue)
        self._clear(assigned)
        assigned.is_dropped = True

    def begin(self, queue: MessageQueue, offset: int) -> None:
        """Start a queue that was added; without effect when a seek was faster, or the queue is gone."""
        assigned = self._assigned.get(queue)
        if assigned is not None and assigned.pull_offset < 0:
            assigned.pull_offset = assigned.position = assigned.done = offset

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on at ``offset``, forgetting what is cached. Raises UsageError when the queue is not held."""
        assigned = self._known(queue)
        self._clear(assigned)
        self._epoch += 1
        assigned.epoch = self._epoch
        assigned.pull_offset = assigned.position = assigned.done = offset

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Hand out nothing of these, and pull nothing new; what is cached stays. All are known, or none is paused."""
        for assigned in [self._known(queue) for queue in queues]:
            assigned.is_paused = True

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        for assigned in [self._known(queue) for queue in queues]:
            assigned.is_paused = False
            self._line_up(assigned)

    def is_paused(self, queue: MessageQueue) -> bool:
        return self._known(queue).is_paused

    def next_pull(self, queue: MessageQueue) -> NextPull | None:
        """The pull to make now; None while the queue is paused, full, not begun or not held."""
        assigned = self._assigned.get(queue)
        if assigned is None or assigned.pull_offset < 0 or assigned.is_paused:
            return None
        limits = self._limits
        if self._cached_count > limits.count_all or assigned.count > limits.count_queue:
            return None
        if assigned.bytes > limits.bytes_queue or self._span(assigned) > limits.span:
            return None
        return NextPull(queue, assigned.pull_offset, assigned.epoch)

    def arrived(self, pull: NextPull, messages: list[ReceivedMessage], next_offset: int) -> bool:
        """Take the answer of a pull. False when it came too late: the queue was dropped, a seek went elsewhere, or
        another pull of the same offset was faster."""
        assigned = self._assigned.get(pull.queue)
        if assigned is None or assigned.epoch != pull.epoch or assigned.pull_offset != pull.offset:
            return False
        assigned.pull_offset = next_offset
        batches = assigned.batches
        if messages:
            batches.append(_Batch(messages, next_offset))
            assigned.count += len(messages)
            self._cached_count += len(messages)
            for message in messages:
                assigned.bytes += len(message.body)
            self._line_up(assigned)
        elif batches:
            # Nothing for us up to there, so whoever takes the last cached message is through with that, too.
            batches[-1].next_offset = next_offset
        else:
            is_all_done = assigned.done == assigned.position
            assigned.position = next_offset
            if is_all_done:
                assigned.done = next_offset
        return True

    def take(self, count_max: int) -> list[ReceivedMessage]:
        """The next messages, all of one queue and one pull; queues take turns. Empty when nothing is cached."""
        ready = self._ready
        while ready:
            assigned = ready.popleft()
            assigned.is_queued = False
            batches = assigned.batches
            if assigned.is_paused or not batches:
                continue
            batch = batches[0]
            at = batch.at
            messages = batch.messages
            if at or len(messages) > count_max:
                messages = messages[at : at + count_max]
                batch.at = at + len(messages)
            else:
                batch.at = len(messages)
            if batch.at < len(batch.messages):
                assigned.position = batch.messages[batch.at].queue_offset
                # The rest of a pull before the next queue's turn.
                ready.appendleft(assigned)
                assigned.is_queued = True
            else:
                batches.popleft()
                assigned.position = batch.next_offset
                self._line_up(assigned)
            self._uncache(assigned, messages)
            self._handed.append(assigned)
            return messages
        return []

    def finish_handed(self) -> None:
        """The user asks for more, so all that was handed out until now is done."""
        for assigned in self._handed:
            assigned.done = assigned.position
        self._handed.clear()

    def position(self, queue: MessageQueue) -> int | None:
        """The next offset to hand out; None when the queue has not begun. Raises UsageError when it is not held."""
        position = self._known(queue).position
        return position if position >= 0 else None

    def positions(self) -> dict[MessageQueue, int]:
        return {
            queue: assigned.position
            for queue, assigned in self._assigned.items()
            if assigned.position >= 0
        }

    def to_commit(self, *, handed_is_done: bool) -> dict[MessageQueue, int]:
        """Positions that moved since ``was_committed``.

        Args:
            handed_is_done: also count what was handed out by the last poll.
        """
        moved: dict[MessageQueue, int] = {}
        for queue, assigned in self._assigned.items():
            offset = assigned.position if handed_is_done else assigned.done
            if offset >= 0 and offset != assigned.committed:
                moved[queue] = offset
        return moved

    def was_committed(self, queue: MessageQueue, offset: int) -> None:
        if (assigned := self._assigned.get(queue)) is not None:
            assigned.committed = offset

    def _known(self, queue: MessageQueue) -> _Assigned:
        assigned = self._assigned.get(queue)
        if assigned is None:
            raise UsageError(
                f"{queue} is not assigned to this consumer: assign it, or wait for the rebalance"
            )
        return assigned

    def _line_up(self, assigned: _Assigned) -> None:
        if assigned.batches and not assigned.is_queued and not assigned.is_paused:
            assigned.is_queued = True
            self._ready.append(assigned)

    def _clear(self, assigned: _Assigned) -> None:
        self._cached_count -= assigned.count
        assigned.batches.clear()
        assigned.count = assigned.bytes = 0
        # What was handed out before a seek must not move the position after it.
        self._handed = [each for each in self._handed if each is not assigned]

    def _uncache(self, assigned: _Assigned, messages: list[ReceivedMessage]) -> None:
        assigned.count -= len(messages)
        self._cached_count -= len(messages)
        if assigned.batches:
            for message in messages:
                assigned.bytes -= len(message.body)
        else:
            assigned.bytes = 0

    @staticmethod
    def _span(assigned: _Assigned) -> int:
        batches = assigned.batches
        if not batches:
            return 0
        first = batches[0]
        return batches[-1].messages[-1].queue_offset - first.messages[first.at].queue_offset
