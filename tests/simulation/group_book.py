"""What a group has consumed, and what it promised about it."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from cometmq.client.core.consume.member.held_queue import HeldQueue
from cometmq.model.message_queue import MessageQueue

Place = tuple[MessageQueue, int]


@dataclass
class Book:
    """Every method that is told of something checks it at once."""

    is_orderly: bool
    is_healthy: bool
    bodies: dict[Place, bytes] = field(default_factory=dict)
    consumed: Counter[bytes] = field(default_factory=Counter)
    dead: set[bytes] = field(default_factory=set)
    settled: defaultdict[MessageQueue, set[int]] = field(default_factory=lambda: defaultdict(set))
    """Consumed there, sent back from there, or a dead letter."""
    skipped_below: Counter[MessageQueue] = field(default_factory=Counter)
    """An operator let the group go on from here, whatever was before."""
    reset_to: defaultdict[MessageQueue, set[int]] = field(default_factory=lambda: defaultdict(set))
    left_at: Counter[MessageQueue] = field(default_factory=Counter)
    """The last position of the last owner."""
    may_repeat: set[bytes] = field(default_factory=set)
    in_calls: defaultdict[MessageQueue, list[HeldQueue]] = field(
        default_factory=lambda: defaultdict(list)
    )

    # Sending.

    def sent(self, queue: MessageQueue, offset: int, body: bytes) -> None:
        self.bodies[queue, offset] = body

    def sent_back(self, queue: MessageQueue, offset: int) -> None:
        self.settled[queue].add(offset)

    def buried(self, queue: MessageQueue, offset: int) -> None:
        self.settled[queue].add(offset)
        self.dead.add(self.bodies[queue, offset])

    def reset(self, queue: MessageQueue, offset: int, end: int) -> None:
        """The operator's word: everything below may be skipped, everything from there on comes again."""
        self.skipped_below[queue] = max(self.skipped_below[queue], offset)
        self.reset_to[queue].add(offset)
        self.may_repeat |= {self.bodies[queue, at] for at in range(end)}

    # Consuming.

    def call_began(self, held: HeldQueue) -> None:
        others = [other for other in self.in_calls[held.queue] if not other.is_released]
        if self.is_orderly:
            assert not others, f"two listeners at a time consume {held.queue}"
        self.in_calls[held.queue].append(held)

    def call_ended(self, held: HeldQueue) -> None:
        self.in_calls[held.queue].remove(held)

    def was_consumed(self, queue: MessageQueue, offset: int) -> None:
        body = self.bodies[queue, offset]
        self.consumed[body] += 1
        self.settled[queue].add(offset)
        if self.is_healthy and body not in self.may_repeat:
            assert self.consumed[body] == 1, f"{body!r} of {queue} {offset} was consumed twice"
        if self.is_orderly:
            missing = self._unsettled(queue, offset)
            assert not missing, f"{queue} {offset} was consumed before {missing}"

    # Committing.

    def committed(self, queue: MessageQueue, offset: int, *, is_last: bool) -> None:
        """``is_last``: by an owner that lets go of the queue. Others go on from there."""
        missing = self._unsettled(queue, offset)
        assert not missing, f"{offset} was committed in {queue}, but {missing} were not consumed"
        if self.is_healthy and offset not in self.reset_to[queue]:
            left = self.left_at[queue]
            assert offset >= left, f"{queue} went back to {offset} after it was left at {left}"
        if is_last:
            self.left_at[queue] = offset

    def lost(self) -> set[bytes]:
        """What was neither consumed nor skipped."""
        skipped = {
            body
            for (queue, offset), body in self.bodies.items()
            if offset < self.skipped_below[queue]
        }
        return set(self.bodies.values()) - set(self.consumed) - self.dead - skipped

    def _unsettled(self, queue: MessageQueue, below: int) -> list[int]:
        settled = self.settled[queue]
        return [at for at in range(self.skipped_below[queue], below) if at not in settled]
