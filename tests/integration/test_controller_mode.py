"""Brokers under a controller, all in one event loop: election, fail-over, rejoining, and who counts for a send."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from tests.eventually import eventually
from tests.integration.servers import broker_config, running_broker, running_name_server
from tests.integration.test_broker import Client, bodies

from cometmq.broker.server import Broker
from cometmq.controller.controller_config import ControllerConfig
from cometmq.controller.server import Controller
from cometmq.protocol.bodies.ha import EpochCache
from cometmq.protocol.codes import RequestCode, ResponseCode


class ControlledGroup:
    """Brokers of one name behind one name server and one controller."""

    def __init__(self, directory: Path, name_server: str, controller: Controller) -> None:
        self._directory = directory
        self.name_server = name_server
        self.controller = controller
        self.brokers: list[Broker] = []
        self._clients: list[Client] = []

    async def broker(self, directory: str, **settings: str) -> Broker:
        broker = Broker(
            broker_config(
                self._directory / directory,
                namesrvAddr=self.name_server,
                controllerAddr=f"127.0.0.1:{self.controller.port}",
                enableControllerMode="true",
                **{"slaveTimeout": "2000", **settings},
            )
        )
        await broker.start()
        self.brokers.append(broker)
        return broker

    async def pair(self, **settings: str) -> tuple[Broker, Broker]:
        """A master and a slave that is in its SyncStateSet."""
        master = await self.broker("1", **settings)
        await eventually(lambda: is_master(master))
        slave = await self.broker("2", **settings)
        await eventually(lambda: members(master) == {1, 2})
        return master, slave

    def client(self, broker: Broker) -> Client:
        client = Client(broker.address)
        self._clients.append(client)
        return client

    async def sent(self, broker: Broker, count: int, start: int = 0) -> list[int]:
        client = self.client(broker)
        numbers = range(start, start + count)
        replies = await asyncio.gather(*(client.send("T", b"%d" % number) for number in numbers))
        return [reply.code for reply in replies]

    async def stop(self) -> None:
        for client in self._clients:
            await client.remoting.close()
        for broker in reversed(self.brokers):
            await broker.stop()


@asynccontextmanager
async def group_in(directory: Path) -> AsyncIterator[ControlledGroup]:
    async with AsyncExitStack() as stack:
        name_server = await stack.enter_async_context(running_name_server())
        config = ControllerConfig(store_path=str(directory / "controller"), listen_port=0)
        controller = Controller(config)
        await controller.start()
        stack.push_async_callback(controller.stop)
        group = ControlledGroup(directory, name_server, controller)
        stack.push_async_callback(group.stop)
        yield group


def is_master(broker: Broker) -> bool:
    return broker.role.is_settled and not broker.live.current.identity.is_slave


def members(broker: Broker) -> frozenset[int]:
    switch = broker.replication.switch
    assert switch is not None
    return switch.sync.members


def epochs(broker: Broker) -> list[tuple[int, int]]:
    switch = broker.replication.switch
    assert switch is not None
    return list(switch.epochs.table)


def has_all(slave: Broker, master: Broker) -> bool:
    return slave.core.store.watermarks.dispatched.value == master.core.store.max_physical


async def test_the_first_broker_is_elected_and_the_next_one_follows(tmp_path: Path) -> None:
    async with group_in(tmp_path) as group:
        master, slave = await group.pair()
        assert await group.sent(master, 50) == [0] * 50
        assert slave.core.store.max_physical == master.core.store.max_physical
        await eventually(lambda: has_all(slave, master))
        assert (tmp_path / "1" / "brokerIdentity").read_text() == "DefaultCluster#b#1"
        assert (tmp_path / "2" / "brokerIdentity").read_text() == "DefaultCluster#b#2"
        assert epochs(master) == epochs(slave) == [(1, 0)]
        assert master.core.topics.version.state_version == 1
        found = EpochCache.decode((await group.client(slave).ask(1007)).body)
        assert (found.broker_id, found.max_offset) == (2, slave.core.store.max_physical)
        assert [(one.epoch, one.start_offset, one.end_offset) for one in found.epoch_list] == [
            (1, 0, 2**63 - 1)
        ]


async def test_a_killed_master_is_replaced_and_comes_back_as_a_slave(tmp_path: Path) -> None:
    async with group_in(tmp_path) as group:
        master, slave = await group.pair()
        assert await group.sent(master, 20) == [0] * 20
        end = master.core.store.max_physical
        await master.kill()
        await eventually(lambda: is_master(slave), seconds=20)
        assert epochs(slave) == [(1, 0), (2, end)]
        assert members(slave) == {2}
        assert await group.sent(slave, 20, 20) == [0] * 20
        again = await group.broker("1")
        await eventually(lambda: members(slave) == {1, 2}, seconds=20)
        await eventually(lambda: has_all(again, slave))
        assert epochs(again) == epochs(slave)
        assert await group.sent(slave, 20, 40) == [0] * 20
        reply = await group.client(slave).pull("T", 0, maxMsgNums="64")
        assert bodies(reply) == [b"%d" % number for number in range(32)]


async def test_what_nobody_confirmed_is_cut_when_the_old_master_comes_back(tmp_path: Path) -> None:
    async with group_in(tmp_path) as group:
        master, slave = await group.pair()
        assert await group.sent(master, 10) == [0] * 10
        common = master.core.store.max_physical
        await eventually(lambda: has_all(slave, master))
        # The slave does not get what is sent now, and is elected all the same.
        await slave.replication.stop_following()
        replies = asyncio.create_task(group.sent(master, 5, 100))
        await eventually(lambda: master.core.store.max_physical > common)
        await master.kill()
        await asyncio.wait([replies])
        replies.exception()
        await eventually(lambda: is_master(slave), seconds=20)
        assert await group.sent(slave, 3, 200) == [0] * 3
        again = await group.broker("1")
        await eventually(lambda: members(slave) == {1, 2}, seconds=20)
        await eventually(lambda: has_all(again, slave))
        (kept,) = (tmp_path / "1" / "cut").iterdir()
        assert kept.name.startswith(f"{common:020}-")
        found = bodies(await group.client(again).pull("T", 10))
        assert found == [b"200", b"201", b"202"]


async def test_a_slave_that_is_gone_leaves_the_set_and_sends_go_on(tmp_path: Path) -> None:
    async with group_in(tmp_path) as group:
        master, slave = await group.pair()
        await slave.kill()
        await eventually(lambda: members(master) == {1})
        assert await group.sent(master, 5) == [0] * 5
        master.live.update({"minInSyncReplicas": "2"})
        reply = await group.client(master).send("T")
        assert reply.code == ResponseCode.SYSTEM_ERROR
        assert "in-sync replicas not enough" in (reply.remark or "")
        master.live.update({"minInSyncReplicas": "1", "inSyncReplicas": "2"})
        assert await group.sent(master, 1) == [ResponseCode.SLAVE_NOT_AVAILABLE]


async def test_a_master_that_reaches_no_controller_acknowledges_nothing(tmp_path: Path) -> None:
    async with group_in(tmp_path) as group:
        settings = {"controllerHeartBeatTimeoutMills": "1500", "slaveTimeout": "300"}
        master, slave = await group.pair(**settings)
        assert await group.sent(master, 1) == [0]
        port = group.controller.port
        await group.controller.stop()
        await eventually(lambda: not is_master(master) and master.role.is_settled)
        assert await group.sent(master, 1) == [ResponseCode.SERVICE_NOT_AVAILABLE]
        config = ControllerConfig(store_path=str(tmp_path / "controller"), listen_port=port)
        group.controller = Controller(config)
        await group.controller.start()
        try:
            await eventually(lambda: is_master(master) or is_master(slave), seconds=20)
            leader = master if is_master(master) else slave
            # The slave was in the set all the time, but had left the master, which was none for a while.
            await eventually(lambda: len(leader.core.replicas) == 1, seconds=20)
            await eventually(lambda: members(leader) == {1, 2}, seconds=20)
            assert await group.sent(leader, 5) == [0] * 5
        finally:
            await group.controller.stop()


async def test_an_operator_elects_another_master(tmp_path: Path) -> None:
    async with group_in(tmp_path) as group:
        master, slave = await group.pair()
        await group.sent(master, 10)
        tool = Client(f"127.0.0.1:{group.controller.port}")
        ext = {"clusterName": "DefaultCluster", "brokerName": "b", "brokerId": "2"}
        reply = await tool.ask(1002, {**ext, "designateElect": "true"})
        assert reply.code == 0
        await eventually(lambda: is_master(slave) and not is_master(master))
        await eventually(lambda: members(slave) == {1, 2}, seconds=20)
        assert await group.sent(slave, 10) == [0] * 10
        assert epochs(master) == epochs(slave)
        await tool.remoting.close()


async def test_the_role_is_the_controllers(tmp_path: Path) -> None:
    async with group_in(tmp_path) as group:
        master = await group.broker("1", brokerRole="SYNC_MASTER", brokerId="7")
        await eventually(lambda: is_master(master))
        body = b"brokerRole=SLAVE\nbrokerId=4\n"
        reply = await group.client(master).ask(RequestCode.UPDATE_BROKER_CONFIG, {}, body)
        assert reply.code != 0
        assert "the controller decides" in (reply.remark or "")


async def test_two_slaves_and_all_of_them_are_waited_for(tmp_path: Path) -> None:
    async with group_in(tmp_path) as group:
        master, slave = await group.pair()
        third = await group.broker("3")
        await eventually(lambda: members(master) == {1, 2, 3})
        assert await group.sent(master, 20) == [0] * 20
        end = master.core.store.max_physical
        assert slave.core.store.max_physical == third.core.store.max_physical == end
        await master.kill()
        await eventually(lambda: is_master(slave) or is_master(third), seconds=20)
        leader, other = (slave, third) if is_master(slave) else (third, slave)
        await eventually(lambda: len(members(leader)) == 2, seconds=20)
        assert await group.sent(leader, 20, 20) == [0] * 20
        await eventually(lambda: has_all(other, leader))


async def test_a_slave_shows_what_all_others_have(tmp_path: Path) -> None:
    """Another one of them may be elected, and does not have the rest."""
    async with group_in(tmp_path) as group:
        master, slave = await group.pair(slaveTimeout="10000")
        third = await group.broker("3", slaveTimeout="10000")
        await eventually(lambda: members(master) == {1, 2, 3})
        assert await group.sent(master, 5) == [0] * 5
        await eventually(lambda: has_all(slave, master))
        shown = slave.core.store.watermarks.dispatched.value
        # A cut-off slave that the master still waits for.
        third.replication.link.follow(None)
        sending = asyncio.create_task(group.sent(master, 5, 5))
        await eventually(lambda: slave.core.store.max_physical > shown)
        assert slave.core.store.max_offset("T", 0) == 5
        # It is let go, and what was stored meanwhile is confirmed.
        assert await sending == [0] * 5
        await eventually(lambda: has_all(slave, master))
        assert slave.core.store.max_offset("T", 0) == 10


async def test_a_store_from_before_the_controller(tmp_path: Path) -> None:
    async with group_in(tmp_path) as group:
        async with running_broker(tmp_path / "1") as alone:
            assert await group.sent(alone, 20) == [0] * 20
        master, slave = await group.pair()
        await eventually(lambda: has_all(slave, master))
        assert await group.sent(master, 5, 20) == [0] * 5
        assert epochs(master) == epochs(slave) == [(1, 0)]
        assert slave.core.store.max_physical == master.core.store.max_physical


async def test_a_broker_stopped_in_good_order_is_replaced_at_once(tmp_path: Path) -> None:
    async with group_in(tmp_path) as group:
        master, slave = await group.pair()
        assert await group.sent(master, 5) == [0] * 5
        await master.stop()
        await eventually(lambda: is_master(slave))
        assert await group.sent(slave, 5, 5) == [0] * 5


async def test_the_two_kinds_of_replication_do_not_mix(tmp_path: Path) -> None:
    """Whoever is of the other kind is refused, and nothing is cut."""
    async with group_in(tmp_path) as group:
        master, slave = await group.pair()
        assert await group.sent(master, 5) == [0] * 5
        end = master.core.store.max_physical
        address = master.replication.port_address
        async with running_broker(
            tmp_path / "4", brokerRole="SLAVE", brokerId="4", haMasterAddress=address
        ) as stranger:
            await asyncio.sleep(0.5)
            assert not stranger.replication.link.is_following
            assert stranger.core.store.max_physical == 0
        assert members(master) == {1, 2}
        assert master.core.store.max_physical == slave.core.store.max_physical == end


async def test_without_a_controller_there_are_no_epochs(tmp_path: Path) -> None:
    async with running_broker(tmp_path / "b") as broker:
        client = Client(broker.address)
        for code in (RequestCode.GET_BROKER_EPOCH_CACHE, RequestCode.NOTIFY_BROKER_ROLE_CHANGED):
            reply = await client.ask(code)
            assert reply.code == ResponseCode.SYSTEM_ERROR
            assert "under no controller" in (reply.remark or "")
        await client.remoting.close()
