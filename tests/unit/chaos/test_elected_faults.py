"""What happens to a group whose master is elected, on a cluster that only writes down what is asked of it."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any, cast

import pytest
from tests.chaos.plan.faults import NEEDS_CONTROLLERS, TOGETHER, Fault
from tests.chaos.plan.modes import MODES
from tests.chaos.plan.schedule import PlannedFault
from tests.chaos.world import elected_faults
from tests.chaos.world.cluster import Cluster
from tests.chaos.world.elected_faults import ElectedFaults


class FakeHost:
    """A broker, a controller, a member of etcd. What it does is written down."""

    def __init__(self, told: list[str], name: str) -> None:
        self.name, self.group, self.address = name, "b1", f"{name}:1"
        self.process = self.machine = self
        self._told = told

    def _tell(self, what: str) -> None:
        self._told.append(f"{what} {self.name}")

    async def start(self) -> None:
        self._tell("start")

    async def stop(self) -> None:
        self._tell("stop")

    async def kill(self) -> None:
        self._tell("kill")

    def pause(self) -> None:
        self._tell("pause")

    def resume(self) -> None:
        self._tell("resume")

    async def lose_power(self, random: Random) -> str:
        self._tell("power")
        return "pages"

    async def lose_disk(self) -> None:
        self._tell("disk")

    def jump_clock(self, seconds: float) -> None:
        self._tell(f"clock {seconds:g}")


class FakeCluster:
    """Each question who the master is gets the next epoch, unless nobody is elected."""

    mode = MODES["controllers-etcd"]

    def __init__(self) -> None:
        self.told: list[str] = []
        self.is_elected = True
        self._epoch = 1
        self.brokers = {name: FakeHost(self.told, name) for name in ("b1", "b1s1", "b1s2")}
        self.hosts = {name: FakeHost(self.told, name) for name in ("c1", "c2", "c3")}
        self.etcd = {name: FakeHost(self.told, name) for name in ("e1", "e2", "e3")}
        self.name_server = FakeHost(self.told, "n1")
        self.controllers = self.watch = self.network = self

    def epoch(self, group: str) -> int:
        return self._epoch

    def master(self, group: str) -> FakeHost:
        return list(self.brokers.values())[self._epoch - 1]

    def slaves(self, group: str) -> list[FakeHost]:
        return [broker for broker in self.brokers.values() if broker is not self.master(group)]

    def everybody(self) -> list[FakeHost]:
        return [*self.etcd.values(), *self.hosts.values()]

    async def in_sync(self, group: str) -> dict[str, int]:
        return {broker.address: number for number, broker in enumerate(self.brokers.values(), 1)}

    async def elect(self, group: str, cluster: str, broker_id: int) -> str:
        self.told.append(f"elect {broker_id} of {cluster}")
        return "elected"

    async def behind(self, group: str) -> list[str]:
        self.told.append("wait")
        return []

    async def start_broker(self, broker: FakeHost) -> None:
        await broker.start()

    async def start_name_server(self) -> None:
        await self.name_server.start()

    def note_down(self, broker: FakeHost) -> None:
        self._epoch += self.is_elected

    def note_role(self, host: str, role: str) -> None:
        pass

    async def set_links(self, links: Any) -> None:
        cut = sorted({name for pair in links for name in pair})
        self.told.append(f"cut {len(links)} links of {' '.join(cut)}" if links else "links good")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    for name in ("SETTLE_SECONDS", "SECOND_SECONDS", "POLL_SECONDS", "ELECTED_SECONDS_MAX"):
        monkeypatch.setattr(elected_faults, name, 0.0)
    return FakeCluster()


def inflict(cluster: FakeCluster, kind: Fault, target: str, amount: float = 0.0) -> str:
    parts = tuple(
        PlannedFault(
            0.0,
            0.0,
            part,
            "b1" if part in (Fault.MASTER_KILL, Fault.MASTER_PAUSE) else target,
            0.0,
            1,
        )
        for part in TOGETHER.get(kind, ())
    )
    fault = PlannedFault(0.0, 0.0, kind, target, amount, 1, parts)

    async def act() -> str:
        return await ElectedFaults(cast("Cluster", cluster)).acts[kind](fault)

    return asyncio.run(act())


def test_there_is_an_act_for_every_fault_of_controllers(cluster: FakeCluster) -> None:
    assert ElectedFaults(cast("Cluster", cluster)).acts.keys() >= NEEDS_CONTROLLERS


def test_nobody_is_promoted_by_hand(cluster: FakeCluster) -> None:
    assert inflict(cluster, Fault.MASTER_KILL, "b1") == "b1 to b1s1, epoch 2"
    assert cluster.told == ["kill b1", "start b1"]


def test_a_group_without_an_election_is_told_as_such(cluster: FakeCluster) -> None:
    cluster.is_elected = False
    assert inflict(cluster, Fault.DISK_LOST, "b1") == "no election"
    assert cluster.told == ["disk b1", "start b1"]


def test_a_machine_without_power_is_silent_until_another_is_master(cluster: FakeCluster) -> None:
    cluster.hosts = cast("Any", ["clients", "n1", "b1", "b1s1"])
    assert inflict(cluster, Fault.FAIL_OVER, "b1") == "b1 to b1s1, epoch 2, pages"
    assert cluster.told == [
        "cut 6 links of b1 b1s1 clients n1",
        "power b1",
        "links good",
        "start b1",
    ]


def test_the_master_and_one_other_go_at_once(cluster: FakeCluster) -> None:
    inflict(cluster, Fault.MASTER_AND_REPLICA, "b1")
    killed, others = cluster.told[:2], cluster.told[2:]
    assert killed[0] == "kill b1"
    assert killed[1] in ("kill b1s1", "kill b1s2")
    assert sorted(others) == sorted(each.replace("kill", "start") for each in killed)


def test_a_switch_over_names_a_replica_that_is_in_sync(cluster: FakeCluster) -> None:
    note = inflict(cluster, Fault.SWITCH_OVER, "b1")
    new = note.removeprefix("b1 to ").removesuffix(": elected")
    assert cluster.told == [f"elect {['b1', 'b1s1', 'b1s2'].index(new) + 1} of chaos"]


def test_only_the_links_that_are_meant_are_cut(cluster: FakeCluster) -> None:
    cluster.is_elected = False
    inflict(cluster, Fault.CUT_MASTER_CONTROLLERS, "b1")
    inflict(cluster, Fault.CUT_CONTROLLER_ETCD, "c2")
    assert cluster.told == [
        "cut 6 links of b1 c1 c2 c3",
        "links good",
        "cut 6 links of c2 e1 e2 e3",
        "links good",
    ]


def test_all_of_etcd_stops_and_comes_back(cluster: FakeCluster) -> None:
    assert inflict(cluster, Fault.ETCD_GONE, "etcd") == "no election"
    assert cluster.told == [
        f"{what} e{number}" for what in ("stop", "start") for number in (1, 2, 3)
    ]


def test_two_failures_at_once(cluster: FakeCluster) -> None:
    inflict(cluster, Fault.MASTER_AND_ETCD, "e2")
    assert cluster.told[0] == "kill e2"
    assert set(cluster.told) == {"kill e2", "start e2", "kill b1", "start b1"}


def test_the_clock_of_a_controller_jumps_and_is_put_right(cluster: FakeCluster) -> None:
    assert inflict(cluster, Fault.CLOCK, "c3", 30.0) == "+30 s"
    inflict(cluster, Fault.CLOCK, "b1s1", -9.0)
    assert cluster.told == ["clock 30 c3", "clock 0 c3", "clock -9 b1s1", "clock 0 b1s1"]


def test_an_upgrade_restarts_everything_and_waits_between_brokers(cluster: FakeCluster) -> None:
    inflict(cluster, Fault.ROLLING, "all")
    hosts = ["e1", "e2", "e3", "c1", "c2", "c3", "n1"]
    expected = [f"{what} {host}" for host in hosts for what in ("stop", "start")]
    for broker in ("b1", "b1s1", "b1s2"):
        expected += [f"stop {broker}", f"start {broker}", "wait"]
    assert cluster.told == expected
