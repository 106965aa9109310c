"""How a queue is consumed in order: which messages the listener gets next, and what follows when it fails. No I/O.

    idle -> messages arrived -> called -> consumed: the next ones
                                       -> failed: a dead letter, or the queue pauses and the same messages come again

Nothing is called without a valid lock. One call at a time; what is taken from the front is settled before the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from cometmq.client.core.consume.call_size import call_size
from cometmq.client.core.consume.member.held_queue import HeldQueue
from cometmq.client.core.consume.member.instructions import Instructions
from cometmq.client.core.consume.member.rules import MemberRules
from cometmq.client.core.consume.outcome import DEAD_LETTER_LEVEL, Verdict
from cometmq.model.messages.received_message import ReceivedMessage

UNLOCKED_SECONDS: Final = 0.1
"""How soon a queue whose lock has run out looks whether it was renewed."""


class CallStep(Enum):
    CALL = "take messages and call the listener"
    IDLE = "ask again when messages have arrived or the queue is dropped"
    END = "do not ask again"


@dataclass(frozen=True, slots=True)
class CallPause:
    """Ask again after ``seconds``, or when the queue is dropped."""

    seconds: float


class Letter(Enum):
    """How a failed message becomes a dead letter."""

    SENT_BACK = "the broker moves it"
    COPY = "a copy is sent, its retries used up"


class OrderlyCalls:
    """The calls for one queue."""

    __slots__ = ("_held", "_not_before", "_process", "_reconsume_times_max", "_suspend_seconds")

    def __init__(self, held: HeldQueue, rules: MemberRules) -> None:
        self._held = held
        self._process = held.orderly
        self._suspend_seconds = rules.suspend_seconds
        self._reconsume_times_max = rules.reconsume_times_max
        self._not_before = 0.0

    def next(self, now: float) -> CallStep | CallPause:
        if self._held.is_dropped:
            return CallStep.END
        if now < self._not_before:
            return CallPause(self._not_before - now)
        if not self._process.waiting_count:
            return CallStep.IDLE
        if not self._held.is_locked(now):
            return CallPause(UNLOCKED_SECONDS)
        return CallStep.CALL

    def may_go_on(self, now: float) -> bool:
        """Whether the next call may follow at once. Worker threads may ask."""
        return not self._held.is_dropped and self._held.is_locked(now)

    def take(self, batch_max: int) -> list[ReceivedMessage]:
        """Messages from the front for one call; empty when there are none."""
        messages = self._process.take(batch_max)
        return messages[: call_size(messages, 0, batch_max)]

    def take_stretch(self, count_max: int) -> list[ReceivedMessage]:
        """Messages from the front for several calls."""
        return self._process.take(count_max)

    def letter(self, message: ReceivedMessage, verdict: Verdict) -> Letter | None:
        """How a message that failed is to become a dead letter now; None when it is to be tried again."""
        if verdict.delay_level == DEAD_LETTER_LEVEL:
            return Letter.SENT_BACK
        times_max = self._reconsume_times_max
        if times_max is None or message.reconsume_times < times_max:
            return None
        return Letter.COPY

    def settle(
        self,
        messages: Sequence[ReceivedMessage],
        consumed: int,
        buried: int = 0,
        *,
        has_failed: bool = False,
        seconds: float,
        now: float,
    ) -> Instructions:
        """A call, or a stretch of them, has ended.

        Args:
            messages: those that the listener was called with.
            consumed: how many of them, from the first on, were consumed.
            buried: how many after these have become dead letters.
            has_failed: then the rest is tried again after a pause; otherwise it was not tried.
            seconds: how long the listener took.
        """
        held = self._held
        held.last_consume = now
        held.consumed_count += consumed
        held.consumed_seconds += seconds
        done = consumed + buried
        if has_failed:
            held.failed_count += 1
            for message in messages[done:]:
                message.reconsume_times += 1
            if done < len(messages):
                self._not_before = now + self._suspend_seconds
        self._process.commit(done)
        return held.make_room()
