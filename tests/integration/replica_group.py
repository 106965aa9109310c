"""A master and its slave behind one name server, in the test's own process: the master can die, and come back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.eventually import eventually
from tests.integration.servers import broker_config, running_name_server
from tests.interop.servers import free_ports

from cometmq.broker.replication.acting.member_group import ActingMaster
from cometmq.broker.server import Broker
from cometmq.model.route import TopicRoute
from cometmq.model.topic import TopicConfig
from cometmq.protocol.bodies.route import decode_route
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient
from cometmq.store.log.new_messages import NewMessage

TOPIC = "T"
QUEUES = 2


class ReplicaGroup:
    """``master`` and ``slave`` of the broker ``b``, and a topic that both know.

    Args:
        watch_ms: how often the slave asks the name server for its master; None: never.
    """

    def __init__(self, directory: Path, name_server: str, *, watch_ms: int | None) -> None:
        self._directory = directory
        self.name_server = name_server
        self.client = RemotingClient()
        # The same again when it comes back. The port for slaves is the one above.
        self._port = free_ports(0, 1)[0]
        self.master = self._master()
        self.slave = self._broker(
            "slave",
            brokerRole="SLAVE",
            brokerId="1",
            enableSlaveActingMaster=str(watch_ms is not None).lower(),
            syncBrokerMemberGroupPeriod=str(watch_ms or 1000),
        )

    async def start(self) -> None:
        await self.master.start()
        topic = TopicConfig(topic_name=TOPIC, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
        self.master.core.topics.put(topic)
        # As the request to create a topic does.
        for tell in self.master.core.creation.created:
            tell(topic)
        await self.slave.start()
        await eventually(self._is_known, "a route with both brokers")
        await self.copied()

    async def stop(self) -> None:
        await self.client.close()
        await self.slave.stop()
        await self.master.stop()

    async def copied(self) -> None:
        """The slave has what the master has. Tables are handed over here, so that a test need not wait for them."""
        self._hand_over_tables()
        end = self.master.core.store.max_physical
        await eventually(lambda: self.slave.core.store.watermarks.dispatched.value == end)

    async def kill_master(self) -> None:
        await kill(self.master)

    async def bring_master_back(self) -> None:
        await self.master.stop()
        self.master = self._master()
        await self.master.start()

    def stranger(self) -> Broker:
        """An empty broker at the address of the master, which must be gone. It is no master."""
        return self._broker(
            "stranger", listenPort=str(self._port), brokerRole="SLAVE", brokerId="2"
        )

    def put(self, bodies: Sequence[bytes]) -> None:
        """Messages that a killed master had stored, and the slave got, before anybody noticed."""
        for number, body in enumerate(bodies):
            self.master.core.store.put(
                NewMessage(topic=TOPIC, queue_id=number % QUEUES, body=body, properties=b"")
            )
        source, target = self.master.core.store.replica, self.slave.core.store.replica
        target.append(target.end, source.read(target.end, source.end - target.end))
        while target.dispatch():
            pass
        self._hand_over_tables()

    @property
    def acting(self) -> ActingMaster:
        return self.slave.replication.acting

    async def route(self) -> TopicRoute:
        request = Command(code=RequestCode.GET_ROUTEINFO_BY_TOPIC, ext={"topic": TOPIC})
        reply = await self.client.call(self.name_server, request, 5.0)
        return decode_route(bytes(reply.body)) if reply.code == 0 else TopicRoute()

    def _hand_over_tables(self) -> None:
        master, slave = self.master.core, self.slave.core
        slave.topics.put_many(list(master.topics.all().values()))
        slave.groups.put_many(list(master.groups.all().values()))

    def _master(self) -> Broker:
        return self._broker("master", listenPort=str(self._port), enableSlaveActingMaster="true")

    def _broker(self, directory: str, **settings: str) -> Broker:
        return Broker(
            broker_config(
                self._directory / directory,
                namesrvAddr=self.name_server,
                **settings,
            )
        )

    async def _is_known(self) -> bool:
        brokers = (await self.route()).broker_datas
        return len(brokers) == 1 and set(brokers[0].broker_addrs) == {0, 1}


async def kill(broker: Broker) -> None:
    """It answers nobody any more, and everybody finds its connections closed. Its log can still be read."""
    registration = broker.role._registration
    tasks, registration._tasks = registration._tasks, []
    for task in tasks:
        task.cancel()
    await registration._links[0]._client.close()
    await broker.replication.port.stop()
    await broker._ports.stop()


@asynccontextmanager
async def replica_group(
    directory: Path, *, watch_ms: int | None = 1000, **settings: str
) -> AsyncIterator[ReplicaGroup]:
    """Args: settings: of the name server."""
    async with running_name_server(**settings) as name_server:
        group = ReplicaGroup(directory, name_server, watch_ms=watch_ms)
        await group.start()
        try:
            yield group
        finally:
            await group.stop()
