"""A master and its slaves as brokers of one event loop: copies, send statuses, promotion, and logs that went apart."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.eventually import eventually
from tests.integration.test_broker import Client, World, bodies, world_in

from cometmq.broker.server import Broker
from cometmq.protocol.bodies.ha import HaStatus
from cometmq.protocol.codes import ResponseCode

MASTER = "ASYNC_MASTER"
SYNC = "SYNC_MASTER"


class Group:
    """Brokers of one name, known to one name server."""

    def __init__(self, world: World, name_server: str) -> None:
        self._world = world
        self._name_server = name_server

    async def master(self, role: str = MASTER, **settings: str) -> Broker:
        return await self._broker("0", brokerRole=role, **settings)

    async def slave(self, number: int = 1, **settings: str) -> Broker:
        settings = {"brokerRole": "SLAVE", **settings}
        return await self._broker(str(number), brokerId=str(number), **settings)

    async def _broker(self, directory: str, **settings: str) -> Broker:
        return await self._world.broker(
            directory, namesrvAddr=self._name_server, **{**settings, "brokerName": "b"}
        )


def has_all(slave: Broker, master: Broker) -> bool:
    return slave.core.store.watermarks.dispatched.value == master.core.store.max_physical


def log_files(directory: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in (directory / "commitlog").iterdir()}


async def sent(client: Client, count: int, start: int = 0, **fields: str) -> list[int]:
    replies = await asyncio.gather(
        *(client.send("T", b"%d" % number, **fields) for number in range(start, start + count))
    )
    return [reply.code for reply in replies]


async def test_two_slaves_copy_the_log(tmp_path: Path) -> None:
    async with world_in(tmp_path) as world:
        group = Group(world, await world.name_server())
        slave = await group.slave(1)
        master = await group.master()
        client = world.client(master.address)
        assert await sent(client, 100) == [0] * 100
        late = await group.slave(2)
        assert await sent(client, 100, 100) == [0] * 100
        await eventually(lambda: has_all(slave, master) and has_all(late, master))
        await eventually(lambda: "T" in slave.core.topics.names())
        reply = await world.client(slave.address).pull("T", 0)
        assert bodies(reply) == [b"%d" % number for number in range(32)]
        assert (await world.client(slave.address).send("T")).code == (
            ResponseCode.SERVICE_NOT_AVAILABLE
        )
        for one in (master, slave, late):
            one.core.store.flush()
        assert log_files(tmp_path / "1") == log_files(tmp_path / "0") == log_files(tmp_path / "2")


async def test_the_statuses_of_a_sync_master(tmp_path: Path) -> None:
    async with world_in(tmp_path) as world:
        group = Group(world, await world.name_server())
        master = await group.master(SYNC, slaveTimeout="300")
        client = world.client(master.address)
        assert await sent(client, 3) == [ResponseCode.SLAVE_NOT_AVAILABLE] * 3
        assert await sent(client, 1, i="WAIT\x01false") == [0]
        slave = await group.slave()
        await eventually(lambda: len(master.core.replicas) == 1 and has_all(slave, master))
        assert await sent(client, 50) == [0] * 50
        assert slave.core.store.max_physical == master.core.store.max_physical
        master.live.update({"inSyncReplicas": "3"})
        assert await sent(client, 1) == [ResponseCode.SLAVE_NOT_AVAILABLE]
        master.live.update({"inSyncReplicas": "1", "minInSyncReplicas": "3"})
        end = master.core.store.max_physical
        reply = await client.send("T")
        assert reply.code == ResponseCode.SYSTEM_ERROR
        assert "in-sync replicas not enough" in (reply.remark or "")
        assert master.core.store.max_physical == end, "nothing was stored"


async def test_a_slave_that_does_not_confirm(tmp_path: Path) -> None:
    async with world_in(tmp_path) as world:
        group = Group(world, await world.name_server())
        master = await group.master(SYNC, slaveTimeout="300")
        client = world.client(master.address)
        reader, writer = await asyncio.open_connection(
            *master.replication.port_address.rsplit(":", 1)
        )
        writer.write(bytes(8))
        await eventually(lambda: len(master.core.replicas) == 1)
        assert await sent(client, 3) == [ResponseCode.FLUSH_SLAVE_TIMEOUT] * 3
        writer.close()
        await eventually(lambda: len(master.core.replicas) == 0)
        assert await sent(client, 1) == [ResponseCode.SLAVE_NOT_AVAILABLE]
        del reader


async def test_a_slave_is_promoted_and_the_old_master_follows_it(tmp_path: Path) -> None:
    async with world_in(tmp_path) as world:
        group = Group(world, await world.name_server())
        master = await group.master(brokerId="7")
        slave = await group.slave(1)
        client = world.client(master.address)
        await sent(client, 20)
        await eventually(lambda: has_all(slave, master))
        slave_link = slave.replication.link
        master.live.update({"brokerRole": "SLAVE"})
        await eventually(lambda: master.role.is_settled)
        slave.live.update({"brokerRole": MASTER})
        await eventually(lambda: slave.role.is_settled and master.replication.link.is_following)
        assert not slave_link.is_following
        assert await sent(world.client(slave.address), 20, 20) == [0] * 20
        await eventually(lambda: has_all(master, slave))
        found = bodies(await client.pull("T", 0, maxMsgNums="64"))
        assert found == [b"%d" % number for number in range(32)]


async def test_logs_that_went_apart(tmp_path: Path) -> None:
    async with world_in(tmp_path) as world:
        group = Group(world, await world.name_server())
        master = await group.master(brokerId="7")
        slave = await group.slave(1)
        await sent(world.client(master.address), 20)
        await eventually(lambda: has_all(slave, master))
        common = master.core.store.max_physical
        # Both are masters for a while: the network was cut, and somebody promoted the slave.
        await slave.replication.stop_following()
        slave.live.update({"brokerRole": MASTER})
        await eventually(lambda: slave.role.is_settled)
        await sent(world.client(slave.address), 5, 100)
        await sent(world.client(master.address), 9, 200)
        master.live.update({"brokerRole": "SLAVE"})
        await eventually(lambda: master.role.is_settled)
        slave.live.update({"brokerRole": "SYNC_MASTER"})
        await eventually(lambda: has_all(master, slave), seconds=20)
        found = bodies(await world.client(master.address).pull("T", 20))
        assert found == [b"%d" % number for number in range(100, 105)]
        (kept,) = (tmp_path / "0" / "cut").iterdir()
        assert kept.name.startswith(f"{common:020}-")
        assert all(b"%d" % number in kept.read_bytes() for number in range(200, 209))


async def test_the_state_of_replication(tmp_path: Path) -> None:
    async with world_in(tmp_path) as world:
        group = Group(world, await world.name_server())
        master, slave = await group.master(), await group.slave()
        await sent(world.client(master.address), 5)
        await eventually(lambda: has_all(slave, master) and len(master.core.replicas) == 1)
        end = master.core.store.max_physical
        await eventually(lambda: master.core.replicas.copied_to(2) == end)
        status = HaStatus.decode((await world.client(master.address).ask(907)).body)
        assert (status.master, status.master_commit_log_max_offset) == (True, end)
        assert status.in_sync_slave_nums == 1
        (one,) = status.ha_connection_info
        assert (one.slave_ack_offset, one.diff, one.in_sync) == (end, 0, True)
        own = HaStatus.decode((await world.client(slave.address).ask(907)).body)
        assert not own.master
        client = own.ha_client_runtime_info
        assert (client.max_offset, client.activated) == (end, True)
        assert client.master_addr == master.replication.port_address
        told = (await world.client(slave.address).ask(906)).ext or {}
        assert told == {}
        told = (await world.client(master.address).ask(906)).ext or {}
        assert told["masterAddress"] == master.address
        assert told["masterHaAddress"] == master.replication.port_address
