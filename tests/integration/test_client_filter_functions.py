"""Our consumers subscribe by a filter function of the broker: all three kinds, both faces, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from cometmq.client import (
    FilterFunction,
    LitePullConfig,
    Message,
    PushConsumerConfig,
    ReceivedMessage,
)
from cometmq.client.aio import LitePullConsumer, Producer, PullConsumer, PushConsumer
from cometmq.client.sync import LitePullConsumer as BlockingLitePullConsumer
from cometmq.client.sync import Producer as BlockingProducer
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol.reply_errors import BrokerReplyError
from cometmq.testing import Cluster, cluster

TOPIC = "Numbers"
EVEN = FilterFunction("even")
WANTED = [b"%d" % number for number in range(0, 40, 2)]


@pytest.fixture
def functions(tmp_path: Path) -> Path:
    directory = tmp_path / "functions"
    directory.mkdir()
    (directory / "even.py").write_text("def wants(message): return int(message.body) % 2 == 0\n")
    return directory


@pytest.fixture
def servers(functions: Path) -> Iterator[Cluster]:
    with cluster(settings={"filterFunctionDirectory": str(functions)}) as servers:
        with BlockingProducer("numbers", name_servers=servers.name_servers) as producer:
            for number in range(40):
                producer.send(Message(topic=TOPIC, body=b"%d" % number))
        yield servers


async def test_a_push_consumer_gets_what_the_function_wants(servers: Cluster) -> None:
    seen: list[bytes] = []
    enough = asyncio.Event()

    async def listener(message: ReceivedMessage) -> None:
        seen.append(message.body)
        if len(seen) == len(WANTED) + 1:
            enough.set()

    config = PushConsumerConfig(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    consumer = PushConsumer(
        "pushed", listener=listener, name_servers=servers.name_servers, config=config
    )
    consumer.subscribe(TOPIC, EVEN)
    async with (
        consumer,
        Producer("later", name_servers=servers.name_servers) as producer,
    ):
        # Also those that come while its pulls wait at the broker.
        for number in (101, 100):
            await producer.send(Message(topic=TOPIC, body=b"%d" % number))
        await asyncio.wait_for(enough.wait(), 30)
    assert sorted(seen) == sorted([*WANTED, b"100"])


async def test_pull_consumers_get_what_the_function_wants(servers: Cluster) -> None:
    async def lite() -> list[bytes]:
        config = LitePullConfig(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
        found: list[bytes] = []
        async with LitePullConsumer(
            "lite", name_servers=servers.name_servers, config=config
        ) as consumer:
            consumer.subscribe(TOPIC, EVEN)
            async with asyncio.timeout(30):
                while len(found) < len(WANTED):
                    found += [message.body for message in await consumer.poll(1)]
        return found

    async def classic() -> list[bytes]:
        found: list[bytes] = []
        async with PullConsumer("classic", name_servers=servers.name_servers) as consumer:
            for queue in await consumer.queues(TOPIC):
                found += await _drain(consumer, queue)
        return found

    assert sorted(await lite()) == sorted(WANTED)
    assert sorted(await classic()) == sorted(WANTED)


async def _drain(consumer: PullConsumer, queue: MessageQueue) -> list[bytes]:
    found: list[bytes] = []
    offset, end = 0, await consumer.max_offset(queue)
    async with asyncio.timeout(30):
        while offset < end:
            result = await consumer.pull(queue, offset, EVEN, count_max=5)
            assert result.next_offset > offset
            found += [message.body for message in result.messages]
            offset = result.next_offset
    return found


def test_the_blocking_face_has_it_too(servers: Cluster) -> None:
    config = LitePullConfig(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    found: list[bytes] = []
    with BlockingLitePullConsumer(
        "blocking", name_servers=servers.name_servers, config=config
    ) as consumer:
        consumer.subscribe(TOPIC, EVEN)
        for _ in range(30):
            found += [message.body for message in consumer.poll(1)]
            if len(found) >= len(WANTED):
                break
    assert sorted(found) == sorted(WANTED)


def test_a_function_that_is_not_there_is_refused_at_the_start(servers: Cluster) -> None:
    _refused(servers, FilterFunction("odd"), "there is no filter function odd")


def test_a_broker_without_functions_refuses_at_the_start() -> None:
    with cluster() as servers:
        with BlockingProducer("numbers", name_servers=servers.name_servers) as producer:
            producer.send(Message(topic=TOPIC, body=b"1"))
        _refused(servers, EVEN, "does not support consumer to filter message by PYTHON")


def _refused(servers: Cluster, function: FilterFunction, text: str) -> None:
    async def listener(message: ReceivedMessage) -> None:
        raise AssertionError("nothing is delivered")

    async def main() -> None:
        consumer = PushConsumer("refused", listener=listener, name_servers=servers.name_servers)
        consumer.subscribe(TOPIC, function)
        with pytest.raises(BrokerReplyError, match=text):
            await consumer.start()

    asyncio.run(main())
