"""A delay is a span of time: setting the wall clock makes it neither longer nor shorter."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.broker.lives import came

HOUR = 3600


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_of_a_row_of_messages_each_comes_at_its_own_time(rig: Any, jump: int) -> None:
    """Level 2 takes 5 s. They are put half a second apart, and the clock is set in the middle."""
    for number in range(6):
        rig.put(b"%d" % number, level=2)
        rig.advance(0.5)
        if number == 2:
            rig.clock.jump(jump)
    times = came(rig, 6)
    assert times == pytest.approx({b"%d" % number: 2 + number / 2 for number in range(6)})


def test_forward_and_back_again(rig: Any) -> None:
    rig.put(b"before", level=2)
    rig.clock.jump(HOUR)
    rig.advance(1)
    rig.put(b"wrong clock", level=2)
    rig.clock.jump(-HOUR)
    rig.advance(1)
    for number in range(5):
        rig.put(b"%d" % number, level=1)
        rig.put(b"after %d" % number, level=2)
        rig.advance(0.1)
    times = came(rig, 12)
    assert times[b"before"] == pytest.approx(5 - 2.5)
    assert times[b"wrong clock"] == pytest.approx(5 - 1.5)
    for number in range(5):
        assert times[b"%d" % number] == pytest.approx(1 - 0.5 + number / 10)
        assert times[b"after %d" % number] == pytest.approx(5 - 0.5 + number / 10)


def test_an_hour_with_a_clock_behind_the_log(rig: Any) -> None:
    """The log's times do not go back: for an hour all messages bear the same one."""
    rig.put(b"first", level=1)
    rig.clock.jump(-HOUR)
    put_at: dict[bytes, float] = {}
    for number in range(300):
        body = b"%d" % number
        rig.put(body, level=3)
        put_at[body] = rig.clock.monotonic()
        rig.advance(0.7)
        for one in rig.delivered():
            if one in put_at:
                late = rig.clock.monotonic() - put_at.pop(one) - 60
                assert -0.1 <= late <= 0.8, (one, late)
    assert len(put_at) < 90
    assert rig.loop.waiting == 1
    level = rig.schedule._delivery._levels[3]
    assert len(level.due_times.anchors) < 300, "what is delivered needs no anchor"


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
@pytest.mark.parametrize("ending", ["stop", "crash"])
async def test_with_a_restart_nothing_waits_longer_than_its_delay_or_is_lost_or_repeated(
    rig: Any, jump: int, ending: str
) -> None:
    bodies = [b"%d" % number for number in range(5)]
    for body in bodies:
        rig.put(body, level=2)
        rig.advance(0.1)
    rig.clock.jump(jump)
    rig.put(b"last", level=2)
    if ending == "stop":
        await rig.restart()
    else:
        rig.crash()
    times = came(rig, 6)
    assert max(times.values()) <= 5
    assert rig.delivered() == [*bodies, b"last"]
    rig.advance(2 * HOUR)
    assert rig.delivered() == [*bodies, b"last"]


async def test_the_clock_is_set_back_while_the_broker_is_down(rig: Any) -> None:
    for number in range(5):
        rig.put(b"%d" % number, level=2)
    await rig.stop()
    rig.clock.jump(-HOUR)
    rig.open()
    rig.put(b"new", level=1)
    times = came(rig, 6)
    assert times.pop(b"new") == pytest.approx(1)
    assert set(times.values()) == {5}


def test_a_clock_that_jumps_all_the_time_costs_bounded_memory(
    rig: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cometmq.broker.schedule.due_times.ANCHORS_MAX", 10)
    for number in range(50):
        rig.clock.jump(HOUR)
        rig.put(b"%d" % number, level=2)
    assert len(rig.schedule._delivery._levels[2].due_times.anchors) <= 10
    rig.advance(5)
    assert len(rig.delivered()) == 50
