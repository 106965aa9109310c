"""What a simulated member does for each of its queues: it pulls, and calls a listener in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.simulation.group_world import PULL_SECONDS

from cometmq.client.core.consume.flow_limits import FlowLimits
from cometmq.client.core.consume.member.held_queue import HeldQueue
from cometmq.client.core.consume.member.orderly_calls import CallPause, CallStep, OrderlyCalls
from cometmq.client.core.consume.member.pulling import Hold, Pause, Pull
from cometmq.client.core.consume.member.queue_life import QueueLife
from cometmq.client.core.consume.outcome import Verdict
from cometmq.model.messages.received_message import ReceivedMessage

if TYPE_CHECKING:
    from tests.simulation.group_member import SimulatedMember

BATCH_MAX: Final = 2
LIMITS: Final = FlowLimits(count_max=6, size_mib_max=1, span_max=10)
SILENCE: Final = 0.02
"""Chance that an unhealthy shell never reports how something ended."""


class PullLoop:
    """Pulls one queue, one pull at a time."""

    def __init__(self, member: SimulatedMember, life: QueueLife) -> None:
        self._member = member
        self._life = life
        self._turn = 0
        self._is_pulling = False
        self.is_over = False

    def soon(self, seconds: float = 0.0) -> None:
        self._turn += 1
        turn = self._turn

        def go_on() -> None:
            if turn == self._turn and self._member.is_alive and not self.is_over:
                self._step()

        self._member.world.after(seconds, go_on)

    def _step(self) -> None:
        if self._is_pulling:
            return
        step = self._life.next_pull(
            self._member.world.now, limits=LIMITS, is_suspended=False, is_subscribed=True
        )
        if isinstance(step, Pull):
            self._pull(step)
        elif isinstance(step, Hold | Pause):
            self.soon(step.seconds)

    def _pull(self, step: Pull) -> None:
        member, life = self._member, self._life
        world = member.world
        is_silent = not world.is_healthy and world.random.random() < SILENCE / 4
        self._is_pulling = True

        def answered(answer: Any) -> None:
            # A silent one is noticed after two minutes, when the queue is started anew.
            if self.is_over or is_silent:
                return
            self._is_pulling = False
            if answer is None:
                member.do(life.pull_failed(world.now))
            elif answer[0] is None:
                member.do(life.offset_illegal(answer[1], world.now))
            else:
                member.do(life.pulled(answer[0], answer[1], world.now))
            self.soon()

        member.call(
            lambda reply: world.broker.pull(life.queue, step.offset, step.position, reply),
            answered,
            PULL_SECONDS,
        )


class OrderlyLoop:
    """Consumes one queue in order."""

    def __init__(self, member: SimulatedMember, held: HeldQueue) -> None:
        self._member = member
        self._held = held
        self._calls = OrderlyCalls(held, member.rules)
        self._turn = 0
        self._is_calling = False
        self._is_busy = False

    def wake(self, seconds: float = 0.0) -> None:
        self._turn += 1
        turn = self._turn
        self._member.world.after(
            seconds, lambda: self._step() if turn == self._turn and self._member.is_alive else None
        )

    def stop(self, held: HeldQueue) -> None:
        if self._is_calling:
            self._is_calling = False
            self._member.world.book.call_ended(held)

    def _step(self) -> None:
        member, held = self._member, self._held
        if self._is_busy:
            return
        step = self._calls.next(member.world.now)
        if step is CallStep.END:
            member.calls_ended(held)
        elif isinstance(step, CallPause):
            self.wake(step.seconds)
        elif step is CallStep.CALL:
            messages = self._calls.take(BATCH_MAX)
            self._is_busy = self._is_calling = True
            member.world.book.call_began(held)
            started = member.world.now
            member.world.after(member.seconds(), lambda: self._ended(messages, started))

    def _ended(self, messages: list[ReceivedMessage], started: float) -> None:
        member, held = self._member, self._held
        if not member.is_alive:
            return
        self._is_calling = False
        member.world.book.call_ended(held)
        count = len(messages)
        if member.fails():
            count = member.world.random.randrange(count)
        for message in messages[:count]:
            member.world.book.was_consumed(held.queue, message.queue_offset)
        self._bury(messages, count, 0, started)

    def _bury(
        self, messages: list[ReceivedMessage], consumed: int, buried: int, started: float
    ) -> None:
        done = consumed + buried
        world = self._member.world
        if done < len(messages) and self._calls.letter(messages[done], Verdict(consumed)):
            broker = world.broker

            def answered(is_buried: Any) -> None:
                if is_buried:
                    self._bury(messages, consumed, buried + 1, started)
                else:
                    self._settle(messages, consumed, buried, started)

            message, queue = messages[done], self._held.queue
            self._member.call(lambda reply: reply(broker.bury(message, queue)), answered)
        else:
            self._settle(messages, consumed, buried, started)

    def _settle(
        self, messages: list[ReceivedMessage], consumed: int, buried: int, started: float
    ) -> None:
        now = self._member.world.now
        self._is_busy = False
        self._member.do(
            self._calls.settle(
                messages,
                consumed,
                buried,
                has_failed=consumed < len(messages),
                seconds=now - started,
                now=now,
            )
        )
        self.wake()
