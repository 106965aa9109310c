"""Carries out planned faults on a cluster, one after the other, and writes down when each began and ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from tests.chaos.judge.history import History
from tests.chaos.plan.faults import NETWORK, Fault
from tests.chaos.plan.schedule import PlannedFault
from tests.chaos.world.bit_rot import flip_a_bit
from tests.chaos.world.broker_host import BrokerHost
from tests.chaos.world.cluster import Cluster
from tests.chaos.world.network import links_under

EXTRA_ID: Final = 2


@dataclass(frozen=True, slots=True)
class Inflicted:
    kind: Fault
    target: str
    began: float
    ended: float
    note: str


class Inflictor:
    """Args: now: seconds since the run began."""

    def __init__(
        self,
        cluster: Cluster,
        history: History,
        now: Callable[[], float],
        tell: Callable[[str], None],
    ) -> None:
        self._cluster = cluster
        self._history = history
        self._now = now
        self._tell = tell
        self._extra_count = 0
        self.inflicted: list[Inflicted] = []
        self._acts: dict[Fault, Callable[[PlannedFault], Awaitable[str]]] = {
            Fault.KILL: self._kill,
            Fault.PAUSE: self._pause,
            Fault.NAME_SERVER: self._kill_name_server,
            Fault.FULL_DISK: self._full_disk,
            Fault.SYNC_FAILS: self._sync_fails,
            Fault.POWER_LOSS: self._power_loss,
            Fault.BIT_FLIP: self._bit_flip,
            Fault.CLOCK: self._clock,
            Fault.ROLLING: self._rolling_restart,
            Fault.ADD_REPLICA: self._add_replica,
            Fault.REMOVE_REPLICA: self._remove_replica,
            Fault.FAIL_OVER: self._fail_over,
            **dict.fromkeys(NETWORK, self._network),
        }

    async def run(self, planned: list[PlannedFault], until: float) -> None:
        """At the end everything is as it was: all run, all links are good."""
        for fault in planned:
            # A restart may take longer than planned; then the next fault comes later, or not at all.
            if self._now() > until:
                break
            await asyncio.sleep(max(0.0, fault.at - self._now()))
            began = self._now()
            self._tell(f"{fault.kind} {fault.target} {fault.amount or ''}")
            note = await self._acts[fault.kind](fault)
            self.inflicted.append(Inflicted(fault.kind, fault.target, began, self._now(), note))

    def _broker(self, fault: PlannedFault) -> BrokerHost:
        return self._cluster.brokers[fault.target]

    async def _kill(self, fault: PlannedFault) -> str:
        broker = self._broker(fault)
        await broker.process.kill()
        await self._come_back(broker, fault.seconds)
        return ""

    async def _come_back(self, broker: BrokerHost, seconds: float) -> None:
        self._cluster.note_down(broker)
        await asyncio.sleep(seconds)
        await self._cluster.start_broker(broker)

    async def _pause(self, fault: PlannedFault) -> str:
        process = self._broker(fault).process
        process.pause()
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            process.resume()
        return ""

    async def _kill_name_server(self, fault: PlannedFault) -> str:
        await self._cluster.name_server.kill()
        await asyncio.sleep(fault.seconds)
        await self._cluster.start_name_server()
        return ""

    async def _network(self, fault: PlannedFault) -> str:
        cluster = self._cluster
        links = links_under(fault.kind, fault.target, fault.amount, cluster.hosts)
        await cluster.network.set_links(links)
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            await cluster.network.set_links({})
        return f"{fault.amount:g}" if fault.amount else ""

    async def _full_disk(self, fault: PlannedFault) -> str:
        broker = self._broker(fault)
        broker.fill_disk()
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            broker.free_disk()
        if broker.process.is_running:
            return ""
        # A service manager starts it again.
        await broker.process.kill()
        await self._come_back(broker, 0.0)
        return "it had ended itself"

    async def _sync_fails(self, fault: PlannedFault) -> str:
        broker = self._broker(fault)
        broker.machine.fail_syncs(True)
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            broker.machine.fail_syncs(False)
        # After a failed sync nobody knows what is on disk. Ours takes no message until somebody has restarted it.
        await broker.process.stop()
        await self._come_back(broker, 0.0)
        return "restarted"

    async def _power_loss(self, fault: PlannedFault) -> str:
        broker = self._broker(fault)
        note = await broker.lose_power(Random(fault.seed))
        await self._come_back(broker, fault.seconds)
        return note

    async def _bit_flip(self, fault: PlannedFault) -> str:
        broker = self._broker(fault)
        await broker.process.stop()
        flipped = flip_a_bit(broker.store, Random(fault.seed))
        if not any(each is not broker for each in self._cluster.group(broker.group)):
            self._history.damaged.update(flipped.ids)
        await self._come_back(broker, fault.seconds)
        return flipped.what

    async def _clock(self, fault: PlannedFault) -> str:
        machine = self._broker(fault).machine
        machine.jump_clock(fault.amount)
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            machine.jump_clock(0)
        return f"{fault.amount:+g} s"

    async def _rolling_restart(self, fault: PlannedFault) -> str:
        for broker in list(self._cluster.brokers.values()):
            await broker.process.stop()
            await self._come_back(broker, 0.0)
            await asyncio.sleep(1.0)
        return ""

    async def _add_replica(self, fault: PlannedFault) -> str:
        cluster = self._cluster
        if self._extra(fault.target) is not None:
            return "already there"
        # A host stays in the network when its broker is removed, so each one has a name of its own.
        self._extra_count += 1
        name = f"{fault.target}x{self._extra_count}"
        broker = await cluster.add_broker(name, fault.target, EXTRA_ID)
        await cluster.start_broker(broker)
        await asyncio.sleep(fault.seconds)
        return ""

    async def _remove_replica(self, fault: PlannedFault) -> str:
        broker = self._extra(fault.target)
        if broker is None:
            return "there is none"
        del self._cluster.brokers[broker.name]
        self._cluster.note_down(broker)
        await broker.remove()
        await asyncio.sleep(fault.seconds)
        return ""

    def _extra(self, group: str) -> BrokerHost | None:
        extra = (each for each in self._cluster.group(group) if each.broker_id == EXTRA_ID)
        return next(extra, None)

    async def _fail_over(self, fault: PlannedFault) -> str:
        """As an operator does it by hand: the dead master's slave is configured as master and restarted, and the old
        master comes back as its slave."""
        cluster = self._cluster
        old = cluster.master(fault.target)
        new = next(broker for broker in cluster.group(fault.target) if broker.broker_id == 1)
        note = await old.lose_power(Random(fault.seed))
        cluster.note_down(old)
        await asyncio.sleep(fault.seconds)
        await new.process.stop()
        cluster.note_down(new)
        old.broker_id, new.broker_id = new.broker_id, 0
        await cluster.start_broker(new)
        await cluster.start_broker(old)
        return f"{old.name} to {new.name}, {note}"
