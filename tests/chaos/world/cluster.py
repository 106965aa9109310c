"""The servers of one run: a name server, the brokers and the controllers of a mode, each on a host of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from tests.chaos.judge.log_compare import end_of
from tests.chaos.plan.modes import Mode
from tests.chaos.plan.schedule import broker_names, group_names
from tests.chaos.world.broker_host import BrokerHost
from tests.chaos.world.controllers import Controllers
from tests.chaos.world.network import CLIENTS, NAME_SERVER, Network, Place
from tests.chaos.world.processes import ServerProcess, accepts
from tests.chaos.world.watch import Watch
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
    """Args: watch: knows whom controllers have elected."""

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
        watch: Watch,
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
        self.watch = watch
        self._client = RemotingClient()
        self.controllers = Controllers(mode, commands, network, directory, library, self._client)
        self._stack = AsyncExitStack()
        self.name_server: ServerProcess
        self._name_server_place: Place

    @property
    def hosts(self) -> list[str]:
        controllers = self.controllers
        return [CLIENTS, NAME_SERVER, *controllers.hosts, *controllers.etcd, *self.brokers]

    def group(self, name: str) -> list[BrokerHost]:
        return [broker for broker in self.brokers.values() if broker.group == name]

    def master(self, group: str) -> BrokerHost:
        """Raises StopIteration before the first election."""
        if not self.mode.controllers:
            return next(broker for broker in self.group(group) if broker.is_master)
        address = self.watch.master(group)
        return next(broker for broker in self.group(group) if broker.address == address)

    def slaves(self, group: str) -> list[BrokerHost]:
        master = self.master(group)
        return [broker for broker in self.group(group) if broker is not master]

    def masters(self) -> list[BrokerHost]:
        return [self.master(group) for group in group_names(self.mode)]

    async def start(self) -> None:
        self._stack.push_async_callback(self._client.close)
        self._stack.push_async_callback(self.network.stop)
        await self.network.start()
        await self._add_name_server()
        self._stack.push_async_callback(self.controllers.kill)
        await self.controllers.start()
        self._stack.push_async_callback(self.watch.stop)
        self.watch.follow_controllers(
            [(host.name, host.address) for host in self.controllers.hosts.values()],
            group_names(self.mode),
        )
        for name in broker_names(self.mode):
            group = name[:2]
            await self.add_broker(name, group, len(self.group(group)))
        for broker in self.brokers.values():
            await self.start_broker(broker)
        async with asyncio.timeout(KNOWN_SECONDS_MAX):
            for group in group_names(self.mode):
                while not await self.is_led(group):
                    await asyncio.sleep(POLL_SECONDS)

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
            controllers=self.controllers.addresses,
            with_disk=self._with_disks,
        )
        self.brokers[name] = broker
        self._stack.push_async_callback(broker.remove)
        if self.mode.controllers:
            self.watch.follow_broker((name, broker.address), group)
        return broker

    async def start_broker(self, broker: BrokerHost) -> None:
        await broker.start()
        # Under controllers it tells by itself what it has become.
        if not self.mode.controllers:
            self._note_role(broker.name, "master" if broker.is_master else "slave")

    def note_down(self, broker: BrokerHost) -> None:
        self.note_role(broker.name, "down")
        self.watch.note_down(broker.name)

    def note_role(self, host: str, role: str) -> None:
        self._note_role(host, role)

    async def start_name_server(self) -> None:
        await self.name_server.start(lambda: accepts(self._name_server_place))
        self._note_role(NAME_SERVER, "up")

    async def is_led(self, group: str) -> bool:
        """Whether the group has its master, and all its brokers may be elected next."""
        if not self.mode.controllers:
            return True
        in_sync = await self.controllers.in_sync(group)
        return bool(self.watch.master(group)) and all(
            broker.address in in_sync for broker in self.group(group)
        )

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
        """Slaves of a group that do not, in time, get what their master has at this moment: its records, its topics.
        Under controllers they may be elected, too."""
        wanted = end_of(self.master(group).store / "commitlog")
        lacking = self.slaves(group)
        try:
            async with asyncio.timeout(CATCH_UP_SECONDS_MAX):
                while not await self.is_led(group):
                    await asyncio.sleep(POLL_SECONDS)
                lacking = self.slaves(group)
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
            f"listenPort={place.port}\nbindAddress={place.bind}\nallowAnonymous=true\n"
            f"kvConfigPath={directory}/kv.json\n"
        )
        command = [*place.command, *self._commands.name_server, "-c", str(conf)]
        self.name_server = ServerProcess(
            NAME_SERVER, command, self._commands.environment, directory
        )
        self._stack.push_async_callback(self.name_server.kill)
        await self.start_name_server()
