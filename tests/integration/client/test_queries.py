"""Looking messages up on real servers: by id, by key, by time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.eventually import eventually
from tests.integration.client.conftest import BrokerControl, CreateTopic

from cometmq.base.errors import UsageError
from cometmq.client.aio.pull.pull_consumer import PullConsumer
from cometmq.client.aio.send.producer import Producer, SendResult
from cometmq.client.errors import MessageNotFound, NoRoute
from cometmq.model.address import pack_host, split_address
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message
from cometmq.model.messages.message_id import offset_id_text
from cometmq.model.messages.received_message import ReceivedMessage

INDEXED_SECONDS_MAX = 20.0


async def found(
    ask: Callable[[], Awaitable[list[ReceivedMessage]]], count: int
) -> list[ReceivedMessage]:
    """Ask until so many are found: a broker enters keys into its index a moment after it stored a message."""

    async def so_many() -> list[ReceivedMessage] | None:
        messages = await ask()
        return messages if len(messages) == count else None

    return await eventually(so_many, f"{count} messages are found", INDEXED_SECONDS_MAX)


async def send(producer: Producer, topic: str, body: bytes, key: str) -> SendResult:
    return await producer.send(Message(topic=topic, body=body, keys=[key, "all"]))


async def test_a_message_is_found_by_each_of_its_ids(
    name_servers: str, create_topic: CreateTopic
) -> None:
    topic = create_topic()

    async with Producer("queries", name_servers=name_servers) as producer:
        sent = await send(producer, topic, b"found", "k")
        await found(lambda: producer.query(topic, "k"), 1)
        by_place = await producer.view(sent.offset_id)
        by_unique_id = await producer.view(sent.message_id, topic=topic)
        assert (by_place.body, by_place.topic) == (b"found", topic)
        assert by_place.message_id == sent.message_id
        assert by_unique_id.offset_id == sent.offset_id
        assert by_unique_id.broker_name == sent.queue.broker_name
        # An offset id is enough, but a topic beside it does no harm.
        assert (await producer.view(sent.offset_id, topic=topic)).body == b"found"


async def test_ids_of_nothing_and_no_ids_say_what_is_wrong(
    name_servers: str, create_topic: CreateTopic, broker_control: BrokerControl
) -> None:
    topic = create_topic()

    async with PullConsumer("queries", name_servers=name_servers) as consumer:
        with pytest.raises(UsageError, match="32 hex digits"):
            await consumer.view("order-17")
        with pytest.raises(UsageError, match="give the topic"):
            await consumer.view("0A000001004D00000005000003E80000")
        with pytest.raises(MessageNotFound):
            await consumer.view("0A000001004D00000005000003E80000", topic=topic)
        beyond = offset_id_text(pack_host(*split_address(broker_control.address)), 1 << 40)
        with pytest.raises(MessageNotFound):
            await consumer.view(beyond)
        with pytest.raises(NoRoute):
            await consumer.query("no-such-topic", "k")
        for wrong in ({"key": ""}, {"key": "k", "count_max": 65}, {"key": "k", "begin_ms": 2}):
            with pytest.raises(UsageError):
                await consumer.query(topic, **({"end_ms": 1} | wrong))


async def test_a_key_finds_its_messages_newest_first_within_a_time(
    name_servers: str, create_topic: CreateTopic
) -> None:
    topic = create_topic()

    async with Producer("queries", name_servers=name_servers) as producer:
        for number in range(4):
            await send(producer, topic, b"%d" % number, f"k{number}")
            # Both ends of a time range are searched for by the millisecond.
            await asyncio.sleep(0.005)
        messages = await found(lambda: producer.query(topic, "all"), 4)
        assert [message.body for message in messages] == [b"3", b"2", b"1", b"0"]
        assert [m.body for m in await producer.query(topic, "k2")] == [b"2"]
        assert await producer.query(topic, "none") == []
        second, third = messages[2].store_timestamp, messages[1].store_timestamp
        between = await producer.query(topic, "all", begin_ms=second, end_ms=third)
        assert [message.body for message in between] == [b"2", b"1"]
        assert len(await producer.query(topic, "all", count_max=2)) <= 2


async def test_offsets_of_a_queue_by_end_and_by_time(
    name_servers: str, create_topic: CreateTopic
) -> None:
    topic = create_topic(queues=1)

    async with Producer("queries", name_servers=name_servers) as producer:
        results = []
        for number in range(5):
            results.append(await send(producer, topic, b"%d" % number, "k"))
            await asyncio.sleep(0.01)
        queue = results[0].queue
        assert await producer.min_offset(queue) == 0
        assert await producer.max_offset(queue) == 5
        stored = [await producer.view(result.offset_id) for result in results]
        assert await producer.offset_by_time(queue, stored[3].store_timestamp) == 3
        assert await producer.earliest_time(queue) == stored[0].store_timestamp
        nowhere = MessageQueue(queue.broker_name, queue.queue_id + 1, topic)
        assert await producer.max_offset(nowhere) == 0
        assert await producer.earliest_time(nowhere) is None
