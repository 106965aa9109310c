"""The controllers of a mode and the members of etcd that they keep their decisions in."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Final

from tests.chaos.plan.modes import Mode
from tests.chaos.plan.schedule import controller_names, etcd_names
from tests.chaos.world.controller_host import ControllerHost
from tests.chaos.world.etcd_host import EtcdHost
from tests.chaos.world.network import Network
from tests.interop.servers import ServerCommands

from cometmq.base.errors import CometError
from cometmq.protocol.bodies.ha import SyncStateData
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import encode_fields
from cometmq.protocol.headers.controller import ElectMasterHeader
from cometmq.remoting.client import RemotingClient

CALL_SECONDS: Final = 3.0


class Controllers:
    def __init__(
        self,
        mode: Mode,
        commands: ServerCommands,
        network: Network,
        directory: Path,
        library: Path | None,
        client: RemotingClient,
    ) -> None:
        self.hosts: dict[str, ControllerHost] = {}
        self.etcd: dict[str, EtcdHost] = {}
        self._mode = mode
        self._commands = commands
        self._network = network
        self._directory = directory
        self._library = library
        self._client = client

    @property
    def addresses(self) -> str:
        """As brokers are told them."""
        return ";".join(host.address for host in self.hosts.values())

    async def start(self) -> None:
        # RocketMQ's controllers have no etcd: they are a Raft group of their own.
        if "ROCKETMQ_HOME" not in self._commands.environment:
            await self._start_etcd()
        for name in controller_names(self._mode):
            self.hosts[name] = ControllerHost(
                name,
                commands=self._commands,
                place=await self._network.add(name, ""),
                directory=self._directory / name,
                library=self._library,
            )
        peers = [host.peer for host in self.hosts.values()]
        for host in self.hosts.values():
            host.configure(peers, [member.url for member in self.etcd.values()])
        await asyncio.gather(*(host.start() for host in self.hosts.values()))

    async def _start_etcd(self) -> None:
        for name in etcd_names(self._mode):
            place = await self._network.add(name, "")
            self.etcd[name] = EtcdHost(name, place, self._directory / name)
        peers = [member.peer for member in self.etcd.values()]
        for member in self.etcd.values():
            member.configure(peers)
        await asyncio.gather(*(member.start() for member in self.etcd.values()))

    async def kill(self) -> None:
        for host in self.everybody():
            await host.process.kill()

    def everybody(self) -> list[ControllerHost | EtcdHost]:
        """Etcd first, which the others need."""
        return [*self.etcd.values(), *self.hosts.values()]

    async def in_sync(self, group: str) -> dict[str, int]:
        """The SyncStateSet by address, with the ids; empty if nobody tells."""
        request = Command(
            RequestCode.CONTROLLER_GET_SYNC_STATE_DATA, {}, json.dumps([group]).encode()
        )
        reply = await self._ask(request)
        if reply is None:
            return {}
        data = SyncStateData.decode(reply.body)
        info = data.replicas_info_table.get(group)
        if info is None:
            return {}
        return {each.broker_address: each.broker_id for each in info.in_sync_replicas if each.alive}

    async def elect(self, group: str, cluster: str, broker_id: int) -> str:
        """As ``mqadmin electMaster`` asks for it. What came of it, in words."""
        header = ElectMasterHeader(
            cluster_name=cluster,
            broker_name=group,
            broker_id=broker_id,
            designate_elect=True,
            invoke_time=int(time.time() * 1000),
        )
        reply = await self._ask(
            Command(RequestCode.CONTROLLER_ELECT_MASTER, encode_fields(header)), refusals=True
        )
        if reply is None:
            return "no controller answered"
        return "elected" if reply.code == 0 else f"refused with {reply.code}: {reply.remark}"

    async def _ask(self, request: Command, *, refusals: bool = False) -> Command | None:
        """The first answer of a controller that decides, or, with ``refusals``, the last one of any."""
        refusal: Command | None = None
        for host in self.hosts.values():
            try:
                reply = await self._client.call(host.address, request, CALL_SECONDS)
            except CometError:
                continue
            if reply.code == 0:
                return reply
            refusal = reply
        return refusal if refusals else None
