"""Several controllers over a real etcd, and brokers under them: any of them may die, and all of etcd may be gone."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from tests.eventually import eventually, wait_until
from tests.integration.commands import ask, free_port, process
from tests.integration.etcd_cluster import EtcdCluster, needs_etcd
from tests.integration.servers import broker_config, running_name_server
from tests.integration.test_broker import Client
from tests.integration.test_controller_mode import is_master, members

from cometmq.broker.server import Broker
from cometmq.controller.controller_config import SCHEMA
from cometmq.controller.group import Group
from cometmq.controller.server import Controller
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command

pytestmark = needs_etcd

LEASE_SECONDS = 4.0
"""Of brokers: short, so that a test sees many of them pass, and long enough for a busy machine."""


class Controlled:
    """Controllers over one etcd, and a group of brokers under them."""

    def __init__(self, directory: Path, etcd: EtcdCluster, name_server: str) -> None:
        self._directory = directory
        self._etcd = etcd
        self._name_server = name_server
        self.controllers: list[Controller] = []
        self.brokers: list[Broker] = []
        self._clients: list[Client] = []

    async def controller(self, port: int = 0) -> Controller:
        name = f"n{len(self.controllers)}"
        config, _ = SCHEMA.load(
            {
                "controllerDLegerSelfId": name,
                "listenPort": str(port),
                "etcdEndpoints": self._etcd.endpoints,
                "etcdLeaseSeconds": "2",
                "etcdTimeoutMills": "500",
                "scanInactiveMasterInterval": "500",
                "scanNotActiveBrokerInterval": "500",
            }
        )
        controller = Controller(config)
        await controller.start()
        self.controllers.append(controller)
        return controller

    async def broker(self, directory: str, **settings: str) -> Broker:
        addresses = [f"127.0.0.1:{one.port}" for one in self.controllers]
        broker = Broker(
            broker_config(
                self._directory / directory,
                namesrvAddr=self._name_server,
                controllerAddr=";".join(addresses),
                enableControllerMode="true",
                **{
                    "slaveTimeout": "2000",
                    "controllerHeartBeatTimeoutMills": str(int(LEASE_SECONDS * 1000)),
                    **settings,
                },
            )
        )
        await broker.start()
        self.brokers.append(broker)
        return broker

    async def pair(self) -> tuple[Broker, Broker]:
        """A master and a slave in its set."""
        master = await self.broker("1")
        await eventually(lambda: is_master(master))
        slave = await self.broker("2")
        await eventually(lambda: members(master) == {1, 2})
        return master, slave

    def client(self, address: str) -> Client:
        client = Client(address)
        self._clients.append(client)
        return client

    async def send(self, broker: Broker) -> int:
        return (await self.client(broker.address).send("T", b"x")).code

    def leader(self) -> Controller | None:
        leaders = [one for one in self.controllers if one.roster().is_leader]
        return leaders[0] if len(leaders) == 1 else None

    async def stop(self) -> None:
        for client in self._clients:
            await client.remoting.close()
        for broker in reversed(self.brokers):
            await broker.stop()
        for controller in self.controllers:
            await controller.stop()


def group_at(controller: Controller) -> Group:
    return controller.store.known()["b"].group


@asynccontextmanager
async def controlled(directory: Path, etcd: EtcdCluster, count: int) -> AsyncIterator[Controlled]:
    async with AsyncExitStack() as stack:
        name_server = await stack.enter_async_context(running_name_server())
        world = Controlled(directory, etcd, name_server)
        stack.push_async_callback(world.stop)
        for _ in range(count):
            await world.controller()
        await eventually(world.leader, "one leader")
        yield world


@pytest.fixture
def etcd(tmp_path: Path) -> EtcdCluster:
    return EtcdCluster(tmp_path / "etcd")


async def test_the_leader_dies_and_another_replaces_the_next_master(
    tmp_path: Path, etcd: EtcdCluster
) -> None:
    with etcd:
        async with controlled(tmp_path, etcd, 3) as world:
            master, slave = await world.pair()
            assert await world.send(master) == 0
            await eventually(lambda: all(len(one.roster().peers) == 3 for one in world.controllers))
            leader = world.leader()
            assert leader is not None
            for one in world.controllers:
                reply = await world.client(f"127.0.0.1:{one.port}").ask(
                    RequestCode.CONTROLLER_GET_METADATA_INFO
                )
                ext = reply.ext or {}
                assert ext["controllerLeaderAddress"] == leader.own_peer.address
                assert ext["isLeader"] == ("true" if one is leader else "false")
                assert ext["peers"].count(";") == 3
            # Without a word to etcd: its lease has to run out.
            world.controllers.remove(leader)
            assert leader.etcd is not None
            assert leader.etcd._task is not None
            leader.etcd._task.cancel()
            leader.etcd.members._lease = 0
            await leader.stop()
            assert await world.send(master) == 0
            await eventually(world.leader, "another leader")
            assert is_master(master)
            assert group_at(world.controllers[0]).master_epoch == 1
            await master.kill()
            await eventually(lambda: is_master(slave))
            assert await world.send(slave) == 0
            assert all(
                group_at(one).master_id == 2 for one in world.controllers if one.roster().is_leader
            )


async def test_a_member_of_etcd_dies_and_elections_go_on(tmp_path: Path, etcd: EtcdCluster) -> None:
    with etcd:
        async with controlled(tmp_path, etcd, 2) as world:
            master, slave = await world.pair()
            etcd.members[0].kill()
            await master.kill()
            await eventually(lambda: is_master(slave))
            assert await world.send(slave) == 0
            # It comes back, and another one dies.
            etcd.start()
            etcd.members[2].kill()
            again = await world.broker("1")
            await eventually(lambda: members(slave) == {1, 2})
            await slave.kill()
            await eventually(lambda: is_master(again))
            assert await world.send(again) == 0


async def test_without_etcd_everything_goes_on_as_it_is(
    tmp_path: Path, etcd: EtcdCluster, caplog: pytest.LogCaptureFixture
) -> None:
    with etcd:
        async with controlled(tmp_path, etcd, 2) as world:
            master, slave = await world.pair()
            etcd.kill()
            await eventually(lambda: world.leader() is None, "nobody leads")
            loop = asyncio.get_running_loop()
            end = loop.time() + 4 * LEASE_SECONDS
            while loop.time() < end:
                assert await world.send(master) == 0
                assert is_master(master)
                await asyncio.sleep(0.05)
            assert slave.core.store.max_physical == master.core.store.max_physical
            # Who asks for a decision is told why there is none.
            tool = world.client(f"127.0.0.1:{world.controllers[0].port}")
            ext = {"clusterName": "DefaultCluster", "brokerName": "b", "brokerId": "2"}
            reply = await tool.ask(
                RequestCode.CONTROLLER_ELECT_MASTER, {**ext, "designateElect": "true"}
            )
            assert reply.code == ResponseCode.CONTROLLER_NOT_LEADER
            assert "no member of etcd answers" in (reply.remark or "")
            etcd.start()
            await eventually(world.leader, "one leader")
            assert await world.send(master) == 0
            assert group_at(world.controllers[0]).master_epoch == 1
            assert sum(line.startswith("etcd lost") for line in caplog.messages) == 2
            await eventually(lambda: "a controller reaches its store again" in caplog.text)
            await master.kill()
            await eventually(lambda: is_master(slave))
            assert await world.send(slave) == 0


async def test_an_etcd_that_hangs_is_like_one_that_is_gone(
    tmp_path: Path, etcd: EtcdCluster
) -> None:
    with etcd:
        async with controlled(tmp_path, etcd, 2) as world:
            lease_seconds = 4.0
            settings = {"controllerHeartBeatTimeoutMills": str(int(lease_seconds * 1000))}
            master = await world.broker("1", **settings)
            await eventually(lambda: is_master(master))
            for member in etcd.members:
                member.pause()
            loop = asyncio.get_running_loop()
            end = loop.time() + 2 * lease_seconds
            while loop.time() < end:
                assert await world.send(master) == 0
                await asyncio.sleep(0.05)
            assert world.leader() is None
            for member in etcd.members:
                member.resume()
            await eventually(world.leader, "one leader")
            assert group_at(world.controllers[0]).master_epoch == 1
            assert await world.send(master) == 0


async def test_a_master_that_dies_without_etcd_is_replaced_when_it_is_back(
    tmp_path: Path, etcd: EtcdCluster
) -> None:
    with etcd:
        async with controlled(tmp_path, etcd, 2) as world:
            master, slave = await world.pair()
            etcd.kill()
            await eventually(lambda: world.leader() is None, "nobody leads")
            await master.kill()
            assert not is_master(slave)
            etcd.start()
            await eventually(lambda: is_master(slave))
            assert await world.send(slave) == 0


def test_both_commands_run_controllers_over_etcd(tmp_path: Path, etcd: EtcdCluster) -> None:
    ports = [free_port(), free_port()]
    peers = ";".join(f"n{number}-127.0.0.1:{port}" for number, port in enumerate(ports))
    files = [tmp_path / "controller.conf", tmp_path / "namesrv.conf"]
    with etcd:
        for number, file in enumerate(files):
            file.write_text(
                f"controllerDLegerPeers={peers}\ncontrollerDLegerSelfId=n{number}\n"
                f"etcdEndpoints={etcd.endpoints}\netcdPrefix=/both\n"
            )
        with files[1].open("a") as more:
            more.write(f"enableControllerInNamesrv=true\nlistenPort={free_port()}\n")
        command = [sys.executable, "-m", "cometmq.controller", "-c", str(files[0])]
        with (
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as controller,
            process("cometmq.namesrv", "-c", str(files[1])) as (name_server, greeting),
        ):
            try:
                assert f"  controller      127.0.0.1:{ports[1]}" in greeting
                assert controller.stdout is not None
                found = next(line for line in controller.stdout if "decisions in" in line)
                assert found.split() == ["decisions", "in", "etcd,", "/both", "at", etcd.endpoints]

                def metadata(port: int) -> dict[str, str]:
                    return ask(port, Command(code=1005)).ext or {}

                wait_until(lambda: all(metadata(port)["peers"].count(";") == 2 for port in ports))
                leaders = {metadata(port).get("controllerLeaderAddress") for port in ports}
                assert len(leaders) == 1
                assert leaders <= {f"127.0.0.1:{port}" for port in ports}
            finally:
                for child in (controller, name_server):
                    child.send_signal(signal.SIGTERM)
            assert controller.wait(10) == 0
            name_server.communicate(timeout=10)
            assert name_server.returncode == 0
