from __future__ import annotations

from cometmq.broker.schedule.due_times import PRECISION_MS, DueTimes

WALL = 1_700_000_000_000


def due_times() -> DueTimes:
    return DueTimes(5000, wall_ms=WALL, monotonic_ms=1000)


def test_a_slow_first_put_does_not_make_all_that_follow_late() -> None:
    times = due_times()
    times.stored(0, WALL, 1000 + PRECISION_MS)
    times.stored(1, WALL + 50, 1050)
    assert times.due_ms(1, WALL + 50 + 5000) == 1050 + 5000
    assert len(times.anchors) == 1


def test_messages_of_an_earlier_life_wait_for_their_delay_at_most() -> None:
    times = due_times()
    assert times.due_ms(0, WALL + 4000) == 1000 + 4000
    assert times.due_ms(1, WALL + 3_600_000) == 1000 + 5000
    gone_from_the_settings = DueTimes(None, wall_ms=WALL, monotonic_ms=1000)
    assert gone_from_the_settings.due_ms(0, WALL + 3_600_000) == 1000 + 3_600_000


def test_an_anchor_counts_from_its_message_on() -> None:
    times = due_times()
    times.stored(7, WALL, 1000)
    times.stored(9, WALL + 3_600_000, 2000)
    assert times.due_ms(7, WALL + 5000) == 6000
    assert times.due_ms(8, WALL + 5000) == 6000
    assert times.due_ms(9, WALL + 3_605_000) == 7000
    assert len(times.anchors) == 1
