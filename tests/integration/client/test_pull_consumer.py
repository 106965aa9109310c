"""The classic pull consumer on real servers: pulls, filters, positions, sharing, schedules."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.eventually import eventually
from tests.integration.client.conftest import CreateTopic

from cometmq.base.errors import UsageError
from cometmq.client.aio.pull.pull_consumer import PullConsumer, PullStatus
from cometmq.client.aio.pull.pull_schedule import PullSchedule, Turn
from cometmq.client.aio.send.producer import Producer
from cometmq.client.client_config import ClientConfig
from cometmq.client.errors import ClientClosed
from cometmq.client.pull_config import PullConsumerConfig
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message
from cometmq.model.subscription import Sql
from cometmq.protocol.reply_errors import BrokerReplyError

Unique = Callable[[str], str]
SECONDS_MAX = 30.0


async def fill(name_servers: str, topic: str, count: int, tags: str = "a") -> MessageQueue:
    """Messages 0..count-1 in queue 0 of a topic."""
    async with Producer("writers", name_servers=name_servers) as producer:
        queue = (await producer.fetch_publish_queues(topic))[0]
        for number in range(count):
            await producer.send(
                Message(
                    topic=topic,
                    body=b"%d" % number,
                    tags=tags if number % 2 == 0 else "other",
                    properties={"number": str(number)},
                ),
                queue=queue,
            )
        return queue


async def test_messages_from_an_offset_on(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic()

    queue = await fill(name_servers, topic, 5)
    async with PullConsumer(unique("pull"), name_servers=name_servers) as consumer:
        assert queue in await consumer.queues(topic)
        result = await consumer.pull(queue, 1, count_max=3)
        assert result.status is PullStatus.FOUND
        assert [message.body for message in result.messages] == [b"1", b"2", b"3"]
        assert (result.next_offset, result.min_offset, result.max_offset) == (4, 0, 5)
        first = result.messages[0]
        assert (first.topic, first.broker_name) == (topic, queue.broker_name)
        assert (first.queue_id, first.queue_offset) == (queue.queue_id, 1)
        assert first.properties["MAX_OFFSET"] == "5"


async def test_the_end_is_no_error_and_beyond_it_is_told_where_to_go_on(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic()

    queue = await fill(name_servers, topic, 2)
    async with PullConsumer(unique("pull"), name_servers=name_servers) as consumer:
        at_end = await consumer.pull(queue, 2)
        assert (at_end.status, at_end.messages) == (PullStatus.NO_NEW_MSG, [])
        beyond = await consumer.pull(queue, 99)
        assert (beyond.status, beyond.next_offset) == (PullStatus.OFFSET_ILLEGAL, 2)


async def test_only_wanted_messages_come(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic()

    queue = await fill(name_servers, topic, 6)
    async with PullConsumer(unique("pull"), name_servers=name_servers) as consumer:
        by_tag = await consumer.pull(queue, 0, "a || b")
        assert [message.body for message in by_tag.messages] == [b"0", b"2", b"4"]
        by_condition = await consumer.pull(queue, 0, Sql("number > 3"))
        assert [message.body for message in by_condition.messages] == [b"4", b"5"]
        none = await consumer.pull(queue, 0, "absent")
        assert none.status is PullStatus.NO_MATCHED_MSG
        assert none.next_offset == 6
        with pytest.raises(UsageError):
            await consumer.pull(queue, 0, Sql("number >"))


async def test_a_waiting_pull_is_answered_by_the_first_message(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic()

    queue = await fill(name_servers, topic, 1)
    async with PullConsumer(unique("pull"), name_servers=name_servers) as consumer:
        waiting = asyncio.create_task(consumer.pull(queue, 1, wait_seconds=15))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        started = time.monotonic()
        async with Producer("writers", name_servers=name_servers) as producer:
            await producer.send(Message(topic=topic, body=b"new"), queue=queue)
        result = await waiting
        assert [message.body for message in result.messages] == [b"new"]
        assert time.monotonic() - started < 10


async def test_wrong_arguments_are_found_before_anything_is_sent(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic()

    consumer = PullConsumer(unique("pull"), name_servers=name_servers)
    with pytest.raises(ClientClosed, match="async with"):
        await consumer.queues(topic)
    async with consumer:
        queue = (await consumer.queues(topic))[0]
        for attempt in (
            lambda: consumer.pull(queue, -1),
            lambda: consumer.pull(queue, 0, count_max=0),
            lambda: consumer.pull(queue, 0, wait_seconds=21),
            lambda: consumer.pull(queue, 0, "||"),
            lambda: consumer.commit(queue, -1),
        ):
            with pytest.raises(UsageError):
                await attempt()
        with pytest.raises(BrokerReplyError):
            await consumer.pull(MessageQueue(queue.broker_name, 99, topic), 0)
    with pytest.raises(ClientClosed):
        await consumer.queues(topic)


async def test_a_group_s_position_outlives_its_consumer(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic, group = create_topic(), unique("pull")

    queue = await fill(name_servers, topic, 3)
    async with PullConsumer(group, name_servers=name_servers) as consumer:
        await consumer.commit(queue, 2)
        assert await consumer.committed(queue) == 2
    async with PullConsumer(group, name_servers=name_servers) as consumer:
        assert await consumer.committed(queue) == 2
    async with PullConsumer(unique("other"), name_servers=name_servers) as consumer:
        assert await consumer.committed(queue) is None


async def test_a_broadcasting_consumer_keeps_its_position_in_a_file(
    name_servers: str, create_topic: CreateTopic, unique: Unique, tmp_path: Path
) -> None:
    topic, group = create_topic(), unique("broadcast")
    config = PullConsumerConfig(
        message_model="BROADCASTING",
        local_offset_directory=str(tmp_path),
        client=ClientConfig(instance_name=unique("instance")),
    )

    queue = await fill(name_servers, topic, 1)
    async with PullConsumer(group, name_servers=name_servers, config=config) as consumer:
        assert await consumer.committed(queue) is None
        await consumer.commit(queue, 1)
    async with PullConsumer(group, name_servers=name_servers, config=config) as consumer:
        assert await consumer.committed(queue) == 1
        assert await consumer.queues_in_balance(topic) == await consumer.queues(topic)
    assert list(tmp_path.glob(f"*/{group}/offsets.json"))


async def test_two_consumers_of_a_group_share_the_queues(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic, group = create_topic(queues=4), unique("share")
    shares: dict[int, list[MessageQueue]] = {}

    def listener(number: int) -> Callable[[str, list[MessageQueue], list[MessageQueue]], None]:
        def changed(name: str, queues: list[MessageQueue], mine: list[MessageQueue]) -> None:
            assert name == topic
            assert len(queues) == 4
            shares[number] = mine

        return changed

    first = PullConsumer(group, name_servers=name_servers)
    second = PullConsumer(group, name_servers=name_servers)
    first.on_queues_changed(topic, listener(1))
    second.on_queues_changed(topic, listener(2))
    async with first:
        await eventually(lambda: len(shares.get(1, [])) == 4, "the only consumer holds all")
        async with second:
            await eventually(
                lambda: [len(shares.get(number, [])) for number in (1, 2)] == [2, 2],
                "both hold two",
            )
            assert not set(shares[1]) & set(shares[2])
            assert await second.queues_in_balance(topic) == shares[2]
        await eventually(lambda: len(shares[1]) == 4, "the one left holds all again")
    with pytest.raises(UsageError, match="listener already"):
        first.on_queues_changed(topic, listener(1))


async def test_a_schedule_reads_every_queue_it_is_given(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic, group = create_topic(queues=3), unique("schedule")
    bodies: list[bytes] = []
    calls: dict[MessageQueue, int] = {}

    async def read(queue: MessageQueue, turn: Turn) -> None:
        calls[queue] = calls.get(queue, 0) + 1
        if calls[queue] == 1:
            turn.next_seconds = 0.0
            raise ValueError("the first call of each queue fails")
        offset = await turn.consumer.committed(queue) or 0
        result = await turn.consumer.pull(queue, offset)
        bodies.extend(message.body for message in result.messages)
        await turn.consumer.commit(queue, result.next_offset)
        turn.next_seconds = 0.01

    async with PullConsumer(group, name_servers=name_servers) as consumer:
        schedule = PullSchedule(consumer)
        schedule.add(topic, read)
        with pytest.raises(UsageError, match="callback already"):
            schedule.add(topic, read)
        async with schedule:
            await eventually(lambda: len(schedule.queues) == 3, "all queues are called for")
            async with Producer("writers", name_servers=name_servers) as producer:
                for number in range(9):
                    await producer.send(Message(topic=topic, body=b"%d" % number))
            await eventually(lambda: len(bodies) >= 9, "all messages are read")
        assert schedule.queues == []
        seen = dict(calls)
        await asyncio.sleep(0.1)
        assert calls == seen
    assert sorted(bodies) == [b"%d" % number for number in range(9)]
