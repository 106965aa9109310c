"""A loop whose time passes when told: what is due happens in order, at its time, and once."""

from __future__ import annotations

import pytest

from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.fake_loop import FakeLoop


@pytest.fixture
def loop() -> FakeLoop:
    return FakeLoop(FakeClock())


def test_timers_go_off_in_the_order_of_their_times(loop: FakeLoop) -> None:
    seen: list[tuple[str, float]] = []
    for name, seconds in (("late", 2.0), ("soon", 1.0), ("also soon", 1.0), ("later", 9.0)):
        loop.call_later(
            seconds,
            lambda name=name: seen.append((name, loop._clock.monotonic())),  # type: ignore[misc]
        )
    loop.advance(5)
    assert seen == [("soon", 1.0), ("also soon", 1.0), ("late", 2.0)]
    assert (loop.fired, loop.waiting, loop._clock.monotonic()) == (3, 1, 5.0)


def test_a_timer_that_a_timer_sets_goes_off_in_the_same_time(loop: FakeLoop) -> None:
    seen: list[float] = []

    def again() -> None:
        seen.append(loop._clock.monotonic())
        loop.call_later(1, again)

    loop.call_later(1, again)
    loop.advance(3)
    assert seen == [1.0, 2.0, 3.0]


def test_a_cancelled_timer_does_not_go_off(loop: FakeLoop) -> None:
    loop.call_later(1, pytest.fail).cancel()
    loop.advance(2)
    assert (loop.fired, loop.waiting) == (0, 0)


def test_a_turn_runs_what_is_there_and_not_what_that_adds(loop: FakeLoop) -> None:
    seen: list[str] = []

    def first() -> None:
        seen.append("first")
        loop.call_soon(lambda: seen.append("second"))

    loop.call_soon(first)
    loop.turn()
    assert seen == ["first"]
    loop.advance(0)
    assert seen == ["first", "second"]
