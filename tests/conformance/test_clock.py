"""What every clock promises, run on the real one and on the fake."""

from __future__ import annotations

import pytest

from cometmq.base.clock import SystemClock
from cometmq.base.ports import Clock
from cometmq.testing.fake_clock import FakeClock

AFTER_2023 = 1_690_000_000_000


@pytest.fixture(params=["system", "fake"])
def clock(request: pytest.FixtureRequest) -> Clock:
    return SystemClock() if request.param == "system" else FakeClock()


def test_wall_time_is_whole_milliseconds_since_1970(clock: Clock) -> None:
    now = clock.wall_ms()
    assert isinstance(now, int)
    assert AFTER_2023 < now < 10 * AFTER_2023


def test_monotonic_never_goes_back(clock: Clock) -> None:
    readings = [clock.monotonic() for _ in range(1000)]
    assert readings == sorted(readings)
    assert isinstance(readings[0], float)
