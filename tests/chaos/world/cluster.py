"""The servers of one run: a name server and the brokers of a mode, each on a host of its own."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from tests.chaos.judge.log_compare import end_of
from tests.chaos.plan.modes import Mode
from tests.chaos.plan.schedule import broker_names, group_names
from tests.chaos.world.broker_host import BrokerHost
from tests.chaos.world.network import CLIENTS, NAME_SERVER, Network, Place
from tests.chaos.world.processes import ServerProcess
from tests.interop.servers import ServerCommands

from cometmq.base.errors import CometError
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient

KNOWN_SECONDS_MAX: Final = 90.0
CATCH_UP_SECONDS_MAX: Final = 30.0
POLL_SECONDS: Final = 0.1
QUEUES: Final = 2


class Cluster:
    def __init__(
        self,
        mode: Mode,
        commands: ServerCommands,
        network: Network,
        directory: Path,
        *,
        library: Path | None,
        with_disks: bool,
        note_role: Callable[[str, str], None],
    ) -> None:
        self.mode = mode
        self.network = network
        self.brokers: dict[str, BrokerHost] = {}
        self._commands = commands
        self._directory = directory
        self._library = library
        self._with_disks = with_disks
        self._note_role = note_role
        self._topics: list[str] = []
        self._client = RemotingClient()
        self._stack = AsyncExitStack()
        self.name_server: ServerProcess
        self._name_server_place: Place

    @property
    def hosts(self) -> list[str]:
        return [CLIENTS, NAME_SERVER, *self.brokers]

    def group(self, name: str) -> list[BrokerHost]:
        return [broker for broker in self.brokers.values() if broker.group == name]

    def master(self, group: str) -> BrokerHost:
        return next(broker for broker in self.group(group) if broker.is_master)

    def masters(self) -> list[BrokerHost]:
        return [self.master(group) for group in group_names(self.mode)]

    async def start(self) -> None:
        self._stack.push_async_callback(self._client.close)
        self._stack.push_async_callback(self.network.stop)
        await self.network.start()
        await self._add_name_server()
        for name in broker_names(self.mode):
            group = name[:2]
            await self.add_broker(name, group, 0 if name == group else 1)
        for broker in self.brokers.values():
            await self.start_broker(broker)

    async def stop(self) -> None:
        """Whatever still runs is killed."""
        await self._stack.aclose()

    async def add_broker(self, name: str, group: str, broker_id: int) -> BrokerHost:
        broker = BrokerHost(
            name,
            group,
            broker_id,
            mode=self.mode,
            commands=self._commands,
            place=await self.network.add(name, group),
            directory=self._directory / name,
            library=self._library,
            with_disk=self._with_disks,
        )
        self.brokers[name] = broker
        self._stack.push_async_callback(broker.remove)
        return broker

    async def start_broker(self, broker: BrokerHost) -> None:
        await broker.start()
        self._note_role(broker.name, "master" if broker.is_master else "slave")

    def note_down(self, broker: BrokerHost) -> None:
        self._note_role(broker.name, "down")

    async def start_name_server(self) -> None:
        place = self._name_server_place

        def accepts() -> bool:
            address = place.address if place.command else place.bind
            try:
                socket.create_connection((address, place.port), timeout=2).close()
            except OSError:
                return False
            return True

        await self.name_server.start(accepts)
        self._note_role(NAME_SERVER, "up")

    async def create_topic(self, topic: str) -> None:
        """On every master; returns when clients can find it on all of them."""
        fields = {
            "topic": topic,
            "defaultTopic": "TBW102",
            "readQueueNums": str(QUEUES),
            "writeQueueNums": str(QUEUES),
            "perm": "6",
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": "0",
            "order": "false",
        }
        if topic not in self._topics:
            self._topics.append(topic)
        async with asyncio.timeout(KNOWN_SECONDS_MAX):
            for master in self.masters():
                request = Command(RequestCode.UPDATE_AND_CREATE_TOPIC, fields)
                while (reply := await self._answer(master, request)) is None:
                    await asyncio.sleep(POLL_SECONDS)
                assert reply.code == 0, f"{master.name} refuses {topic}: {reply.remark}"
            while not await self._is_known(topic):
                await asyncio.sleep(POLL_SECONDS)

    async def create_topics_again(self) -> None:
        """For a master that has lost them."""
        for topic in list(self._topics):
            await self.create_topic(topic)

    async def behind(self, group: str) -> list[str]:
        """Slaves of a group that do not, in time, get what their master has at this moment: its records, its topics."""
        wanted = end_of(self.master(group).store / "commitlog")
        lacking = [broker for broker in self.group(group) if not broker.is_master]
        try:
            async with asyncio.timeout(CATCH_UP_SECONDS_MAX):
                while lacking:
                    if await self._has(lacking[0], wanted):
                        lacking.pop(0)
                    else:
                        await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            pass
        return [broker.name for broker in lacking]

    async def _has(self, slave: BrokerHost, log_bytes: int) -> bool:
        if end_of(slave.store / "commitlog") < log_bytes:
            return False
        for topic in self._topics:
            request = Command(RequestCode.GET_TOPIC_CONFIG, {"topic": topic})
            reply = await self._answer(slave, request)
            if reply is None or reply.code != 0:
                return False
        return True

    async def _answer(self, broker: BrokerHost, request: Command) -> Command | None:
        """None if it does not come: a broker that has just started may not be known to listen again yet."""
        try:
            return await self._client.call(broker.address, request, 15.0)
        except CometError:
            return None

    async def _is_known(self, topic: str) -> bool:
        request = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
        try:
            reply = await self._client.call(self.network.name_server, request, 5.0)
        except CometError:
            return False
        body = bytes(reply.body or b"")
        return all(f'"{master.address}"'.encode() in body for master in self.masters())

    async def _add_name_server(self) -> None:
        place = self._name_server_place = await self.network.add(NAME_SERVER, "")
        directory = self._directory / NAME_SERVER
        directory.mkdir(parents=True)
        conf = directory / "namesrv.conf"
        conf.write_text(
            f"listenPort={place.port}\nbindAddress={place.bind}\nkvConfigPath={directory}/kv.json\n"
        )
        command = [*place.command, *self._commands.name_server, "-c", str(conf)]
        self.name_server = ServerProcess(
            NAME_SERVER, command, self._commands.environment, directory
        )
        self._stack.push_async_callback(self.name_server.kill)
        await self.start_name_server()
