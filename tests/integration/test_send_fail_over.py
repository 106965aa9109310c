"""Sends go to another broker when the master of one is lost, and the lost one is not asked again."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.eventually import eventually
from tests.integration.replica_group import kill
from tests.integration.servers import broker_config, running_name_server

from cometmq.broker.server import Broker
from cometmq.client.aio.send.producer import Producer
from cometmq.client.errors import NoRoute
from cometmq.client.producer_config import ProducerConfig
from cometmq.model.messages.message import Message
from cometmq.model.topic import TopicConfig
from cometmq.protocol.reply_errors import ServiceNotAvailable

TOPIC = "T"


async def broker(stack: AsyncExitStack, directory: Path, name_server: str, name: str) -> Broker:
    made = Broker(
        broker_config(directory / name, namesrvAddr=name_server, brokerName=name, brokerId="7")
    )
    await made.start()
    stack.push_async_callback(made.stop)
    topic = TopicConfig(topic_name=TOPIC, read_queue_nums=2, write_queue_nums=2)
    made.core.topics.put(topic)
    await made.role._registration.announce([topic])
    return made


def stored(one: Broker) -> int:
    return sum(one.core.store.max_offset(TOPIC, queue_id) for queue_id in range(2))


async def is_sent(producer: Producer) -> bool:
    try:
        await producer.send(Message(topic=TOPIC, body=b"x"))
    except NoRoute:
        return False
    return True


@pytest.mark.parametrize("latency_fault", [False, True])
async def test_another_broker_takes_what_the_lost_one_cannot(
    tmp_path: Path, latency_fault: bool
) -> None:
    async with AsyncExitStack() as stack:
        name_server = await stack.enter_async_context(running_name_server())
        lost = await broker(stack, tmp_path, name_server, "a")
        other = await broker(stack, tmp_path, name_server, "b")
        producer = await stack.enter_async_context(
            Producer(
                "sender",
                name_servers=name_server,
                config=ProducerConfig(latency_fault=latency_fault),
            )
        )
        for _ in range(20):
            await producer.send(Message(topic=TOPIC, body=b"x"))
        assert stored(lost) > 0
        assert stored(other) > 0
        assert stored(lost) + stored(other) == 20

        await kill(lost)
        before = stored(other)
        for _ in range(20):
            await producer.send(Message(topic=TOPIC, body=b"x"))
        assert stored(other) == before + 20


async def test_a_broker_that_has_become_a_slave_is_left_at_its_first_refusal(
    tmp_path: Path,
) -> None:
    async with AsyncExitStack() as stack:
        name_server = await stack.enter_async_context(running_name_server())
        demoted = await broker(stack, tmp_path, name_server, "a")
        other = await broker(stack, tmp_path, name_server, "b")
        producer = await stack.enter_async_context(Producer("sender", name_servers=name_server))
        for _ in range(4):
            await producer.send(Message(topic=TOPIC, body=b"x"))
        before = stored(demoted), stored(other)
        demoted.live.update({"brokerRole": "SLAVE"})
        for _ in range(20):
            await producer.send(Message(topic=TOPIC, body=b"x"))
        assert (stored(demoted), stored(other)) == (before[0], before[1] + 20)


async def test_without_another_broker_a_send_says_so(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        name_server = await stack.enter_async_context(running_name_server())
        only = await broker(stack, tmp_path, name_server, "a")
        producer = await stack.enter_async_context(Producer("sender", name_servers=name_server))
        await producer.send(Message(topic=TOPIC, body=b"x"))
        only.live.update({"brokerRole": "SLAVE"})
        # At first the broker refuses, then the name server knows of no master. Either may be the last word.
        with pytest.raises((ServiceNotAvailable, NoRoute), match=r"is a slave|on any master"):
            await producer.send(Message(topic=TOPIC, body=b"x"), timeout=0.5)
        only.live.update({"brokerRole": "ASYNC_MASTER"})
        await eventually(lambda: is_sent(producer), "the name server tells of the master again")
        assert stored(only) == 2
