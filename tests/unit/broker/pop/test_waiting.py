"""Pops that wait: who is woken, who runs out of time, who has no room."""

from __future__ import annotations

from typing import Any, cast

import pytest

from cometmq.broker.pop.pop_waiting import PopWaiting, Waiter
from cometmq.protocol.command import Command
from cometmq.remoting.bounds.reached import Reached
from cometmq.remoting.connection import Connection
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.fake_connection import FakeConnection
from cometmq.testing.fake_loop import FakeLoop


class Waiters:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.loop = FakeLoop(self.clock)
        self.runs: list[tuple[Waiter, bool]] = []
        self.waiting = PopWaiting(
            lambda waiter, is_over: self.runs.append((waiter, is_over)),
            clock=self.clock,
            loop=self.loop,
            reached=Reached(),
        )
        self.waiting.count_max = 10
        self.waiting.of_connection_max = 10
        self.waiting.bytes_max = 1 << 20
        self.waiting.of_group_max = 3

    def waiter(
        self, group: str = "g", queue_id: int = -1, seconds: float = 10, **more: Any
    ) -> Waiter:
        return Waiter(
            cast(Connection, more.pop("peer", FakeConnection())),
            Command(1),
            group=group,
            topic="T",
            queue_id=queue_id,
            deadline=self.clock.monotonic() + seconds,
            **more,
        )

    def arrived(self, topic: str = "T", queue_id: int = 0, tag: int = 0) -> list[Waiter]:
        self.waiting.arrived(topic, queue_id, 1, tag, 0, b"")
        self.loop.advance(0)
        woken = [waiter for waiter, is_over in self.runs if not is_over]
        self.runs.clear()
        return woken


@pytest.fixture
def rig() -> Waiters:
    return Waiters()


def test_one_message_wakes_one_of_each_group_in_turn(rig: Waiters) -> None:
    first, second, other = rig.waiter(), rig.waiter(), rig.waiter("h")
    for waiter in (first, second, other):
        assert rig.waiting.park(waiter)
    assert set(rig.arrived()) == {first, other}
    assert rig.arrived() == [second]
    assert rig.arrived() == []
    assert len(rig.waiting) == 0


def test_a_pop_of_one_queue_or_tag_is_woken_by_those_alone(rig: Waiters) -> None:
    waiter = rig.waiter(queue_id=1, tags={5})
    rig.waiting.park(waiter)
    assert rig.arrived(queue_id=0, tag=5) == []
    assert rig.arrived(queue_id=1, tag=6) == []
    assert rig.arrived(queue_id=1, tag=5) == [waiter]


@pytest.mark.parametrize("topic", ["%RETRY%g_T", "%RETRY%g+T"])
def test_a_message_to_be_tried_again_wakes_its_group(rig: Waiters, topic: str) -> None:
    waiter, other = rig.waiter(queue_id=1, tags={5}), rig.waiter("h")
    rig.waiting.park(waiter)
    rig.waiting.park(other)
    assert rig.arrived(topic) == [waiter]


def test_time_runs_out_once(rig: Waiters) -> None:
    late, soon = rig.waiter(seconds=20), rig.waiter(seconds=10)
    rig.waiting.park(late)
    rig.waiting.park(soon)
    rig.loop.advance(9.9)
    assert rig.runs == []
    rig.loop.advance(0.2)
    assert rig.runs == [(soon, True)]
    rig.loop.advance(60)
    assert rig.runs == [(soon, True), (late, True)]
    assert rig.loop.waiting == 0


def test_one_that_was_woken_in_vain_waits_for_the_rest_of_its_time(rig: Waiters) -> None:
    waiter = rig.waiter(seconds=10)
    rig.waiting.park(waiter)
    rig.loop.advance(6)
    assert rig.arrived() == [waiter]
    rig.waiting.park(waiter)
    rig.loop.advance(4.1)
    assert rig.runs == [(waiter, True)]


def test_no_more_than_there_is_room_for(rig: Waiters) -> None:
    assert [rig.waiting.park(rig.waiter()) for _ in range(4)] == [True, True, True, False]
    rig.waiting.count_max = 4
    assert [rig.waiting.park(rig.waiter(group)) for group in "hij"] == [True, False, False]
    assert rig.waiting.count("g", "T", -1) == 3
    assert rig.waiting.count("g", "T", 0) == 0


def test_a_closed_connection_waits_for_nothing(rig: Waiters) -> None:
    peer = FakeConnection()
    rig.waiting.park(rig.waiter(peer=peer))
    other = rig.waiter()
    rig.waiting.park(other)
    rig.waiting.forget(cast(Connection, peer))
    assert rig.arrived() == [other]


def test_a_stop_answers_everybody(rig: Waiters) -> None:
    waiters = [rig.waiter(group) for group in "ab"]
    for waiter in waiters:
        rig.waiting.park(waiter)
    rig.waiting.answer_all()
    assert rig.runs == [(waiter, True) for waiter in waiters]
    assert (len(rig.waiting), rig.loop.waiting) == (0, 0)


def test_entries_of_those_that_were_answered_do_not_pile_up(rig: Waiters) -> None:
    for _ in range(5000):
        rig.waiting.park(rig.waiter())
        assert len(rig.arrived()) == 1
    assert len(rig.waiting._deadlines) < 2000
