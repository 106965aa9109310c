"""A name server on real sockets, inside the test's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.eventually import eventually

from cometmq.base.errors import ConfigError, RemotingError
from cometmq.model.topic import DataVersion, TopicConfig
from cometmq.namesrv.address_service import AddressService
from cometmq.namesrv.namesrv_config import AddressServiceConfig, NamesrvConfig
from cometmq.namesrv.server import NameServer
from cometmq.protocol.bodies.register import RegisterBrokerBody, encode_register_body
from cometmq.protocol.bodies.route import decode_route
from cometmq.protocol.bodies.topic import TopicConfigTable
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.frame import encode_bytes
from cometmq.remoting.client import RemotingClient
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.remoting.server import RemotingServer
from cometmq.testing.fake_clock import FakeClock


@asynccontextmanager
async def running(clock: FakeClock | None = None, **settings: Any) -> AsyncIterator[NameServer]:
    server = NameServer(NamesrvConfig(listen_port=0, **settings), clock=clock)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def client_of(
    server: NameServer,
) -> AsyncIterator[Callable[..., Coroutine[Any, Any, Command]]]:
    client = RemotingClient()

    async def ask(code: int, body: bytes = b"", **ext: str) -> Command:
        command = Command(code, ext=ext or None, body=body)
        return await client.call(f"127.0.0.1:{server.port}", command)

    try:
        yield ask
    finally:
        await client.close()


def registration(broker_id: int = 0, address: str = "10.0.0.1:10911", count: int = 2) -> Command:
    topics = {f"T{n}": TopicConfig(topic_name=f"T{n}") for n in range(count)}
    table = TopicConfigTable(topic_config_table=topics, data_version=DataVersion(counter=1))
    return Command(
        RequestCode.REGISTER_BROKER,
        ext={
            "brokerName": "a",
            "brokerAddr": address,
            "clusterName": "C",
            "haServerAddr": "10.0.0.1:10912",
            "brokerId": str(broker_id),
            "compressed": "true",
        },
        body=encode_register_body(
            RegisterBrokerBody(topics=table), compressed=True, version=Command(0).version
        ),
    )


async def test_a_broker_is_found_until_its_connection_ends() -> None:
    async with running() as server, client_of(server) as ask:
        broker = RemotingClient()
        address = f"127.0.0.1:{server.port}"
        assert (await broker.call(address, registration())).code == 0
        route = decode_route((await ask(105, topic="T1")).body)
        assert route.broker_datas[0].broker_addrs == {0: "10.0.0.1:10911"}
        await broker.close()
        await eventually(lambda: not server.table.topics())
        assert (await ask(105, topic="T1")).code == 17


async def test_ten_thousand_topics_are_taken_and_listed() -> None:
    async with running() as server, client_of(server) as ask:
        broker = RemotingClient()
        assert (await broker.call(f"127.0.0.1:{server.port}", registration(count=10_000))).code == 0
        assert bytes((await ask(206)).body).count(b'"T') == 10_000
        await broker.close()


async def test_servers_side_by_side_know_only_what_they_were_told() -> None:
    async with running() as one, running() as other:
        client = RemotingClient()
        await client.call(f"127.0.0.1:{one.port}", registration())
        assert (one.table.topics(), other.table.topics()) == (["T0", "T1"], [])
        await client.close()


async def test_a_broken_frame_ends_its_connection_and_no_other() -> None:
    async with running() as server, client_of(server) as ask:
        await ask(106)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"\x7f\xff\xff\xff GET / HTTP/1.1\r\n\r\n")
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()
        assert (await ask(106)).code == 0


async def test_a_live_broker_keeps_its_place_and_one_that_moved_is_let_in() -> None:
    clock = FakeClock()
    async with running(clock) as server:
        owner, other = RemotingClient(), RemotingClient()
        address = f"127.0.0.1:{server.port}"
        assert (await owner.call(address, registration())).code == 0
        claim = registration(address="6.6.6.6:10911")
        for _ in range(3):
            clock.advance(30)
            refusal = await other.call(address, claim)
            assert refusal.code == 1
            assert "a id 0 at 10.0.0.1:10911 is alive" in (refusal.remark or "")
            now = clock.monotonic()
            (live,) = server.table.holders("a", "C", "")
            # The owner does not know what it is asked, says so, and that is enough.
            async with asyncio.timeout(10):
                while live.answered_at < now:
                    await asyncio.sleep(0.005)
        await owner.close()
        await eventually(lambda: not server.table.topics())
        assert (await other.call(address, claim)).code == 0
        await other.close()


async def test_a_broker_that_answers_nothing_has_moved_after_ten_seconds() -> None:
    clock = FakeClock()
    async with running(clock) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(encode_bytes(registration()))
        await eventually(lambda: bool(server.table.topics()))
        clock.advance(10)
        other = RemotingClient()
        address = f"127.0.0.1:{server.port}"
        claim = registration(address="10.0.0.2:10911")
        assert (await other.call(address, claim)).code == 1
        await asyncio.wait_for(reader.readuntil(b"904"), 10)  # asked, and silent
        clock.advance(10)
        assert (await other.call(address, claim)).code == 0
        assert server.table.member_addresses("C", "a") == {0: "10.0.0.2:10911"}
        writer.close()
        await other.close()


async def test_brokers_are_told_when_their_lowest_id_changes() -> None:
    told: asyncio.Queue[Command] = asyncio.Queue()

    def take(connection: Connection, command: Command) -> None:
        told.put_nowait(command)

    dispatcher = Dispatcher()
    dispatcher.add(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, take)
    slave = RemotingServer(dispatcher)
    port = await slave.start("127.0.0.1", 0)
    async with running(notify_min_id_changed=True) as server:
        client = RemotingClient()
        address = f"127.0.0.1:{server.port}"
        await client.call(address, registration(1, f"127.0.0.1:{port}"))
        await client.call(address, registration())
        notice = await asyncio.wait_for(told.get(), 10)
        assert notice.is_oneway
        assert notice.ext == {
            "minBrokerId": "0",
            "brokerName": "a",
            "minBrokerAddr": "10.0.0.1:10911",
            "haBrokerAddr": "10.0.0.1:10912",
        }
        await client.close()
    await slave.stop()


async def test_a_taken_port_and_a_damaged_file_leave_nothing_running(tmp_path: Path) -> None:
    async with running() as server:
        with pytest.raises(RemotingError, match=str(server.port)):
            await NameServer(NamesrvConfig(listen_port=server.port)).start()
        http = AddressServiceConfig(port=server.port)
        second = NameServer(NamesrvConfig(listen_port=0, address_service=http))
        with pytest.raises(RemotingError, match="addressServicePort"):
            await second.start()
        assert repr(second) == "<NameServer stopped <RouteTable 0 topics, 0 brokers, 0 clusters>>"
    path = tmp_path / "kv.json"
    path.write_text("not a table")
    with pytest.raises(ConfigError, match=r"kv\.json"):
        await NameServer(NamesrvConfig(listen_port=0, kv_path=str(path))).start()


async def test_the_address_service_answers_over_http() -> None:
    service = AddressService(AddressServiceConfig(port=0), 9876)
    await service.start("127.0.0.1")
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    writer.write(b"GET /rocketmq/nsaddr HTTP/1.1\r\nHost: x\r\n\r\n")
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"\r\n\r\n127.0.0.1:9876")
    await service.stop()
