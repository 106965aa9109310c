"""RocketMQ 5.5.0 brokers in controller mode under our controller and our name server: join, fail over, return, move."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.eventually import wait_until
from tests.integration.etcd_cluster import EtcdCluster, needs_etcd
from tests.integration.raw_client import RawClient

from cometmq.protocol.bodies.ha import ReplicasInfo, SyncStateData
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command

from .conftest import EXIT_CODE_MISSING
from .java import MissingComponent
from .replication_group import make_topic, read, send, wait_for_equal_logs
from .servers import Server, ServerCommands, accepts, free_ports
from .systems import OURS, ROCKETMQ_5, Broker, NameServer, commands_of

pytestmark = pytest.mark.interop

BROKER_NAME = "elected"
CLUSTER = "interop-cluster"
# A Java broker that starts on a busy machine takes half of this.
SECONDS_MAX = 90.0


class ControllerProcess:
    def __init__(self, directory: Path, name: str = "n0", more: str = "") -> None:
        directory.mkdir(parents=True)
        (self.port,) = free_ports(0)
        conf = directory / "controller.conf"
        conf.write_text(
            f"controllerDLegerPeers={name}-127.0.0.1:{self.port}\n"
            f"controllerDLegerSelfId={name}\n"
            f"controllerStorePath={directory / 'store'}\n{more}"
        )
        command = [sys.executable, "-m", "cometmq.controller", "-c", str(conf)]
        self._server = Server("controller", command, {}, directory)

    def start(self) -> None:
        self._server.start(lambda: accepts(self.port))

    def stop(self) -> None:
        self._server.stop()

    def kill(self) -> None:
        self._server.kill()

    @property
    def leads(self) -> bool:
        ext = self.ask(RequestCode.CONTROLLER_GET_METADATA_INFO).ext or {}
        return ext["isLeader"] == "true"

    def ask(self, code: int, fields: dict[str, str] | None = None, body: object = b"") -> Command:
        async def run() -> Command:
            async with RawClient(f"127.0.0.1:{self.port}") as client:
                return await client.ask(code, fields, body)

        return asyncio.run(run())

    def state(self) -> ReplicasInfo:
        reply = self.ask(RequestCode.CONTROLLER_GET_SYNC_STATE_DATA, None, [BROKER_NAME])
        table = SyncStateData.decode(reply.body).replicas_info_table
        return table.get(BROKER_NAME, ReplicasInfo())

    def has(self, *, master: int, in_sync: set[int]) -> bool:
        state = self.state()
        found = {one.broker_id for one in state.in_sync_replicas}
        return state.master_broker_id == master and found == in_sync

    def wait_for(self, *, master: int, in_sync: set[int]) -> ReplicasInfo:
        wait_until(
            lambda: self.has(master=master, in_sync=in_sync),
            lambda: f"master {master} with {in_sync}: {self.state()}",
            SECONDS_MAX,
        )
        return self.state()


@pytest.fixture(scope="module")
def makes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ServerCommands]:
    home = tmp_path_factory.mktemp("homes")
    try:
        return {make: commands_of(make, home / make) for make in (OURS, ROCKETMQ_5)}
    except MissingComponent as error:
        pytest.exit(f"interop tests cannot run: {error}", returncode=EXIT_CODE_MISSING)


@contextmanager
def a_controller(directory: Path) -> Iterator[ControllerProcess]:
    controller = ControllerProcess(directory)
    try:
        controller.start()
        yield controller
        controller.stop()
    finally:
        controller.kill()


def test_java_brokers_are_elected_fail_over_and_return(
    makes: dict[str, ServerCommands], tmp_path: Path
) -> None:
    with (
        NameServer(makes[OURS], tmp_path / "namesrv").running() as names,
        a_controller(tmp_path / "controller") as controller,
        ExitStack() as stack,
    ):
        brokers: dict[int, Broker] = {}
        for number in (1, 2):
            broker = brokers[number] = Broker(
                [names],
                tmp_path / f"broker-{number}",
                BROKER_NAME,
                enableControllerMode="true",
                controllerAddr=f"127.0.0.1:{controller.port}",
                brokerIP2="127.0.0.1",
                inSyncReplicas=2,
                slaveReadEnable="true",
                mappedFileSizeCommitLog=1 << 20,
            )
            stack.callback(broker.kill)
            broker.start(makes[ROCKETMQ_5], until_known=False)
            # Ids are given in the order of arrival; the first one becomes master.
            controller.wait_for(master=1, in_sync=set(range(1, number + 1)))
        first, second = brokers[1], brokers[2]
        make_topic(first)
        assert set(send(first, 200, "first")) == {ResponseCode.SUCCESS}
        # The slave has the records at once, and learns of the topic within some seconds.
        wait_until(lambda: len(read(second)) == 200, "the slave serves all", SECONDS_MAX)
        before = controller.state()

        first.kill()
        state = controller.wait_for(master=2, in_sync={2})
        assert state.master_epoch == before.master_epoch + 1
        wait_until(lambda: names.knows(second.port), "the new master is known", SECONDS_MAX)
        wait_until(lambda: len(read(second)) == 200, "the new master serves all", SECONDS_MAX)

        first.start(makes[ROCKETMQ_5], until_known=False)
        controller.wait_for(master=2, in_sync={1, 2})
        assert set(send(second, 200, "second")) == {ResponseCode.SUCCESS}
        wait_for_equal_logs(second, first)

        # While the controller is away, brokers go on; when it is back, it takes nobody for dead.
        epoch = controller.state().master_epoch
        controller.stop()
        assert set(send(second, 50, "alone")) == {ResponseCode.SUCCESS}
        controller.start()
        state = controller.wait_for(master=2, in_sync={1, 2})
        assert state.master_epoch == epoch
        wait_until(lambda: all(one.alive for one in controller.state().in_sync_replicas))

        # What ``mqadmin electMaster`` sends.
        reply = controller.ask(
            RequestCode.CONTROLLER_ELECT_MASTER,
            {
                "clusterName": CLUSTER,
                "brokerName": BROKER_NAME,
                "brokerId": "1",
                "designateElect": "true",
            },
        )
        assert reply.code == ResponseCode.SUCCESS, reply.remark
        controller.wait_for(master=1, in_sync={1, 2})
        assert set(send(first, 50, "moved")) == {ResponseCode.SUCCESS}
        wait_until(lambda: len(read(first)) == 500, "nothing is lost", SECONDS_MAX)


@needs_etcd
def test_java_brokers_find_the_leader_of_several_controllers(
    makes: dict[str, ServerCommands], tmp_path: Path
) -> None:
    with (
        NameServer(makes[OURS], tmp_path / "namesrv").running() as names,
        EtcdCluster(tmp_path / "etcd", members=1) as etcd,
        ExitStack() as stack,
    ):
        controllers = []
        for number in range(2):
            more = f"etcdEndpoints={etcd.endpoints}\n"
            one = ControllerProcess(tmp_path / f"controller-{number}", f"n{number}", more)
            stack.callback(one.kill)
            one.start()
            controllers.append(one)
        brokers = []
        for number in (1, 2):
            broker = Broker(
                [names],
                tmp_path / f"broker-{number}",
                BROKER_NAME,
                enableControllerMode="true",
                controllerAddr=";".join(f"127.0.0.1:{one.port}" for one in controllers),
                brokerIP2="127.0.0.1",
                inSyncReplicas=2,
                mappedFileSizeCommitLog=1 << 20,
            )
            stack.callback(broker.kill)
            broker.start(makes[ROCKETMQ_5], until_known=False)
            controllers[0].wait_for(master=1, in_sync=set(range(1, number + 1)))
            brokers.append(broker)
        first, second = brokers
        make_topic(first)
        assert set(send(first, 50, "first")) == {ResponseCode.SUCCESS}

        # Without etcd everything goes on.
        etcd.kill()
        wait_until(lambda: not any(one.leads for one in controllers), "nobody leads")
        assert set(send(first, 50, "without")) == {ResponseCode.SUCCESS}
        etcd.start()
        wait_until(lambda: sum(one.leads for one in controllers) == 1, "one leads")

        leader = next(one for one in controllers if one.leads)
        (other,) = (one for one in controllers if one is not leader)
        leader.kill()
        wait_until(lambda: other.leads, "the other leads")
        assert other.has(master=1, in_sync={1, 2})
        first.kill()
        other.wait_for(master=2, in_sync={2})
        first.start(makes[ROCKETMQ_5], until_known=False)
        # It takes the new leader's word for the set, and tells it of the slave.
        other.wait_for(master=2, in_sync={1, 2})
        assert set(send(second, 50, "second")) == {ResponseCode.SUCCESS}
        wait_for_equal_logs(second, first)
