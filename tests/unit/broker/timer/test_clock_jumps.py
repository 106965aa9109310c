"""The wall clock is set: a delay stays as long as it is, a time of delivery is reached when the clock shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

import pytest
from tests.unit.broker.lives import came

from cometmq.broker.timer.lanes import LANES_MAX

MakeRig = Callable[..., Any]
HOUR = 3600
ENDINGS = ["none", "stop", "crash", "saved crash"]


async def start_again(rig: Any, ending: str) -> None:
    if ending == "stop":
        await rig.restart()
    elif ending == "saved crash":
        await rig.save()
        rig.crash()
    elif ending == "crash":
        rig.crash()


class TestDelays:
    @pytest.mark.parametrize("jump", [HOUR, -HOUR])
    def test_a_jump_makes_no_difference(self, rig: Any, jump: int) -> None:
        for number in range(6):
            rig.put_delay(b"%d" % number, 5)
            rig.advance(0.5)
            if number == 2:
                rig.clock.jump(jump)
        times = came(rig, 6)
        assert times == pytest.approx({b"%d" % number: 2 + number / 2 for number in range(6)})

    @pytest.mark.parametrize("ending", ENDINGS)
    async def test_forward_and_back_again(self, rig: Any, ending: str) -> None:
        rig.put_delay(b"before", 3)
        rig.clock.jump(HOUR)
        rig.advance(1)
        rig.put_delay(b"wrong clock", 3)
        rig.clock.jump(-HOUR)
        await start_again(rig, ending)
        rig.put_delay(b"after", 3)
        times = came(rig, 3)
        assert times[b"after"] == pytest.approx(3)
        if ending == "none":
            assert times[b"before"] == pytest.approx(2)
        assert times[b"before"] <= 3
        assert times[b"wrong clock"] <= 3
        rig.advance(2 * HOUR)
        assert len(rig.delivered()) == 3

    @pytest.mark.parametrize("ending", ["stop", "crash", "saved crash"])
    async def test_set_back_while_messages_wait_and_a_restart(self, rig: Any, ending: str) -> None:
        rig.put_delay(b"a", 3)
        rig.advance(1)
        rig.clock.jump(-HOUR)
        await start_again(rig, ending)
        assert came(rig, 1)[b"a"] <= 3

    async def test_a_clean_restart_after_a_jump_costs_nothing(self, rig: Any) -> None:
        rig.put_delay(b"early", 30)
        rig.clock.jump(HOUR)
        rig.put_delay(b"late", 40)
        rig.advance(10)
        await rig.restart()
        assert came(rig, 2, 40) == pytest.approx({b"early": 20, b"late": 30})

    async def test_the_clock_is_set_back_while_the_broker_is_down(self, rig: Any) -> None:
        rig.put_delay(b"a", 3)
        await rig.stop()
        rig.clock.jump(-HOUR)
        rig.open()
        rig.put_delay(b"b", 3)
        assert came(rig, 2) == pytest.approx({b"a": 3, b"b": 3})

    async def test_time_passes_while_the_broker_is_down(self, rig: Any) -> None:
        rig.put_delay(b"a", 3)
        rig.put_delay(b"b", 30)
        await rig.stop()
        rig.clock.advance(10)
        rig.open()
        assert came(rig, 2, 30) == pytest.approx({b"a": 0.1, b"b": 20})

    async def test_delays_of_days_are_kept_over_jumps_and_new_copies(
        self, rig: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("cometmq.broker.timer.timer_delivery.LOOK_SECONDS_MAX", 60.0)
        day = 86_400
        rig.put_delay(b"a", 7 * day)
        rig.advance(day)
        rig.clock.jump(HOUR)
        rig.advance(5 * day)
        await rig.restart()
        rig.advance(day - 1)
        assert rig.delivered() == []
        rig.advance(1.1)
        assert rig.delivered() == [b"a"]


class TestTimesOfDelivery:
    def test_a_clock_set_forward_reaches_them_at_once(self, rig: Any) -> None:
        rig.put(b"a", HOUR)
        rig.put(b"b", 2 * HOUR)
        rig.clock.jump(HOUR)
        assert came(rig, 1)[b"a"] <= 1.1
        rig.advance(HOUR)
        assert rig.delivered() == [b"a", b"b"]

    def test_a_clock_set_back_reaches_them_so_much_later(self, rig: Any) -> None:
        rig.put(b"a", 5)
        rig.clock.jump(-HOUR)
        rig.advance(HOUR + 4.9)
        assert rig.delivered() == []
        rig.advance(0.2)
        assert rig.delivered() == [b"a"]

    @pytest.mark.parametrize("ending", ENDINGS)
    async def test_forward_and_back_again(self, rig: Any, ending: str) -> None:
        """What comes after is not kept behind what was delivered by the wrong clock."""
        rig.put(b"before", 10)
        rig.clock.jump(HOUR)
        rig.advance(2)
        assert rig.delivered() == [b"before"]
        rig.clock.jump(-HOUR)
        await start_again(rig, ending)
        for seconds in (3, 1, 2):
            rig.put(b"%d" % seconds, seconds)
        await start_again(rig, ending)
        times = came(rig, 4)
        assert times == pytest.approx({b"before": 0, b"1": 1, b"2": 2, b"3": 3})
        rig.advance(2 * HOUR)
        assert rig.delivered() == [b"before", b"1", b"2", b"3"]


class TestRecalls:
    @pytest.mark.parametrize("jump", [HOUR, -HOUR])
    @pytest.mark.parametrize("is_delay", [True, False])
    @pytest.mark.parametrize("ending", ENDINGS)
    async def test_find_their_message_after_a_jump(
        self, rig: Any, jump: int, is_delay: bool, ending: str
    ) -> None:
        due = rig.now + 4000 * 1000
        put = rig.put_delay if is_delay else rig.put
        put(b"taken back", 4000)
        put(b"kept", 4000)
        rig.clock.jump(jump)
        rig.put_delay(b"other", 5)
        rig.recall(b"taken back", due)
        await start_again(rig, ending)
        rig.advance(3 * HOUR)
        assert sorted(rig.delivered()) == [b"kept", b"other"]


async def test_a_clock_that_is_set_all_the_time_costs_bounded_files(rig: Any) -> None:
    for number in range(3 * LANES_MAX):
        rig.put_delay(b"%d" % number, 20)
        rig.clock.jump(60)
        rig.advance(0.01)
    await rig.save()
    assert len(rig.timed._lanes) <= LANES_MAX
    rig.advance(30)
    assert len(rig.delivered()) == 3 * LANES_MAX
    await rig.save()
    assert len(rig.timed._lanes) <= 2, "what is empty is let go"
    names = [name for name in rig.files.names("/store/timer") if name.startswith("lane")]
    assert len(names) <= 1


async def test_the_files_of_a_lane_that_was_let_go_are_not_those_of_a_new_one(rig: Any) -> None:
    rig.put_delay(b"a", 1)
    rig.clock.jump(HOUR)
    rig.put_delay(b"b", 3)
    rig.advance(1)
    (gone,) = rig.timed._lanes.let_go()
    rig.clock.jump(HOUR)
    rig.put_delay(b"c", 3)
    assert gone.number not in [lane.number for lane in rig.timed._lanes]
    rig.timed._lanes.remove(gone)
    await rig.save()
    rig.crash()
    rig.advance(3)
    assert rig.delivered() == [b"a", b"b", b"c"]


async def test_a_clock_that_is_not_set_needs_one_lane_for_delays(rig: Any) -> None:
    for _ in range(100):
        rig.put_delay(b"x", 5)
        rig.advance(3)
        await rig.restart()
    assert len(rig.timed._lanes) == 2


@pytest.mark.parametrize("seed", range(20))
async def test_any_jumps_and_ends_lose_and_repeat_nothing(make_rig: MakeRig, seed: int) -> None:
    chance = Random(seed)
    rig = make_rig()
    numbers = count()
    for _ in range(60):
        body = b"%d" % next(numbers)
        seconds = chance.choice([0.5, 3, 60, 700, 4000])
        chance.choice([rig.put, rig.put_delay])(body, seconds)
        rig.advance(chance.choice([0, 0.1, 1, 7, 300]))
        if chance.random() < 0.2:
            rig.clock.jump(chance.choice([-HOUR, -60, -1, 1, 60, HOUR]))
        if chance.random() < 0.1:
            await rig.save()
        if chance.random() < 0.1:
            await start_again(rig, chance.choice(["stop", "crash"]))
    rig.advance(15 * HOUR)
    assert Counter(rig.delivered()) == Counter(b"%d" % number for number in range(60))
    assert rig.timed.waiting_count == 0
