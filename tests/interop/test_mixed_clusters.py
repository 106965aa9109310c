"""One cluster of everybody: name servers and brokers of ours, of RocketMQ 4.9.7 and of 5.5.0.

Every broker registers with every name server, so each make of broker meets each make of name server; and whatever name
server a client asks, it works across the brokers of all three.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.eventually import wait_until

from cometmq.client.aio.pull.pull_consumer import PullConsumer
from cometmq.client.aio.send.producer import Producer
from cometmq.client.errors import NoRoute
from cometmq.model.messages.message import Message, ReceivedMessage
from cometmq.remoting.client import RemotingClient

from . import patience
from .admin_calls import create_topic
from .java import MissingComponent, fetch_jars
from .servers import HERE, ServerCommands, ask
from .single_java import SingleJava
from .systems import OURS, ROCKETMQ_4, THEIRS, Broker, NameServer, commands_of

EVERYBODY = (OURS, *THEIRS)
JAVA_CLIENTS = ("4.9.8", "5.5.0")
QUEUES = 2
MESSAGES = 60
JAVA_SECONDS_MAX = 240
WAIT_SECONDS_MAX = 60.0
EXIT_CODE_MISSING = 3
SILENCE_SECONDS = 32.0
REGISTER_BROKER = 103
GET_BROKER_CLUSTER_INFO = 106
SYSTEM_ERROR = 1

# The first test waits for five Java servers.
pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class MixedCluster:
    makes: dict[str, ServerCommands]
    name_servers: dict[str, NameServer]
    brokers: dict[str, Broker]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedCluster]:
    directory = tmp_path_factory.mktemp("mixed")
    try:
        makes = {make: commands_of(make, directory / f"home-{make}") for make in EVERYBODY}
    except MissingComponent as error:
        pytest.exit(f"interop tests cannot run: {error}", returncode=EXIT_CODE_MISSING)
    name_servers = {
        make: NameServer(commands, directory / f"namesrv-{make}")
        for make, commands in makes.items()
    }
    with contextlib.ExitStack() as stack, ThreadPoolExecutor() as pool:
        for name_server in name_servers.values():
            stack.callback(name_server.kill)
        list(pool.map(NameServer.start, name_servers.values()))
        brokers = {
            make: Broker(
                list(name_servers.values()),
                directory / f"broker-{make}",
                f"broker-{make.replace('.', '-')}",
                mappedFileSizeCommitLog=16 * 1024 * 1024,
            )
            for make in makes
        }
        for broker in brokers.values():
            stack.callback(broker.kill)
        list(pool.map(Broker.start, brokers.values(), makes.values()))
        yield MixedCluster(makes, name_servers, brokers)


@pytest.mark.parametrize("client", JAVA_CLIENTS)
def test_clients_work_across_all_brokers(
    cluster: MixedCluster, client: str, tmp_path: Path
) -> None:
    """Ours sends, Java's consumes that and sends, ours reads everything; by each name server in turn."""
    program = SingleJava("AcrossBrokers", fetch_jars(HERE / "pom.xml", client))
    topics = {make: f"mixed-{make}-{client}".replace(".", "-") for make in cluster.name_servers}
    arguments = [str(MESSAGES)]
    for make, topic in topics.items():
        address = cluster.name_servers[make].address
        asyncio.run(_send(cluster, address, topic))
        arguments += [address, topic, str(len(cluster.brokers))]
    output = program.run(tmp_path, arguments, seconds_max=JAVA_SECONDS_MAX)
    assert [line for line in output.splitlines() if line.startswith("ok ")] == [
        f"ok {topic}" for topic in topics.values()
    ]
    for make, topic in topics.items():
        messages = asyncio.run(_read(cluster.name_servers[make].address, topic))
        words = [f"{sender}-{number}" for sender in ("java", "ours") for number in range(MESSAGES)]
        assert sorted(message.body.decode() for message in messages) == sorted(words)
        assert {message.broker_name for message in messages} == {
            broker.name for broker in cluster.brokers.values()
        }


def test_brokers_of_every_make_keep_their_place_at_our_name_server(cluster: MixedCluster) -> None:
    """RocketMQ's register every 30 s and are silent between: they are asked, and what they answer is enough."""
    port = cluster.name_servers[OURS].port
    deadline = time.monotonic() + SILENCE_SECONDS
    while time.monotonic() < deadline:
        for broker in cluster.brokers.values():
            claim = {
                "brokerName": broker.name,
                "brokerAddr": "127.0.0.2:10911",
                "clusterName": "DefaultCluster",
                "haServerAddr": "127.0.0.2:10912",
                "brokerId": "0",
            }
            assert ask(port, REGISTER_BROKER, claim)[0] == SYSTEM_ERROR, broker.name
        time.sleep(0.5)
    assert b"127.0.0.2" not in ask(port, GET_BROKER_CLUSTER_INFO, {})[1]


@pytest.mark.parametrize(
    ("make", "ending"), [(OURS, "stopped"), (OURS, "killed"), (ROCKETMQ_4, "killed")]
)
def test_a_broker_that_ends_leaves_every_name_server(
    cluster: MixedCluster, make: str, ending: str
) -> None:
    broker = cluster.brokers[make]
    if ending == "stopped":
        broker.stop()
    else:
        broker.kill()
    wait_until(
        broker.is_forgotten, f"all name servers forget the {ending} broker", WAIT_SECONDS_MAX
    )
    broker.start(cluster.makes[make])


async def _send(cluster: MixedCluster, name_server: str, topic: str) -> None:
    remoting = RemotingClient()
    for broker in cluster.brokers.values():
        await create_topic(remoting, broker.address, topic, QUEUES)
    await remoting.close()
    async with Producer("mixed-writers", name_servers=name_server) as producer:
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while True:
            # A client believes a route for a while, so each look needs another one.
            async with PullConsumer("mixed-readers", name_servers=name_server) as consumer:
                with contextlib.suppress(NoRoute):
                    queues = await consumer.queues(topic)
                    if len(queues) == QUEUES * len(cluster.brokers):
                        break
            assert time.monotonic() < deadline, f"{name_server} does not know all of {topic}"
            await asyncio.sleep(0.05)
        for number in range(MESSAGES):
            message = Message(topic=topic, body=f"ours-{number}".encode(), keys=[f"o-{number}"])
            await patience.send(producer, message)


async def _read(name_server: str, topic: str) -> list[ReceivedMessage]:
    messages: list[ReceivedMessage] = []
    async with PullConsumer("mixed-readers", name_servers=name_server) as consumer:
        for queue in await consumer.queues(topic):
            offset, end = 0, await consumer.max_offset(queue)
            while offset < end:
                result = await consumer.pull(queue, offset)
                assert result.next_offset > offset, f"{queue} at {offset}: {result.status}"
                messages += result.messages
                offset = result.next_offset
    return messages
