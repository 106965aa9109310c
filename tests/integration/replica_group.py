"""A master and its slave behind one name server, in the test's own process: the master can die, and come back.

The slave has no connection to its master. It is handed the log and the tables of the master by ``copy``, so a test
decides what it has. Everything else is real: both serve on ports, and the name server hears of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.eventually import eventually
from tests.integration.servers import broker_config, running_name_server

from cometmq.base.clock import SystemClock
from cometmq.base.disk import SystemFiles
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.core import BrokerCore, open_core
from cometmq.broker.registration import Registration
from cometmq.broker.request_ports import RequestPorts
from cometmq.broker.rooms import Rooms
from cometmq.broker.server import Broker
from cometmq.model.message_queue import MessageQueue
from cometmq.model.topic import TopicConfig
from cometmq.protocol.bodies.register import RegisterBrokerBody, encode_register_body
from cometmq.protocol.bodies.topic import TopicConfigTable
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import VERSION, Command
from cometmq.protocol.fields import encode_fields
from cometmq.protocol.headers.namesrv import RegisterBrokerHeader
from cometmq.remoting.client import RemotingClient
from cometmq.store.log.new_messages import NewMessage

TOPIC = "T"
QUEUES = 2


class SlaveBroker:
    """Args: settings: on top of those that make it a slave."""

    core: BrokerCore
    rooms: Rooms

    def __init__(self, directory: Path, name_server: str, **settings: str) -> None:
        self._config = broker_config(directory, brokerRole="SLAVE", brokerId="1", **settings)
        self._name_server = name_server
        self._files = SystemFiles()
        self._ports = RequestPorts(self._config, self._files)
        self.client = RemotingClient()
        self.port = 0

    async def start(self) -> None:
        self.port = await self._ports.listen(self._ports.main, 0)
        clock = SystemClock()
        live = LiveConfig(self._config, clock=clock, files=self._files)
        self.core = open_core(
            live,
            clock=clock,
            files=self._files,
            loop=asyncio.get_running_loop(),
            port=self.port,
        )
        self.rooms = Rooms(
            self.core, saved=_nothing, announce=_announced, queues_of=self._no_queues
        )
        self.rooms.register(self._ports)
        self.core.store.start()

    async def stop(self) -> None:
        await self.client.close()
        await self._ports.drain(self.core.store.watermarks.flushed)
        await self.rooms.functions.stop()
        self.core.store.close()

    @property
    def address(self) -> str:
        return self.core.address

    @property
    def held_pulls(self) -> int:
        return len(self.rooms.pull.long_polling)

    def copy(self, master: BrokerCore) -> None:
        """Have what the master has."""
        source, target = master.store.replica, self.core.store.replica
        target.append(target.end, source.read(target.end, source.end - target.end))
        while target.dispatch():
            pass
        self.core.topics.put_many(list(master.topics.all().values()))
        self.core.groups.put_many(list(master.groups.all().values()))

    async def register(self, *, acting_master: bool | None = None) -> Command:
        """Tell the name server, as a slave does."""
        table = TopicConfigTable(
            topic_config_table=self.core.topics.all(), data_version=self.core.topics.version
        )
        identity = self._config.identity
        header = RegisterBrokerHeader(
            broker_name=identity.broker_name,
            broker_addr=self.address,
            cluster_name=identity.cluster_name,
            ha_server_addr=f"127.0.0.1:{self.port + 1}",
            broker_id=1,
            enable_acting_master=acting_master,
        )
        body = encode_register_body(
            RegisterBrokerBody(topics=table), compressed=False, version=VERSION
        )
        request = Command(code=RequestCode.REGISTER_BROKER, ext=encode_fields(header), body=body)
        reply = await self.client.call(self._name_server, request, 5.0)
        assert reply.code == 0, reply.remark
        return reply

    async def _no_queues(self, topic: str) -> Sequence[MessageQueue]:
        return []


class ReplicaGroup:
    """``master`` and ``slave`` of the broker ``b``, and a topic of both."""

    def __init__(self, directory: Path, name_server: str) -> None:
        self._directory = directory
        self.name_server = name_server
        self.master = self._new_master(0)
        self.slave = SlaveBroker(directory / "slave", name_server)
        self.is_master_alive = False

    async def start(self) -> None:
        await self._start_master()
        self.master.core.topics.put(
            TopicConfig(topic_name=TOPIC, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
        )
        # As the request to create a topic does.
        for tell in self.master.core.creation.created:
            tell(self.master.core.topics.all()[TOPIC])
        await self.slave.start()
        self.slave.copy(self.master.core)
        await self.slave.register()
        await eventually(self._is_known, "a route with both brokers")

    async def stop(self) -> None:
        await self.slave.stop()
        await self.master.stop()

    async def kill_master(self) -> None:
        """It answers nobody any more, and the name server finds its connection closed. Its log can still be read."""
        registration = self.master.duties._registration
        assert isinstance(registration, Registration)
        tasks, registration._tasks = registration._tasks, []
        for task in tasks:
            task.cancel()
        await registration._links[0]._client.close()
        await self.master._ports.stop()
        self.is_master_alive = False

    async def bring_master_back(self) -> None:
        port = self.master.port
        await self.master.stop()
        self.master = self._new_master(port)
        await self._start_master()

    def put(self, bodies: Sequence[bytes]) -> None:
        """Messages that the master had stored, and the slave got, before somebody noticed the loss."""
        for number, body in enumerate(bodies):
            self.master.core.store.put(
                NewMessage(topic=TOPIC, queue_id=number % QUEUES, body=body, properties=b"")
            )
        self.slave.copy(self.master.core)

    def _new_master(self, port: int) -> Broker:
        return Broker(
            broker_config(
                self._directory / "master", namesrvAddr=self.name_server, listenPort=str(port)
            )
        )

    async def _start_master(self) -> None:
        await self.master.start()
        self.is_master_alive = True

    async def _is_known(self) -> bool:
        request = Command(code=RequestCode.GET_ROUTEINFO_BY_TOPIC, ext={"topic": TOPIC})
        reply = await self.slave.client.call(self.name_server, request, 5.0)
        return reply.code == 0 and self.slave.address.encode() in bytes(reply.body)


@asynccontextmanager
async def replica_group(directory: Path, **settings: str) -> AsyncIterator[ReplicaGroup]:
    """Args: settings: of the name server."""
    async with running_name_server(**settings) as name_server:
        group = ReplicaGroup(directory, name_server)
        await group.start()
        try:
            yield group
        finally:
            await group.stop()


async def _nothing() -> None:
    """The tables are not saved."""


async def _announced(configs: list[TopicConfig]) -> None:
    """Nobody is told."""
