"""Peers at the port for slaves that are none, and brokers that are configured to get in each other's way.

Each gets a clear line in the log, exactly one for each cause, and the healthy ones go on as if nothing had been.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.eventually import eventually
from tests.integration.replica_group import TOPIC, replica_group
from tests.integration.test_broker import World, world_in
from tests.integration.test_master_and_slave import Group, has_all, sent

from cometmq.base.errors import ConfigError
from cometmq.broker.replication.ha_wire import encode_report
from cometmq.broker.replication.master_link import BUFFER_HIGH_BYTES, TURN_BYTES
from cometmq.broker.server import Broker
from cometmq.protocol.bodies.route import decode_route
from cometmq.protocol.command import Command
from cometmq.protocol.frame import encode_bytes

pytestmark = pytest.mark.usefixtures("all_lines")

BODY = b"x" * 60_000
HEARTBEAT = Command(code=34, ext={"producerGroup": "P"})


@pytest.fixture
def all_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "cometmq")


class Peer:
    """A connection to the port for slaves."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def of(cls, broker: Broker) -> Peer:
        host, port = broker.replication.port_address.rsplit(":", 1)
        return cls(*await asyncio.open_connection(host, int(port)))

    def say(self, data: bytes) -> None:
        self._writer.write(data)

    async def say_all(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def is_hung_up(self) -> bool:
        """Whether the broker ends the connection."""
        async with asyncio.timeout(10):
            try:
                while await self._reader.read(1 << 20):
                    pass
            except ConnectionError:
                pass
        return True

    async def close(self) -> None:
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except ConnectionError:
            pass


@asynccontextmanager
async def pair(directory: Path, **settings: str) -> AsyncIterator[tuple[World, Broker, Broker]]:
    """A SYNC_MASTER with a slave that follows, and some messages."""
    async with world_in(directory) as world:
        group = Group(world, await world.name_server())
        master = await group.master("SYNC_MASTER", **settings)
        slave = await group.slave(1)
        await eventually(lambda: len(master.core.replicas) == 1)
        assert await sent(world.client(master.address), 20) == [0] * 20
        yield world, master, slave
        assert await sent(world.client(master.address), 20, 20) == [0] * 20
        await eventually(lambda: has_all(slave, master))


def told(caplog: pytest.LogCaptureFixture, *words: str) -> list[str]:
    return [text for text in caplog.messages if any(word in text for word in words)]


@pytest.mark.parametrize(
    ("first_bytes", "reason"),
    [
        (b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n", "is no slave of this broker"),
        (encode_bytes(HEARTBEAT), "is no slave of this broker"),
        (bytes([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]), "is no slave of this broker"),
        (encode_report(-2), "found the offset -2"),
        (encode_report(-(1 << 63)), "found the offset -9223372036854775808"),
        (encode_report(10_000_000), "its log ends at 10000000"),
        (encode_report(0) * 1000 + encode_report((1 << 63) - 1), "its log ends at 92233720368547"),
    ],
    ids=["http", "remoting", "tls", "negative", "least", "beyond", "later"],
)
async def test_a_peer_that_is_no_slave(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, first_bytes: bytes, reason: str
) -> None:
    async with pair(tmp_path) as (_, master, _):
        caplog.clear()
        peer = await Peer.of(master)
        peer.say(first_bytes)
        assert await peer.is_hung_up()
        await peer.close()
        await eventually(lambda: len(master.replication.port.peers) == 1)
        [line] = told(caplog, "slave")
        assert line.startswith("slave refused peer=127.0.0.1:")
        assert reason in line


async def test_a_slave_that_confirms_what_it_was_never_sent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with pair(tmp_path, haSendHeartbeatInterval="60000") as (world, master, _):
        for _ in range(5):
            await world.client(master.address).send("T", BODY)
        peer = await Peer.of(master)
        caplog.clear()
        # Its own log would have to end where ours does, before anything was sent.
        peer.say(encode_report(0))
        peer.say(encode_report(master.core.store.max_physical + 1))
        assert await peer.is_hung_up()
        await peer.close()
        assert len(told(caplog, "slave refused")) == 1
        assert len(master.core.replicas) == 1


async def test_a_flood_of_reports(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with pair(tmp_path) as (world, master, _):
        caplog.clear()
        peer = await Peer.of(master)
        flood = asyncio.create_task(peer.say_all(encode_report(0) * (1 << 21)))
        client = world.client(master.address)
        while not flood.done():
            assert await sent(client, 1) == [0]
        await flood
        assert told(caplog, "slave") == []
        assert len(master.core.replicas) == 1
        await peer.close()


async def test_a_peer_that_never_reads(tmp_path: Path) -> None:
    async with pair(tmp_path) as (world, master, _):
        client = world.client(master.address)
        for _ in range(500):
            await client.send("T", BODY)
        assert master.core.store.max_physical > 4 * (BUFFER_HIGH_BYTES + TURN_BYTES)
        peer = await Peer.of(master)
        peer.say(encode_report(0))
        port = master.replication.port
        await eventually(lambda: any(one.is_paused for one in port.peers))
        [link] = [one for one in port.peers if one not in port.links]
        assert link.unsent_bytes <= BUFFER_HIGH_BYTES + TURN_BYTES
        assert await sent(client, 20) == [0] * 20
        assert link.unsent_bytes <= BUFFER_HIGH_BYTES + TURN_BYTES
        # What waits for it does not keep it when it is refused.
        peer.say(encode_report(-1))
        await eventually(lambda: len(port.peers) == 1)
        await peer.close()


async def test_a_peer_that_never_says_anything(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with pair(tmp_path, haHousekeepingInterval="6000") as (_, master, _):
        master.live.update({"haHousekeepingInterval": "1000"})
        peer = await Peer.of(master)
        assert len(master.core.replicas) == 1
        assert await peer.is_hung_up()
        await peer.close()
        [line] = told(caplog, "said nothing")
        assert "slave disconnected peer=127.0.0.1:" in line


async def test_more_connections_than_allowed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with pair(tmp_path, haConnectionsMax="2") as (_, master, _):
        caplog.clear()
        first = await Peer.of(master)
        await eventually(lambda: len(master.replication.port.peers) == 2)
        second = await Peer.of(master)
        assert await second.is_hung_up()
        [line] = told(caplog, "slave refused")
        assert "there are 2 connections already (haConnectionsMax)" in line
        assert master.core.reached.counts["haConnectionsMax"] == 1
        await first.close()
        await second.close()
        await eventually(lambda: len(master.replication.port.peers) == 1)


async def test_a_peer_from_outside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with pair(tmp_path, haAllowedAddresses="127.0.0.1;10.1.0.0/16") as (_, master, _):
        master.live.update({"haAllowedAddresses": "10.0.0.0/8;fd00::/8"})
        caplog.clear()
        peer = await Peer.of(master)
        peer.say(encode_report(0))
        assert await peer.is_hung_up()
        await peer.close()
        [line] = told(caplog, "slave")
        assert "its address is not in haAllowedAddresses" in line
        with pytest.raises(ConfigError, match=r"haAllowedAddresses=10\.0\.0\.0/99"):
            master.live.update({"haAllowedAddresses": "10.0.0.0/99"})


async def test_a_slave_that_is_not_allowed_any_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with pair(tmp_path) as (_, master, _):
        caplog.clear()
        master.live.update({"haAllowedAddresses": "10.0.0.0/8"})
        await eventually(lambda: not master.replication.port.peers)
        [line] = told(caplog, "slave disconnected")
        assert "its address is not in haAllowedAddresses" in line
        master.live.update({"haAllowedAddresses": "127.0.0.0/8"})
        await eventually(lambda: len(master.core.replicas) == 1)


async def test_two_slaves_with_one_id(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with world_in(tmp_path) as world:
        names = await world.name_server()
        group = Group(world, names)
        master = await group.master()
        slave = await group.slave(1)
        await eventually(lambda: len(master.core.replicas) == 1)
        caplog.clear()
        other = await world.broker(
            "other", brokerName="b", brokerRole="SLAVE", brokerId="1", namesrvAddr=names
        )
        await sent(world.client(master.address), 20)
        await eventually(lambda: has_all(slave, master))
        [line] = told(caplog, "not registered")
        assert "b id 1" in line
        assert "is alive" in line
        assert other.core.store.max_physical == 0
        assert await addresses(world, names) == {0: master.address, 1: slave.address}


async def test_two_masters_by_configuration(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with world_in(tmp_path) as world:
        names = await world.name_server()
        group = Group(world, names)
        master = await group.master()
        slave = await group.slave(1)
        await eventually(lambda: len(master.core.replicas) == 1)
        caplog.clear()
        await world.broker("other", brokerName="b", namesrvAddr=names)
        await sent(world.client(master.address), 20)
        await eventually(lambda: has_all(slave, master))
        [line] = told(caplog, "not registered")
        assert "b id 0" in line
        assert "is alive" in line
        assert await addresses(world, names) == {0: master.address, 1: slave.address}


@pytest.mark.parametrize("file_bytes", [1 << 19, 1 << 21, 3 << 19], ids=["half", "double", "odd"])
async def test_a_slave_with_files_of_another_size(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, file_bytes: int
) -> None:
    async with pair(tmp_path) as (world, master, _):
        client = world.client(master.address)
        for _ in range(60):
            await client.send("T", BODY)
        other = await Group(world, world.names).slave(2, mappedFileSizeCommitLog=str(file_bytes))
        await eventually(lambda: bool(told(caplog, "not following")))
        end = other.core.store.max_physical
        await asyncio.sleep(1)
        await client.send("T", BODY)
        [line] = told(caplog, "not following")
        assert "mappedFileSizeCommitLog" in line
        assert other.core.store.max_physical == end, "it took no more"


async def test_a_slave_of_another_cluster(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with pair(tmp_path) as (world, master, _):
        caplog.clear()
        other = await Group(world, world.names).slave(2, brokerClusterName="Elsewhere")
        await eventually(lambda: bool(told(caplog, "not registered")))
        await sent(world.client(master.address), 5)
        [line] = told(caplog, "not registered")
        assert "the cluster DefaultCluster" in line
        assert other.core.store.max_physical == 0
        assert 2 not in await addresses(world, world.names)


async def addresses(world: World, names: str) -> dict[int, str]:
    reply = await world.client(names).ask(105, {"topic": "TBW102"})
    [broker] = decode_route(reply.body).broker_datas
    return dict(broker.broker_addrs)


async def test_who_answers_in_place_of_a_dead_master_is_not_copied(tmp_path: Path) -> None:
    """A machine whose disk was lost comes back empty, at the same address and as no master."""
    async with replica_group(tmp_path, watch_ms=None) as group:
        slave = group.slave
        group.put([b"0", b"1"])
        master_topics = group.master.core.topics
        await eventually(lambda: slave.core.topics.version == master_topics.version)
        await group.kill_master()
        stranger = group.stranger()
        await stranger.start()
        try:
            await eventually(lambda: not slave.replication.link.is_following)
            await slave.replication.metadata.sync_now()
            assert TOPIC in slave.core.topics
            assert slave.core.store.max_offset(TOPIC, 0) == 1
        finally:
            await stranger.stop()
