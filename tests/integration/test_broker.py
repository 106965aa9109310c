"""Brokers and a name server on real sockets, inside the test's event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from tests.eventually import eventually
from tests.integration.servers import running_broker, running_name_server
from tests.interop.servers import free_ports

from cometmq.base.errors import ConfigError, RemotingError
from cometmq.broker.server import Broker
from cometmq.model.messages.record import decode_records
from cometmq.protocol import fastjson
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import FLAG_ONEWAY, Command
from cometmq.remoting.client import RemotingClient
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher

NOWHERE = "127.0.0.1:1"


class World:
    """Starts servers and clients; everything is stopped at its end, last first."""

    def __init__(self, directory: Path, stack: AsyncExitStack) -> None:
        self.directory = directory
        self.names = ""
        """The address of its name server."""
        self._stack = stack

    async def name_server(self) -> str:
        self.names = await self._stack.enter_async_context(running_name_server())
        return self.names

    async def broker(self, name: str = "b", **settings: str) -> Broker:
        running = running_broker(self.directory / name, **{"brokerName": name, **settings})
        return await self._stack.enter_async_context(running)

    def client(self, address: str) -> Client:
        client = Client(address)
        self._stack.push_async_callback(client.remoting.close)
        return client


class Client:
    def __init__(self, address: str) -> None:
        self.address = address
        self.pushed: asyncio.Queue[Command] = asyncio.Queue()
        dispatcher = Dispatcher()
        dispatcher.add(40, self._take)
        self.remoting = RemotingClient(dispatcher)

    def _take(self, connection: Connection, command: Command) -> None:
        self.pushed.put_nowait(command)

    async def ask(
        self,
        code: int,
        ext: dict[str, str] | None = None,
        body: object = b"",
        timeout: float = 10.0,
    ) -> Command:
        content = body if isinstance(body, bytes) else fastjson.dumps(body)
        return await self.remoting.call(
            self.address, Command(code=code, ext=ext, body=content), timeout
        )

    async def send(self, topic: str, body: bytes = b"x", **fields: str) -> Command:
        ext = {"a": "PG", "b": topic, "c": "TBW102", "d": "4", "e": "0", "g": "1"} | fields
        return await self.ask(310, ext, body)

    async def pull(self, topic: str, offset: int, **fields: str) -> Command:
        ext = {
            "consumerGroup": "CG",
            "topic": topic,
            "queueId": "0",
            "queueOffset": str(offset),
            "maxMsgNums": "32",
            "sysFlag": "6",
            "suspendTimeoutMillis": "20000",
            "subscription": "*",
        }
        return await self.ask(11, ext | fields, timeout=25.0)

    async def beat(self, client_id: str, group: str, topic: str) -> None:
        wish = {"topic": topic, "subString": "*", "subVersion": 1}
        consumer = {"groupName": group, "subscriptionDataSet": [wish]}
        reply = await self.ask(34, None, {"clientID": client_id, "consumerDataSet": [consumer]})
        assert (reply.code, reply.version) == (0, 409)

    async def told(self) -> str | None:
        notice = await asyncio.wait_for(self.pushed.get(), 5)
        return (notice.ext or {}).get("consumerGroup")


@asynccontextmanager
async def world_in(directory: Path) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        yield World(directory, stack)


def bodies(reply: Command) -> list[bytes]:
    return [record.body for record in decode_records(bytes(reply.body))]


async def brokers_of(names: Client, topic: str) -> set[str]:
    reply = await names.ask(105, {"topic": topic})
    if reply.code != 0:
        return set()
    return {data["brokerName"] for data in fastjson.loads(bytes(reply.body))["queueDatas"]}


async def test_a_broker_is_in_the_routes_from_its_start_to_its_stop(tmp_path: Path) -> None:
    async with world_in(tmp_path) as world:
        address = await world.name_server()
        names = world.client(address)
        broker = await world.broker(namesrvAddr=address)
        assert await brokers_of(names, "TBW102") == {"b"}
        client = world.client(broker.address)
        await client.send("New")

        async def is_known() -> bool:
            return await brokers_of(names, "New") == {"b"}

        await eventually(is_known)
        await broker.stop()
        assert await brokers_of(names, "TBW102") == set()


async def test_a_running_broker_ceases_to_be_the_master_and_is_it_again(tmp_path: Path) -> None:
    async with world_in(tmp_path) as world:
        address = await world.name_server()
        names = world.client(address)
        broker = await world.broker(namesrvAddr=address, brokerId="1")
        client = world.client(broker.address)
        for number in range(3):
            assert (await client.send("T", b"now %d" % number)).code == 0
            assert (await client.send("T", b"later %d" % number, i="DELAY\x011")).code == 0
            broker.live.update({"brokerRole": "SLAVE"})
            assert (await client.send("T", b"never")).code == ResponseCode.SERVICE_NOT_AVAILABLE
            await eventually(lambda: broker.role.is_settled)
            broker.live.update({"brokerRole": "ASYNC_MASTER"})
            await eventually(lambda: broker.role.is_settled)

            async def is_known() -> bool:
                return await brokers_of(names, "TBW102") == {"b"}

            await eventually(is_known)
        store = broker.core.store
        await eventually(lambda: store.max_offset("T", 0) >= 6)
        found = sorted(bodies(await client.pull("T", 0)))
        assert found == sorted(
            b"%s %d" % (kind, n) for kind in (b"now", b"later") for n in range(3)
        )


async def test_name_servers_that_are_down_do_not_hurt(tmp_path: Path) -> None:
    async with world_in(tmp_path) as world:
        address = await world.name_server()
        broker = await world.broker(namesrvAddr=f"{NOWHERE};{address}")
        assert await brokers_of(world.client(address), "TBW102") == {"b"}
        client = world.client(broker.address)
        assert (await client.send("T")).code == 0
        lonely = await world.broker("lonely", namesrvAddr=NOWHERE)
        assert (await world.client(lonely.address).send("T")).code == 0


async def test_a_topic_can_be_created_on_all_masters_by_its_first_send(tmp_path: Path) -> None:
    async with world_in(tmp_path) as world:
        address = await world.name_server()
        one = await world.broker("one", namesrvAddr=address, autoCreateTopicOnAllMasters="true")
        two = await world.broker("two", namesrvAddr=address)
        await world.broker("elsewhere", namesrvAddr=address, brokerClusterName="Other")
        await world.client(one.address).send("Spread")
        names = world.client(address)

        async def is_on_both() -> bool:
            return await brokers_of(names, "Spread") == {"one", "two"}

        await eventually(is_on_both)
        found = two.core.topics.get("Spread")
        assert found is not None
        assert (found.write_queue_nums, found.perm) == (4, 6)


async def test_a_waiting_pull_is_answered_within_milliseconds(tmp_path: Path) -> None:
    async with world_in(tmp_path) as world:
        broker = await world.broker()
        producer, consumer = world.client(broker.address), world.client(broker.address)
        await producer.send("T", b"0")
        waits = []
        for offset in range(1, 11):
            waiting = asyncio.create_task(consumer.pull("T", offset))
            while len(broker.rooms.pull.long_polling) == 0:
                await asyncio.sleep(0.001)
            started = time.monotonic()
            await producer.send("T", b"%d" % offset)
            assert bodies(await waiting) == [b"%d" % offset]
            waits.append(time.monotonic() - started)
        # The best of ten: a busy machine may delay any one of them.
        assert min(waits) < 0.02, waits


async def test_a_consumer_that_disconnects_frees_its_pulls_and_tells_the_others(
    tmp_path: Path,
) -> None:
    async with world_in(tmp_path) as world:
        broker = await world.broker()
        stays, leaves = world.client(broker.address), world.client(broker.address)
        await stays.send("T")
        await stays.beat("stays", "CG", "T")
        assert await stays.told() == "CG"
        await leaves.beat("leaves", "CG", "T")
        assert await stays.told() == "CG"
        assert await leaves.told() == "CG"
        waiting = asyncio.create_task(leaves.pull("T", 1))
        while len(broker.rooms.pull.long_polling) == 0:
            await asyncio.sleep(0.001)
        await leaves.remoting.close()
        with pytest.raises(RemotingError):
            await waiting
        assert await stays.told() == "CG"
        assert len(broker.rooms.pull.long_polling) == 0
        reply = await stays.ask(38, {"consumerGroup": "CG"})
        assert fastjson.loads(bytes(reply.body)) == {"consumerIdList": ["stays"]}


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
async def test_messages_offsets_and_topics_survive_a_restart(tmp_path: Path, flush: str) -> None:
    async with world_in(tmp_path) as world:
        broker = await world.broker(flushDiskType=flush)
        client = world.client(broker.address)
        replies = await asyncio.gather(*(client.send("T", b"%d" % n) for n in range(20)))
        assert {reply.code for reply in replies} == {0}
        commit = {"consumerGroup": "CG", "topic": "T", "queueId": "0", "commitOffset": "7"}
        assert (await client.ask(15, commit)).code == 0
        await broker.stop()
        again = await world.broker(flushDiskType=flush)
        client = world.client(again.address)
        place = {"consumerGroup": "CG", "topic": "T", "queueId": "0"}
        assert (await client.ask(14, place)).ext == {"offset": "7"}
        assert bodies(await client.pull("T", 0)) == [b"%d" % n for n in range(20)]
        assert again.core.topics.get("T") is not None
        assert again.core.groups.get("CG") is not None


async def test_a_stop_answers_the_sends_under_way(tmp_path: Path) -> None:
    async with world_in(tmp_path) as world:
        broker = await world.broker(flushDiskType="SYNC_FLUSH")
        client = world.client(broker.address)
        await client.send("T")
        sends = [asyncio.create_task(client.send("T", b"%d" % n)) for n in range(200)]
        while broker.core.store.max_offset("T", 0) < 201:
            await asyncio.sleep(0)
        await broker.stop()
        replies = await asyncio.gather(*sends)
        assert {reply.code for reply in replies} == {0}
        again = await world.broker()
        assert again.core.store.max_offset("T", 0) == 201


async def test_the_vip_port_serves_all_but_pulls(tmp_path: Path, free_pair: int) -> None:
    async with world_in(tmp_path) as world:
        broker = await world.broker(listenPort=str(free_pair))
        assert broker.port == free_pair
        vip = world.client(f"127.0.0.1:{free_pair - 2}")
        assert (await vip.send("T")).code == 0
        assert (await vip.ask(21)).code == 0
        await vip.beat("one", "CG", "T")
        reply = await vip.pull("T", 0)
        assert (reply.code, reply.remark) == (3, " request type 11 not supported")
        assert bodies(await world.client(broker.address).pull("T", 0)) == [b"x"]


async def test_a_port_in_use_leaves_nothing_behind(tmp_path: Path, free_pair: int) -> None:
    async with world_in(tmp_path) as world:
        await world.broker("first", listenPort=str(free_pair))
        with pytest.raises(RemotingError, match="is another server running there"):
            await world.broker("second", listenPort=str(free_pair))
        # Its store is free again.
        await world.broker("second")


async def test_a_slave_is_refused(tmp_path: Path) -> None:
    async with world_in(tmp_path) as world:
        with pytest.raises(ConfigError, match="brokerId above 0"):
            await world.broker(brokerRole="SLAVE", brokerId="0")


async def test_requests_nobody_knows_and_one_way_ones(tmp_path: Path) -> None:
    async with world_in(tmp_path) as world:
        broker = await world.broker()
        client = world.client(broker.address)
        reply = await client.ask(9999)
        assert (reply.code, reply.remark) == (3, " request type 9999 not supported")
        connection = await client.remoting.connection(client.address)
        ext = {"b": "../x", "e": "0", "g": "1"}
        connection.send(Command(code=310, ext=ext, flag=FLAG_ONEWAY, opaque=77))
        # The next answer is that of the next request: the one before was not answered.
        assert (await client.ask(30, {"topic": "T", "queueId": "0"})).ext == {"offset": "0"}


@pytest.fixture
def free_pair() -> int:
    """A port whose VIP port, two below, and port for slaves, one above, are free as well."""
    return free_ports(0, -2, +1)[0]
