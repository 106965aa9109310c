"""Carries out planned faults on a cluster, one after the other, and writes down when each began and ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from random import Random

from tests.chaos.judge.history import Bound, History
from tests.chaos.judge.log_compare import end_of
from tests.chaos.plan.faults import NETWORK, OF_A_MASTER, Fault
from tests.chaos.plan.schedule import PlannedFault, begin_of, broker_names, group_names
from tests.chaos.world.bit_rot import flip_a_bit
from tests.chaos.world.broker_host import BrokerHost
from tests.chaos.world.cluster import Cluster
from tests.chaos.world.elected_faults import ElectedFaults
from tests.chaos.world.network import links_under


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
            Fault.DISK_LOST: self._disk_lost,
            **dict.fromkeys(NETWORK, self._network),
        }
        if cluster.mode.controllers:
            # Who is master is not ours to say there: some faults are other acts, and there are more of them.
            self._acts |= ElectedFaults(cluster).acts

    async def run(self, planned: list[PlannedFault], until: float) -> None:
        """At the end everything is as it was: all run, all links are good."""
        for fault in planned:
            # A restart may take longer than planned; then the next fault comes later, or not at all.
            if self._now() > until:
                break
            ended = self.inflicted[-1].ended if self.inflicted else 0.0
            await asyncio.sleep(max(0.0, begin_of(fault, ended) - self._now()))
            lacking = await self._wait_for_slaves(fault)
            began = self._now()
            self._tell(f"{fault.kind} {fault.target} {fault.amount or ''}")
            note = await self._acts[fault.kind](fault) + lacking
            self.inflicted.append(Inflicted(fault.kind, fault.target, began, self._now(), note))
            seconds = self._cluster.mode.goes_on_within(fault.kind)
            if seconds is not None:
                what = f"{fault.kind} {fault.target}"
                self._history.bounds.append(Bound(began, self._now(), what, seconds))

    async def _wait_for_slaves(self, fault: PlannedFault) -> str:
        """The promises are about one fault at a time: what the last one did to a slave is made good before the master
        goes. Where controllers elect, any broker may be the master, and the only one that has everything. Returns who
        is not ready all the same, for the report."""
        cluster = self._cluster
        if cluster.mode.controllers:
            groups = group_names(cluster.mode)
        else:
            groups = [fault.target] if fault.kind in OF_A_MASTER else []
        behind = [name for group in groups for name in await cluster.behind(group)]
        return f", {' and '.join(behind)} still behind" if behind else ""

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
        taken = {each.broker_id for each in cluster.group(fault.target)}
        free = next(number for number in count(1) if number not in taken)
        broker = await cluster.add_broker(name, fault.target, free)
        await cluster.start_broker(broker)
        await asyncio.sleep(fault.seconds)
        return ""

    async def _remove_replica(self, fault: PlannedFault) -> str:
        broker = self._extra(fault.target)
        if broker is None:
            return "there is none"
        if broker is self._cluster.master(fault.target):
            return "it leads its group by now"
        del self._cluster.brokers[broker.name]
        self._cluster.note_down(broker)
        await broker.remove()
        await asyncio.sleep(fault.seconds)
        return ""

    def _extra(self, group: str) -> BrokerHost | None:
        """By its name: ids change hands when a slave is promoted."""
        planned = broker_names(self._cluster.mode)
        return next((each for each in self._cluster.group(group) if each.name not in planned), None)

    async def _fail_over(self, fault: PlannedFault) -> str:
        old = self._cluster.master(fault.target)
        note = await old.lose_power(Random(fault.seed))
        return f"{await self._promote_slave(old, fault.seconds)}, {note}"

    async def _disk_lost(self, fault: PlannedFault) -> str:
        old = self._cluster.master(fault.target)
        await old.lose_disk()
        if self._cluster.mode.slaves:
            return await self._promote_slave(old, fault.seconds)
        await self._come_back(old, fault.seconds)
        await self._cluster.create_topics_again()
        return "begins again, empty"

    async def _promote_slave(self, old: BrokerHost, seconds: float) -> str:
        """As an operator does it by hand: the dead master's slave is configured as master and restarted, and the old
        master, or what is there in its place, comes back as its slave."""
        cluster = self._cluster
        cluster.note_down(old)
        await asyncio.sleep(seconds)
        # Of several slaves the one that has most: a SYNC_MASTER answers when one of them has a message.
        slaves = [broker for broker in cluster.group(old.group) if broker is not old]
        new = max(slaves, key=lambda slave: end_of(slave.store / "commitlog"))
        await new.process.stop()
        cluster.note_down(new)
        old.broker_id, new.broker_id = new.broker_id, 0
        await cluster.start_broker(new)
        await cluster.start_broker(old)
        return f"{old.name} to {new.name}"
