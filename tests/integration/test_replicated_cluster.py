"""Masters and slaves as users start them: ``testing.cluster(masters=, slaves=)`` and ``cometmq up --replicas``."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.eventually import eventually

from cometmq.base.errors import ConfigError, UsageError
from cometmq.broker.server import Broker
from cometmq.client import ClientConfig, Message, ProducerConfig, SendStatus
from cometmq.client.aio import Producer, PullConsumer
from cometmq.client.sync import Producer as BlockingProducer
from cometmq.testing import Cluster, cluster

QUEUES = 4


def producer_of(servers: Cluster, group: str = "senders") -> Producer:
    client = ClientConfig(name_servers=servers.name_servers, poll_name_server_millis=100)
    return Producer(group, config=ProducerConfig(client=client))


def stored(broker: Broker, topic: str) -> int:
    return sum(broker.core.store.max_offset(topic, queue) for queue in range(QUEUES))


def role_of(broker: Broker) -> str:
    return broker.live.current.identity.role


async def bodies_of(name_servers: str, topic: str) -> list[bytes]:
    found: list[bytes] = []
    async with PullConsumer("readers", name_servers=name_servers) as consumer:
        for queue in await consumer.queues(topic):
            result = await consumer.pull(queue, 0, count_max=1000)
            found += [message.body for message in result.messages]
    return sorted(found)


async def test_the_first_send_finds_the_slaves() -> None:
    async with cluster(slaves=2) as servers:
        assert [role_of(broker) for broker in servers.brokers] == ["SYNC_MASTER", "SLAVE", "SLAVE"]
        async with producer_of(servers) as producer:
            for number in range(20):
                sent = await producer.send(Message(topic="T", body=b"%d" % number))
                assert sent.status is SendStatus.SEND_OK
        await eventually(lambda: all(stored(slave, "T") == 20 for slave in servers.slaves))


async def test_groups_have_names_of_their_own() -> None:
    async with cluster(masters=2, slaves=1, settings={"brokerRole": "ASYNC_MASTER"}) as servers:
        assert [role_of(broker) for broker in servers.masters] == ["ASYNC_MASTER"] * 2
        names = [broker.live.current.identity.broker_name for broker in servers.masters]
        assert names == ["standalone", "standalone-2"]
        for master, slave in zip(servers.masters, servers.slaves, strict=True):
            assert servers.group_of(master) == [master, slave] == servers.group_of(slave)


async def test_a_killed_master_comes_back_as_a_slave() -> None:
    async with cluster(slaves=1) as servers, producer_of(servers) as producer:
        [master], [slave] = servers.masters, servers.slaves
        await producer.send(Message(topic="T", body=b"before"))
        await servers.kill(master)
        assert servers.brokers == [slave]
        with pytest.raises(UsageError, match="does not run"):
            await servers.stop(master)
        await servers.promote(slave)
        assert servers.masters == [slave]
        again = await servers.start(master)
        assert role_of(again) == "SLAVE"
        await eventually(lambda: len(slave.core.replicas) == 1)
        async with producer_of(servers, "later") as later:
            sent = await later.send(Message(topic="T", body=b"after"))
        assert sent.status is SendStatus.SEND_OK
        assert await bodies_of(servers.name_servers, "T") == [b"after", b"before"]
        await eventually(lambda: stored(again, "T") == 2)


async def test_a_running_master_changes_places_with_its_slave() -> None:
    async with cluster(slaves=1) as servers, producer_of(servers) as producer:
        [master], [slave] = servers.masters, servers.slaves
        for number in range(20):
            await producer.send(Message(topic="T", body=b"%02d" % number))
        await servers.promote(slave)
        assert (servers.masters, servers.slaves) == ([slave], [master])
        await eventually(lambda: len(slave.core.replicas) == 1)
        assert await bodies_of(servers.name_servers, "T") == [b"%02d" % n for n in range(20)]
        with pytest.raises(UsageError, match="is no slave"):
            await servers.promote(slave)


async def test_sends_go_on_at_the_other_group() -> None:
    async with cluster(masters=2, slaves=1) as servers, producer_of(servers) as producer:
        for _ in range(20):
            await producer.send(Message(topic="TBW102", body=b"x"))
        dead, alive = servers.masters
        await servers.kill(dead)
        for _ in range(20):
            sent = await producer.send(Message(topic="TBW102", body=b"y"))
            assert sent.queue.broker_name == alive.live.current.identity.broker_name


def test_roles_are_kept_with_the_data(tmp_path: Path) -> None:
    with cluster(slaves=1, data_directory=str(tmp_path)) as servers:
        with BlockingProducer("senders", name_servers=servers.name_servers) as producer:
            producer.send(Message(topic="T", body=b"x"))
        servers.run(servers.promote(servers.slaves[0]))
    with cluster(slaves=1, data_directory=str(tmp_path)) as servers:
        assert [role_of(broker) for broker in servers.brokers] == ["SLAVE", "SYNC_MASTER"]
        with BlockingProducer("senders", name_servers=servers.name_servers) as producer:
            assert producer.send(Message(topic="T", body=b"y")).status is SendStatus.SEND_OK
        assert stored(servers.masters[0], "T") == 2


def test_data_of_a_single_broker_gets_a_copy(tmp_path: Path) -> None:
    with (
        cluster(data_directory=str(tmp_path)) as servers,
        BlockingProducer("senders", name_servers=servers.name_servers) as producer,
    ):
        producer.send(Message(topic="T", body=b"x"))
    with (
        cluster(slaves=1, data_directory=str(tmp_path)) as servers,
        BlockingProducer("senders", name_servers=servers.name_servers) as producer,
    ):
        assert producer.send(Message(topic="T", body=b"y")).status is SendStatus.SEND_OK
        [slave] = servers.slaves
        assert stored(slave, "T") == 2


@pytest.mark.parametrize("numbers", [(0, 0), (1, -1), (1, 99), (99, 1)])
def test_a_cluster_of_impossible_size(numbers: tuple[int, int]) -> None:
    masters, slaves = numbers
    with pytest.raises(UsageError, match="a cluster has 1 to 16 masters"):
        cluster(masters=masters, slaves=slaves)


@pytest.mark.parametrize("setting", ["brokerId", "storePathRootDir", "haListenPort"])
async def test_settings_that_are_different_for_each_broker(setting: str) -> None:
    with pytest.raises(ConfigError, match=f"{setting} cannot be set for 2 brokers"):
        async with cluster(slaves=1, settings={setting: "7"}):
            pass


async def test_all_slaves_is_no_cluster() -> None:
    with pytest.raises(ConfigError, match="somebody must lead"):
        async with cluster(slaves=1, settings={"brokerRole": "SLAVE"}):
            pass


@contextlib.contextmanager
def up(directory: Path, *options: str) -> Iterator[list[str]]:
    """``cometmq up``: the lines that it prints before it serves."""
    command = [sys.executable, "-m", "cometmq.cli", "up", "--data", str(directory)]
    command += [
        "--namesrv-port",
        "0",
        "--broker-port",
        "0",
        "--log-level",
        "ERROR",
        "--no-dashboard",
    ]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines: list[str] = []
            while not lines or not lines[-1].startswith("stop"):
                lines.append(process.stdout.readline())
                assert lines[-1], "it did not start"
            yield lines
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0


def test_up_with_replicas(tmp_path: Path) -> None:
    with up(tmp_path, "--replicas", "3", "--set", "mappedFileSizeCommitLog=1048576") as lines:
        roles = [line.split(maxsplit=2)[2:] for line in lines if line.startswith("broker")]
        assert roles == [["SYNC_MASTER\n"], ["SLAVE 1\n"], ["SLAVE 2\n"]]
        with BlockingProducer("senders", name_servers=lines[0].split()[2]) as producer:
            assert producer.send(Message(topic="T", body=b"x")).status is SendStatus.SEND_OK
    assert sorted(path.name for path in tmp_path.glob("store*")) == [
        "store",
        "store-slave-1",
        "store-slave-2",
    ]


def test_up_alone_says_nothing_of_roles(tmp_path: Path) -> None:
    with up(tmp_path) as lines:
        [broker] = [line for line in lines if line.startswith("broker")]
        assert len(broker.split()) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store"]
