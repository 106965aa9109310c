"""Unanswered calls: numbering, matching, the bound, deadlines behind one timer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cometmq.base.errors import CallTimedOut, ConnectionLost, TooManyInFlight
from cometmq.protocol.command import FLAG_RESPONSE, Command
from cometmq.remoting.pending import OPAQUE_MAX, PendingCalls


class HandTurnedLoop(asyncio.SelectorEventLoop):
    """Time moves when told to; timers fire then."""

    now = 100.0

    def __init__(self) -> None:
        super().__init__()
        self.timers: list[asyncio.TimerHandle] = []

    def time(self) -> float:
        return self.now

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self)
        self.timers.append(handle)
        return handle

    @property
    def waiting(self) -> list[asyncio.TimerHandle]:
        return [timer for timer in self.timers if not timer.cancelled()]

    def move_to(self, now: float) -> None:
        self.now = now
        for timer in self.waiting:
            if timer.when() <= now:
                self.timers.remove(timer)
                timer._run()


@pytest.fixture
def loop() -> Iterator[HandTurnedLoop]:
    loop = HandTurnedLoop()
    yield loop
    loop.close()


def reply_to(opaque: int) -> Command:
    return Command(0, flag=FLAG_RESPONSE, opaque=opaque)


def test_reply_reaches_its_own_caller_in_any_order(loop: HandTurnedLoop) -> None:
    pending = PendingCalls(loop, 10)
    first, first_future = pending.add(1, 103.0)
    second, second_future = pending.add(2, 103.0)

    assert pending.answer(reply_to(second))
    assert second_future.result().opaque == second
    assert not first_future.done()
    assert pending.answer(reply_to(first))
    assert first_future.result().opaque == first
    assert len(pending) == 0


def test_reply_that_nobody_waits_for_is_told_apart(loop: HandTurnedLoop) -> None:
    pending = PendingCalls(loop, 10)
    opaque, _ = pending.add(1, 103.0)

    assert not pending.answer(reply_to(opaque + 1))
    assert pending.answer(reply_to(opaque))
    assert not pending.answer(reply_to(opaque))


def test_reply_to_a_caller_who_gave_up_is_taken_without_error(loop: HandTurnedLoop) -> None:
    pending = PendingCalls(loop, 10)
    opaque, future = pending.add(1, 103.0)
    future.cancel()

    assert pending.answer(reply_to(opaque))


def test_the_bound_refuses_the_next_call_and_a_reply_makes_room(loop: HandTurnedLoop) -> None:
    pending = PendingCalls(loop, 2)
    opaque, _ = pending.add(1, 103.0)
    pending.add(1, 103.0)

    with pytest.raises(TooManyInFlight):
        pending.add(1, 103.0)
    pending.answer(reply_to(opaque))
    pending.add(1, 103.0)


def test_numbers_wrap_and_pass_over_those_in_use(loop: HandTurnedLoop) -> None:
    pending = PendingCalls(loop, 10, first_opaque=OPAQUE_MAX)

    assert pending.add(1, 103.0)[0] == OPAQUE_MAX
    assert pending.add(1, 103.0)[0] == 0
    again = PendingCalls(loop, 10, first_opaque=OPAQUE_MAX)
    again.add(1, 103.0)
    again._opaque = OPAQUE_MAX
    assert again.number() == 0


def test_many_calls_share_one_timer(loop: HandTurnedLoop) -> None:
    pending = PendingCalls(loop, 1000)
    for _ in range(500):
        pending.add(1, 103.0)

    assert len(loop.timers) == 1


def test_deadlines_pass_one_by_one(loop: HandTurnedLoop) -> None:
    pending = PendingCalls(loop, 10)
    late = pending.add(7, 110.0)[1]
    soon = pending.add(8, 101.0)[1]
    answered, answered_future = pending.add(9, 101.0)
    pending.answer(reply_to(answered))

    loop.move_to(101.0)

    assert isinstance(soon.exception(), CallTimedOut)
    assert "request 8" in str(soon.exception())
    assert answered_future.exception() is None
    assert not late.done()
    loop.move_to(110.0)
    assert isinstance(late.exception(), CallTimedOut)
    assert loop.waiting == []


def test_no_timer_is_left_when_all_are_answered(loop: HandTurnedLoop) -> None:
    pending = PendingCalls(loop, 10)
    opaque, _ = pending.add(1, 101.0)
    pending.answer(reply_to(opaque))

    loop.move_to(101.0)

    assert loop.waiting == []


def test_loss_of_the_connection_fails_every_call_and_stops_the_timer(loop: HandTurnedLoop) -> None:
    pending = PendingCalls(loop, 10)
    futures = [pending.add(1, 101.0 + n)[1] for n in range(3)]

    pending.fail_all("gone")

    errors = [future.exception() for future in futures]
    assert all(isinstance(error, ConnectionLost) for error in errors)
    assert len({id(error) for error in errors}) == 3
    assert loop.waiting == []
    assert len(pending) == 0


def test_a_forgotten_call_does_not_time_out(loop: HandTurnedLoop) -> None:
    pending = PendingCalls(loop, 10)
    opaque, future = pending.add(1, 101.0)

    pending.forget(opaque)
    loop.move_to(102.0)

    assert not future.done()
