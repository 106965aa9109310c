"""What happens to groups whose masters are elected: nobody promotes by hand, and those who elect fail, too."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final

from tests.chaos.plan.faults import TOGETHER, Fault
from tests.chaos.plan.schedule import LEASE_SECONDS, SCAN_SECONDS, PlannedFault, group_names
from tests.chaos.world.broker_host import SETTINGS, BrokerHost
from tests.chaos.world.cluster import Cluster
from tests.chaos.world.controller_host import ControllerHost
from tests.chaos.world.etcd_host import EtcdHost
from tests.chaos.world.network import Links, cut_between, links_under
from tests.chaos.world.processes import ServerProcess

Act = Callable[[PlannedFault], Awaitable[str]]

ELECTED_SECONDS_MAX: Final = LEASE_SECONDS + 4 * SCAN_SECONDS
POLL_SECONDS: Final = 0.1
SETTLE_SECONDS: Final = 1.0
SECOND_SECONDS: Final = 0.5
"""The second of two failures begins so long after the first."""


Host = ControllerHost | EtcdHost


class ElectedFaults:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._controllers = cluster.controllers
        self.acts: dict[Fault, Act] = {
            Fault.MASTER_KILL: self._kill_master,
            Fault.MASTER_PAUSE: self._pause_master,
            Fault.MASTER_AND_REPLICA: self._kill_two,
            Fault.FAIL_OVER: self._lose_power,
            Fault.DISK_LOST: self._lose_disk,
            Fault.SWITCH_OVER: self._switch_over,
            Fault.CUT_MASTER_CONTROLLERS: self._cut_master_controllers,
            Fault.CONTROLLER_KILL: self._kill_controller,
            Fault.CONTROLLER_PAUSE: self._pause_controller,
            Fault.CONTROLLER_CUT: self._cut_controller,
            Fault.CUT_CONTROLLER_ETCD: self._cut_controller_etcd,
            Fault.ETCD_KILL: self._kill_etcd,
            Fault.ETCD_PAUSE: self._pause_etcd,
            Fault.ETCD_GONE: self._stop_etcd,
            Fault.CLOCK: self._jump_clock,
            Fault.ROLLING: self._restart_everything,
            **dict.fromkeys(TOGETHER, self._together),
        }

    # The master.

    async def _kill_master(self, fault: PlannedFault) -> str:
        old, epoch = self._reign(fault.target)
        await old.process.kill()
        await self._come_back(old, fault.seconds)
        return await self._elected(old, epoch)

    async def _kill_two(self, fault: PlannedFault) -> str:
        old, epoch = self._reign(fault.target)
        other = Random(fault.seed).choice(self._cluster.slaves(fault.target))
        await asyncio.gather(old.process.kill(), other.process.kill())
        await asyncio.gather(
            self._come_back(old, fault.seconds), self._come_back(other, fault.seconds)
        )
        return f"with {other.name}, {await self._elected(old, epoch)}"

    async def _pause_master(self, fault: PlannedFault) -> str:
        old, epoch = self._reign(fault.target)
        await self._pause(old.process, fault.seconds)
        return await self._elected(old, epoch)

    async def _lose_power(self, fault: PlannedFault) -> str:
        """Nobody hears a machine die whose power is gone: its connections stay open on the other side."""
        old, epoch = self._reign(fault.target)
        links = links_under(Fault.CUT, old.name, 0.0, self._cluster.hosts)
        await self._cluster.network.set_links(links)
        try:
            note = await old.lose_power(Random(fault.seed))
            self._cluster.note_down(old)
            elected = await self._elected(old, epoch)
            await asyncio.sleep(fault.seconds)
        finally:
            await self._cluster.network.set_links({})
        await self._cluster.start_broker(old)
        return f"{elected}, {note}"

    async def _lose_disk(self, fault: PlannedFault) -> str:
        old, epoch = self._reign(fault.target)
        await old.lose_disk()
        await self._come_back(old, fault.seconds)
        return await self._elected(old, epoch)

    async def _switch_over(self, fault: PlannedFault) -> str:
        cluster = self._cluster
        old = cluster.master(fault.target)
        new = Random(fault.seed).choice(cluster.slaves(fault.target))
        ids = await self._controllers.in_sync(fault.target)
        if new.address not in ids:
            return f"{new.name} is not in sync"
        note = await self._controllers.elect(
            fault.target, str(SETTINGS["brokerClusterName"]), ids[new.address]
        )
        await asyncio.sleep(fault.seconds)
        return f"{old.name} to {new.name}: {note}"

    async def _cut_master_controllers(self, fault: PlannedFault) -> str:
        old, epoch = self._reign(fault.target)
        await self._cut(cut_between([old.name], list(self._controllers.hosts)), fault.seconds)
        return await self._elected(old, epoch)

    # Those who elect.

    async def _kill_controller(self, fault: PlannedFault) -> str:
        return await self._kill(self._controllers.hosts[fault.target], fault.seconds)

    async def _pause_controller(self, fault: PlannedFault) -> str:
        await self._pause(self._controllers.hosts[fault.target].process, fault.seconds)
        return ""

    async def _cut_controller(self, fault: PlannedFault) -> str:
        links = links_under(Fault.CUT, fault.target, 0.0, self._cluster.hosts)
        await self._cut(links, fault.seconds)
        return ""

    async def _cut_controller_etcd(self, fault: PlannedFault) -> str:
        await self._cut(cut_between([fault.target], list(self._controllers.etcd)), fault.seconds)
        return ""

    async def _kill_etcd(self, fault: PlannedFault) -> str:
        return await self._kill(self._controllers.etcd[fault.target], fault.seconds)

    async def _pause_etcd(self, fault: PlannedFault) -> str:
        await self._pause(self._controllers.etcd[fault.target].process, fault.seconds)
        return ""

    async def _stop_etcd(self, fault: PlannedFault) -> str:
        (group, *_) = group_names(self._cluster.mode)
        before = self._cluster.watch.epoch(group)
        members = list(self._controllers.etcd.values())
        await asyncio.gather(*(member.process.stop() for member in members))
        await asyncio.sleep(fault.seconds)
        after = self._cluster.watch.epoch(group)
        await asyncio.gather(*(member.start() for member in members))
        return "no election" if after == before else f"epoch {before} to {after}"

    # Everybody.

    async def _jump_clock(self, fault: PlannedFault) -> str:
        host = self._controllers.hosts.get(fault.target) or self._cluster.brokers[fault.target]
        host.machine.jump_clock(fault.amount)
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            host.machine.jump_clock(0)
        return f"{fault.amount:+g} s"

    async def _restart_everything(self, fault: PlannedFault) -> str:
        """As for an upgrade: etcd, controllers, name server, brokers, each when the one before is well again."""
        cluster = self._cluster
        for host in self._controllers.everybody():
            await self._restart(host)
        await cluster.name_server.stop()
        await cluster.start_name_server()
        behind: list[str] = []
        for broker in list(cluster.brokers.values()):
            await broker.process.stop()
            await self._come_back(broker, 0.0)
            await asyncio.sleep(SETTLE_SECONDS)
            behind += await cluster.behind(broker.group)
        return f"{' and '.join(behind)} did not catch up in between" if behind else ""

    async def _together(self, fault: PlannedFault) -> str:
        first, second = fault.parts

        async def begin_second() -> str:
            await asyncio.sleep(SECOND_SECONDS)
            return await self.acts[second.kind](second)

        notes = await asyncio.gather(self.acts[first.kind](first), begin_second())
        return ", ".join(note for note in notes if note)

    # Inside.

    def _reign(self, group: str) -> tuple[BrokerHost, int]:
        return self._cluster.master(group), self._cluster.watch.epoch(group)

    async def _elected(self, old: BrokerHost, epoch: int) -> str:
        """Waits for an election after that epoch; says who was elected."""
        watch = self._cluster.watch
        try:
            async with asyncio.timeout(ELECTED_SECONDS_MAX):
                while watch.epoch(old.group) == epoch:
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            return "no election"
        new, epoch = self._reign(old.group)
        return f"{old.name} to {new.name}, epoch {epoch}"

    async def _come_back(self, broker: BrokerHost, seconds: float) -> None:
        self._cluster.note_down(broker)
        await asyncio.sleep(seconds)
        await self._cluster.start_broker(broker)

    async def _kill(self, host: Host, seconds: float) -> str:
        await host.process.kill()
        self._cluster.note_role(host.name, "down")
        await asyncio.sleep(seconds)
        await host.start()
        self._cluster.note_role(host.name, "up")
        return ""

    async def _restart(self, host: Host) -> None:
        await host.process.stop()
        self._cluster.note_role(host.name, "down")
        await host.start()
        self._cluster.note_role(host.name, "up")
        await asyncio.sleep(SETTLE_SECONDS)

    async def _pause(self, process: ServerProcess, seconds: float) -> None:
        process.pause()
        try:
            await asyncio.sleep(seconds)
        finally:
            process.resume()

    async def _cut(self, links: Links, seconds: float) -> None:
        await self._cluster.network.set_links(links)
        try:
            await asyncio.sleep(seconds)
        finally:
            await self._cluster.network.set_links({})
