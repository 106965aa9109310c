"""What happens to a group that loses its master, on a cluster that only writes down what is asked of it."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path
from random import Random
from typing import cast

import pytest
from tests.chaos.judge.history import History
from tests.chaos.plan.faults import Fault
from tests.chaos.plan.modes import MODES, Mode
from tests.chaos.plan.schedule import PlannedFault
from tests.chaos.world.broker_host import BrokerHost
from tests.chaos.world.cluster import Cluster
from tests.chaos.world.inflict import Inflicted, Inflictor


class FakeBroker:
    def __init__(self, told: list[str], directory: Path, name: str, broker_id: int) -> None:
        self.name, self.group, self.broker_id = name, "b1", broker_id
        self.store = directory / name
        self.process = self
        self._told = told

    @property
    def is_master(self) -> bool:
        return self.broker_id == 0

    def has_log(self, record_count: int) -> None:
        log = self.store / "commitlog"
        log.mkdir(parents=True)
        (log / f"{0:020}").write_bytes(struct.pack(">iI", 8, 0xDAA320A7) * record_count)

    async def stop(self) -> None:
        self._told.append(f"stop {self.name}")

    async def lose_power(self, random: Random) -> str:
        self._told.append(f"power {self.name}")
        return "pages"

    async def lose_disk(self) -> None:
        self._told.append(f"disk {self.name}")


class FakeCluster:
    def __init__(self, mode: Mode, directory: Path) -> None:
        self.mode = mode
        self.told: list[str] = []
        self.is_behind = False
        self._directory = directory
        self.brokers: dict[str, FakeBroker] = {}

    async def add_broker(self, name: str, group: str, broker_id: int) -> FakeBroker:
        broker = FakeBroker(self.told, self._directory, name, broker_id)
        self.brokers[name] = broker
        return broker

    def group(self, name: str) -> list[FakeBroker]:
        return list(self.brokers.values())

    def master(self, group: str) -> FakeBroker:
        return next(broker for broker in self.brokers.values() if broker.is_master)

    async def behind(self, group: str) -> list[str]:
        self.told.append(f"wait {group}")
        return ["b1s1"] if self.is_behind else []

    async def create_topics_again(self) -> None:
        self.told.append("topics")

    async def start_broker(self, broker: BrokerHost) -> None:
        self.told.append(f"start {broker.name} as {broker.broker_id}")

    def note_down(self, broker: BrokerHost) -> None:
        pass


def inflict(cluster: FakeCluster, kind: Fault) -> Inflicted:
    inflictor = Inflictor(cast("Cluster", cluster), History(), lambda: 5.0, lambda _: None)
    asyncio.run(inflictor.run([PlannedFault(5.0, 0.0, kind, "b1", 0.0, 1)], until=60.0))
    [inflicted] = inflictor.inflicted
    return inflicted


@pytest.fixture
def group(tmp_path: Path) -> FakeCluster:
    cluster = FakeCluster(MODES["sync-master"], tmp_path)
    asyncio.run(cluster.add_broker("b1", "b1", 0))
    asyncio.run(cluster.add_broker("b1s1", "b1", 1))
    return cluster


def test_an_empty_machine_becomes_the_slave_of_the_promoted_one(group: FakeCluster) -> None:
    inflict(group, Fault.DISK_LOST)
    assert group.told == [
        "wait b1",
        "disk b1",
        "stop b1s1",
        "start b1s1 as 0",
        "start b1 as 1",
    ]


def test_a_fail_over_keeps_the_disk(group: FakeCluster) -> None:
    inflict(group, Fault.FAIL_OVER)
    assert "power b1" in group.told
    assert "disk b1" not in group.told


def test_without_a_slave_a_lost_disk_is_an_empty_one_with_new_topics(tmp_path: Path) -> None:
    cluster = FakeCluster(MODES["async-flush"], tmp_path)
    asyncio.run(cluster.add_broker("b1", "b1", 0))
    inflict(cluster, Fault.DISK_LOST)
    assert cluster.told == ["wait b1", "disk b1", "start b1 as 0", "topics"]


def test_a_slave_that_is_not_ready_is_named(group: FakeCluster) -> None:
    group.is_behind = True
    assert inflict(group, Fault.DISK_LOST).note == "b1 to b1s1, b1s1 still behind"


def test_the_slave_that_has_most_is_promoted(group: FakeCluster) -> None:
    inflict(group, Fault.ADD_REPLICA)
    group.brokers["b1s1"].has_log(2)
    group.brokers["b1x1"].has_log(3)
    inflict(group, Fault.FAIL_OVER)
    ids = {name: broker.broker_id for name, broker in group.brokers.items()}
    assert ids == {"b1": 2, "b1s1": 1, "b1x1": 0}
    # It is still the one that came later, but a master does not leave.
    assert inflict(group, Fault.REMOVE_REPLICA).note == "it leads its group by now"
    assert "b1x1" in group.brokers
