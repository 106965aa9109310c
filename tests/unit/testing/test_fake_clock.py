from __future__ import annotations

from cometmq.testing.fake_clock import FakeClock


def test_it_stands_still_until_told() -> None:
    clock = FakeClock(1000)
    assert (clock.wall_ms(), clock.monotonic()) == (1000, 0.0)
    clock.advance(1.5)
    assert (clock.wall_ms(), clock.monotonic()) == (2500, 1.5)


def test_a_jump_moves_the_wall_clock_only() -> None:
    clock = FakeClock(1000)
    clock.jump(-1)
    assert (clock.wall_ms(), clock.monotonic()) == (0, 0.0)
