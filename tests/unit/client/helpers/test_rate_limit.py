"""A limit spaces messages evenly, whoever waits for them."""

from __future__ import annotations

import asyncio

import pytest

from cometmq.base.errors import UsageError
from cometmq.client.helpers.rate_limit import RateLimit
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.testing.fake_clock import FakeClock


def _message() -> ReceivedMessage:
    return ReceivedMessage(topic="T", body=b"x")


def test_places_in_the_row_are_evenly_spaced() -> None:
    limit = RateLimit(10, clock=FakeClock())
    assert [limit.reserve() for _ in range(4)] == pytest.approx([0, 0.1, 0.2, 0.3])


def test_a_pause_saves_up_no_more_than_the_burst() -> None:
    clock = FakeClock()
    limit = RateLimit(10, burst=3, clock=clock)
    assert [limit.reserve() for _ in range(4)] == pytest.approx([0, 0, 0, 0.1])
    clock.advance(1000)
    assert [limit.reserve() for _ in range(4)] == pytest.approx([0, 0, 0, 0.1])


def test_time_that_passes_serves_those_who_wait() -> None:
    clock = FakeClock()
    limit = RateLimit(2, clock=clock)
    limit.reserve(3)
    clock.advance(1.0)
    assert limit.reserve() == pytest.approx(0.5)


def test_the_rate_holds_over_a_long_time() -> None:
    clock = FakeClock()
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock.advance(seconds)

    limit = RateLimit(50, clock=clock, sleep=sleep)
    for _ in range(501):
        limit.wait()
    assert clock.monotonic() == pytest.approx(10.0, abs=0.05)
    assert max(slept) <= 0.021


def test_a_plain_listener_waits_and_a_batch_counts_as_many() -> None:
    clock = FakeClock()
    slept: list[float] = []
    limit = RateLimit(4, clock=clock, sleep=slept.append)
    listener = limit.around(lambda messages: len(messages))
    assert listener([_message()] * 3) == 3
    assert listener([_message()]) == 1
    assert slept == pytest.approx([0.5, 0.75])


@pytest.mark.simulated_time
async def test_an_async_listener_waits_without_blocking() -> None:
    seen: list[ReceivedMessage] = []

    async def handle(message: ReceivedMessage) -> str:
        seen.append(message)
        return "done"

    # Its clock stands still while all of them reserve.
    listener = RateLimit(200, clock=FakeClock()).around(handle)
    loop = asyncio.get_running_loop()
    started = loop.time()
    assert await asyncio.gather(*(listener(_message()) for _ in range(11))) == ["done"] * 11
    assert loop.time() - started >= 0.049
    assert len(seen) == 11


@pytest.mark.parametrize(("per_second", "burst"), [(0, 1), (-1, 1), (float("nan"), 1), (1, 0)])
def test_senseless_limits_are_refused(per_second: float, burst: int) -> None:
    with pytest.raises(UsageError, match="expected a rate"):
        RateLimit(per_second, burst=burst)
