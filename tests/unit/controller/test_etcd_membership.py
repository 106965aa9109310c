"""Who leads: one at a time, another when its lease runs out or it stops, nobody without etcd."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.controller.fake_etcd import FakeEtcd
from tests.unit.controller.test_etcd_store import Stage

from cometmq.controller.peers import Peer
from cometmq.testing.fake_clock import FakeClock

LEADER = "/cometmq/controller/leader"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def both(clock: FakeClock) -> tuple[Stage, Stage]:
    """Two controllers, the first one leads."""
    etcd = FakeEtcd(clock.monotonic)
    first, second = Stage(etcd, clock), Stage(etcd, clock)
    second.own = Peer("n1", "127.0.0.1", 9879)
    for one in (first, second, first):
        one.run()
    return first, second


def test_one_leads_and_all_know_all(both: tuple[Stage, Stage]) -> None:
    for one in both:
        roster = one.side.members.roster()
        assert roster.leader == both[0].own
        assert roster.peers == (both[0].own, both[1].own)
    assert [one.side.members.leads for one in both] == [True, False]
    assert [one.leads for one in both] == [1, 0]


def test_another_leads_when_the_lease_has_run_out(
    both: tuple[Stage, Stage], clock: FakeClock
) -> None:
    first, second = both
    for _ in range(3):
        clock.advance(1)
        second.run()
    assert (first.side.members.leads, second.side.members.leads) == (False, True)
    assert second.side.members.roster().peers == (second.own,)
    first.run()
    assert first.side.members.roster().leader == second.own
    assert second.side.members.leads


def test_who_stops_gives_the_lease_back(both: tuple[Stage, Stage]) -> None:
    first, second = both
    first.run(first.side.members.resign())
    assert not first.side.members.leads
    second.run()
    assert second.side.members.leads


def test_without_etcd_nobody_leads_for_longer_than_a_lease(
    both: tuple[Stage, Stage], clock: FakeClock
) -> None:
    for one in both:
        one.down()
    for one in both:
        one.run()
        assert one.side.members.roster().leader == both[0].own
    clock.advance(3)
    for one in both:
        one.run()
        assert not one.side.members.leads
        assert one.side.members.roster().leader is None
        assert len(one.side.members.roster().peers) == 2
    for one in both:
        one.down(False)
    both[1].run()
    assert both[1].side.members.leads


def test_who_starts_again_takes_its_own_entry_over(
    both: tuple[Stage, Stage], clock: FakeClock
) -> None:
    again = Stage(both[0].etcd, clock)
    again.run()
    # The key is its own, but of a life that is over: somebody else may take it when it runs out.
    assert not again.side.members.leads
    clock.advance(3)
    again.run()
    assert again.side.members.leads


def test_two_of_one_name_are_told_apart(
    both: tuple[Stage, Stage], clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    double = Stage(both[0].etcd, clock)
    double.own = Peer("n0", "127.0.0.1", 7777)
    for _ in range(3):
        double.run()
    assert sum("controller name taken name=n0" in line for line in caplog.messages) == 1
    assert not double.side.members.leads
    both[1].run()
    assert both[1].side.members.roster().peers == (both[0].own, both[1].own)


@pytest.mark.parametrize("value", [b"", b"{", b'{"name":"n5"}', b'{"name":"n5","address":"x"}'])
def test_entries_of_others_that_make_no_sense_are_left_out(
    both: tuple[Stage, Stage], value: bytes
) -> None:
    first, second = both
    first.etcd.put("/cometmq/controller/controllers/n5", value)
    first.etcd.put(LEADER, value)
    second.run()
    roster = second.side.members.roster()
    assert (roster.leader, len(roster.peers)) == (second.own, 2)
    first.run()
    assert first.side.members.roster().leader == second.own


def test_a_full_etcd_gives_no_lease_but_is_read(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage(clock=clock)
    stage.etcd.is_full = True
    for _ in range(3):
        stage.run()
    assert not stage.side.members.leads
    assert asyncio.run(stage.store.read("bk")) is None
    assert sum(line.startswith("no lease") for line in caplog.messages) == 1
    stage.etcd.is_full = False
    stage.run()
    assert stage.side.members.leads
