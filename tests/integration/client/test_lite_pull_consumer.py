"""The lite pull consumer on real servers: subscriptions and assignments, positions, seeks, pauses, commits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.eventually import eventually
from tests.integration.client.conftest import BrokerControl, CreateTopic
from tests.interop.servers import ask

from cometmq.base.errors import UsageError
from cometmq.client.aio.pull.lite_pull_consumer import LitePullConsumer
from cometmq.client.aio.send.producer import Producer
from cometmq.client.client_config import ClientConfig
from cometmq.client.errors import ClientClosed
from cometmq.client.lite_pull_config import LitePullConfig
from cometmq.client.producer_config import ProducerConfig
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.subscription import Sql
from cometmq.protocol.codes import RequestCode

Unique = Callable[[str], str]
SECONDS_MAX = 40.0
FROM_FIRST = LitePullConfig(consume_from_where="CONSUME_FROM_FIRST_OFFSET")


async def send(name_servers: str, topic: str, numbers: range, queue: int | None = None) -> None:
    async with Producer("writers", name_servers=name_servers) as producer:
        queues = await producer.fetch_publish_queues(topic)
        for number in numbers:
            await producer.send(
                Message(
                    topic=topic,
                    body=b"%d" % number,
                    tags="even" if number % 2 == 0 else "odd",
                    properties={"number": str(number)},
                ),
                queue=queues[number % len(queues) if queue is None else queue],
            )


async def read(consumer: LitePullConsumer, count: int) -> list[int]:
    """Poll until so many messages came; their numbers."""
    numbers: list[int] = []
    deadline = time.monotonic() + SECONDS_MAX
    while len(numbers) < count:
        assert time.monotonic() < deadline, f"{len(numbers)} messages instead of {count}"
        numbers += [int(message.body) for message in await consumer.poll(timeout=1.0)]
    return numbers


async def test_a_subscriber_gets_every_message_once_and_each_queue_in_order(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic(queues=4)

    await send(name_servers, topic, range(100))
    consumer = LitePullConsumer(unique("lite"), name_servers=name_servers, config=FROM_FIRST)
    consumer.subscribe(topic)
    async with consumer:
        numbers = await read(consumer, 100)
        assert sorted(numbers) == list(range(100))
        for queue in range(4):
            of_queue = [number for number in numbers if number % 4 == queue]
            assert of_queue == sorted(of_queue)
        assert len(consumer.assignment()) == 4
        assert sum(consumer.position(queue) or 0 for queue in consumer.assignment()) == 100
        assert await consumer.poll(timeout=0.1) == []


async def test_a_new_group_starts_at_the_end_and_gets_what_comes(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic(queues=2)

    await send(name_servers, topic, range(10))
    async with LitePullConsumer(unique("lite"), name_servers=name_servers) as consumer:
        consumer.subscribe(topic)
        await eventually(
            lambda: [consumer.position(queue) for queue in consumer.assignment()] == [5, 5],
            "both queues start at their end",
        )
        await send(name_servers, topic, range(10, 14))
        assert sorted(await read(consumer, 4)) == [10, 11, 12, 13]


async def test_iterating_goes_on_until_the_consumer_is_closed(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic(queues=1)

    await send(name_servers, topic, range(25))
    consumer = LitePullConsumer(unique("lite"), name_servers=name_servers, config=FROM_FIRST)
    consumer.subscribe(topic)
    await consumer.start()
    numbers = []
    async for message in consumer:
        numbers.append(int(message.body))
        if len(numbers) == 25:
            await consumer.close()
    assert numbers == list(range(25))
    with pytest.raises(ClientClosed):
        await consumer.poll()


async def test_closing_commits_what_was_handed_out_and_no_more(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic, group = create_topic(queues=1), unique("lite")

    await send(name_servers, topic, range(30))
    seen: list[int] = []
    async with LitePullConsumer(group, name_servers=name_servers, config=FROM_FIRST) as first:
        first.subscribe(topic)
        async for message in first:
            seen.append(int(message.body))
            if len(seen) == 7:
                break
    async with LitePullConsumer(group, name_servers=name_servers, config=FROM_FIRST) as second:
        second.subscribe(topic)
        seen += await read(second, 23)
    assert seen == list(range(30))


async def test_whoever_fails_gets_the_message_again(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic, group = create_topic(queues=1), unique("lite")

    async def fail_at(number: int) -> None:
        async with LitePullConsumer(
            group, name_servers=name_servers, config=FROM_FIRST
        ) as consumer:
            consumer.subscribe(topic)
            async for message in consumer:
                if int(message.body) == number:
                    raise ValueError(number)

    await send(name_servers, topic, range(5))
    for _ in range(2):
        with pytest.raises(ValueError, match="3"):
            await fail_at(3)
    async with LitePullConsumer(group, name_servers=name_servers, config=FROM_FIRST) as consumer:
        consumer.subscribe(topic)
        assert await read(consumer, 2) == [3, 4]


async def test_without_auto_commit_only_a_commit_counts(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic, group = create_topic(queues=1), unique("lite")
    config = LitePullConfig(
        consume_from_where="CONSUME_FROM_FIRST_OFFSET", auto_commit=False, pull_batch_size=4
    )

    await send(name_servers, topic, range(12))
    async with LitePullConsumer(group, name_servers=name_servers, config=config) as consumer:
        consumer.subscribe(topic)
        assert await read(consumer, 4) == [0, 1, 2, 3]
        (queue,) = consumer.assignment()
        assert await consumer.committed(queue) is None
        await consumer.commit()
        assert await consumer.committed(queue) == 4
        await read(consumer, 8)
    async with LitePullConsumer(group, name_servers=name_servers, config=config) as consumer:
        consumer.subscribe(topic)
        assert await read(consumer, 8) == list(range(4, 12))
        await consumer.commit({queue: 9})
    async with LitePullConsumer(group, name_servers=name_servers, config=config) as consumer:
        consumer.subscribe(topic)
        assert (await read(consumer, 3))[0] == 9
        with pytest.raises(UsageError):
            await consumer.commit({queue: -1})


async def test_auto_commit_comes_by_itself(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic(queues=1)
    config = LitePullConfig(
        consume_from_where="CONSUME_FROM_FIRST_OFFSET", auto_commit_interval_ms=1000
    )

    await send(name_servers, topic, range(5))
    async with LitePullConsumer(
        unique("lite"), name_servers=name_servers, config=config
    ) as consumer:
        consumer.subscribe(topic)
        await read(consumer, 5)
        (queue,) = consumer.assignment()
        # The next poll says that these five are done.
        assert await consumer.poll(timeout=0.0) == []
        deadline = time.monotonic() + SECONDS_MAX
        while await consumer.committed(queue) != 5:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)


async def test_queues_can_be_assigned_by_hand_and_sought_in(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic(queues=2)

    await send(name_servers, topic, range(20), queue=0)
    await send(name_servers, topic, range(100, 120), queue=1)
    async with LitePullConsumer(
        unique("lite"), name_servers=name_servers, config=FROM_FIRST
    ) as consumer:
        one, two = await consumer.queues(topic)
        consumer.assign([one])
        assert await read(consumer, 20) == list(range(20))
        await consumer.seek(one, 15)
        assert consumer.position(one) == 15
        assert await read(consumer, 5) == list(range(15, 20))
        await consumer.seek_to_begin(one)
        assert await read(consumer, 20) == list(range(20))
        await consumer.seek_to_begin(one)
        await consumer.seek_to_end(one)
        assert await consumer.poll(timeout=0.3) == []
        await consumer.seek(one, await consumer.offset_by_time(one, 0))
        assert await read(consumer, 20) == list(range(20))
        consumer.assign([two])
        assert consumer.assignment() == [two]
        assert await read(consumer, 20) == list(range(100, 120))
        for wrong in (21, -1):
            with pytest.raises(UsageError, match="cannot seek"):
                await consumer.seek(two, wrong)
        with pytest.raises(UsageError, match="not assigned"):
            await consumer.seek(one, 0)
        with pytest.raises(UsageError, match="either subscribes or assigns"):
            consumer.subscribe(topic)


async def test_a_paused_queue_is_silent_until_it_is_resumed(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic(queues=2)

    async with LitePullConsumer(
        unique("lite"), name_servers=name_servers, config=FROM_FIRST
    ) as consumer:
        one, two = await consumer.queues(topic)
        consumer.assign([one, two])
        consumer.pause([one])
        await send(name_servers, topic, range(10), queue=0)
        await send(name_servers, topic, range(100, 110), queue=1)
        assert await read(consumer, 10) == list(range(100, 110))
        assert await consumer.poll(timeout=0.3) == []
        consumer.resume([one])
        assert await read(consumer, 10) == list(range(10))


async def test_only_wanted_messages_come_and_the_wish_can_change(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic(queues=1)

    await send(name_servers, topic, range(10))
    async with LitePullConsumer(
        unique("lite"), name_servers=name_servers, config=FROM_FIRST
    ) as consumer:
        consumer.subscribe(topic, "even")
        assert await read(consumer, 5) == [0, 2, 4, 6, 8]
        consumer.subscribe(topic, Sql("number > 12"))
        await send(name_servers, topic, range(10, 16))
        assert await read(consumer, 3) == [13, 14, 15]
        consumer.unsubscribe(topic)
        assert consumer.assignment() == []


async def test_consumers_of_a_group_share_queues_and_lose_nothing(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic, group = create_topic(queues=4), unique("lite")

    first = LitePullConsumer(group, name_servers=name_servers, config=FROM_FIRST)
    second = LitePullConsumer(group, name_servers=name_servers, config=FROM_FIRST)
    told: list[int] = []
    first.on_assignment_changed(lambda name, queues, mine: told.append(len(mine)))
    first.subscribe(topic)
    second.subscribe(topic)
    async with first:
        await eventually(lambda: len(first.assignment()) == 4, "the first holds all")
        async with second:
            await eventually(
                lambda: [len(each.assignment()) for each in (first, second)] == [2, 2],
                "both hold two",
            )
            await send(name_servers, topic, range(40))
            ours, theirs = await asyncio.gather(read(first, 20), read(second, 20))
            assert sorted(ours + theirs) == list(range(40))
        await eventually(lambda: len(first.assignment()) == 4, "the first holds all again")
        await send(name_servers, topic, range(40, 60))
        assert sorted(await read(first, 20)) == list(range(40, 60))
    assert told[0] == 4
    assert told[-1] == 4
    assert 2 in told


async def test_every_broadcasting_consumer_gets_everything(
    name_servers: str, create_topic: CreateTopic, unique: Unique, tmp_path: Path
) -> None:
    topic, group = create_topic(queues=2), unique("broadcast")

    def make(instance: str) -> LitePullConsumer:
        consumer = LitePullConsumer(
            group,
            name_servers=name_servers,
            config=LitePullConfig(
                message_model="BROADCASTING",
                consume_from_where="CONSUME_FROM_FIRST_OFFSET",
                local_offset_directory=str(tmp_path),
                client=ClientConfig(instance_name=instance),
            ),
        )
        consumer.subscribe(topic)
        return consumer

    await send(name_servers, topic, range(10))
    async with make("one") as one, make("two") as two:
        for consumer in (one, two):
            assert sorted(await read(consumer, 10)) == list(range(10))
    await send(name_servers, topic, range(10, 14))
    async with make("one") as one:
        assert sorted(await read(one, 4)) == [10, 11, 12, 13]


async def test_a_topic_that_grows_is_told(
    name_servers: str,
    create_topic: CreateTopic,
    unique: Unique,
    broker_control: BrokerControl,
) -> None:
    topic = create_topic(queues=1)
    seen: list[tuple[str, int]] = []

    config = LitePullConfig(
        topic_check_interval_ms=50, client=ClientConfig(poll_name_server_millis=100)
    )
    async with LitePullConsumer(
        unique("lite"), name_servers=name_servers, config=config
    ) as consumer:

        async def listen(name: str, queues: list[MessageQueue], mine: list[MessageQueue]) -> None:
            seen.append((name, len(queues)))

        consumer.on_queues_changed(topic, listen)
        await asyncio.sleep(0.3)
        assert seen == []
        grow(broker_control, topic, 3)
        await eventually(lambda: seen, "the listener hears of it")
        assert seen == [(topic, 3)]


def grow(broker_control: BrokerControl, topic: str, queues: int) -> None:
    fields = {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": str(queues),
        "writeQueueNums": str(queues),
        "perm": "6",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
    }
    code, _ = ask(int(broker_control.address.rpartition(":")[2]), 17, fields)
    assert code == 0


async def test_a_reset_by_an_operator_is_followed(
    name_servers: str, create_topic: CreateTopic, unique: Unique, broker_control: BrokerControl
) -> None:
    topic, group = create_topic(queues=1), unique("lite")
    reset = {"topic": topic, "group": group, "timestamp": "0", "isForce": "true"}

    await send(name_servers, topic, range(10))
    async with LitePullConsumer(group, name_servers=name_servers, config=FROM_FIRST) as consumer:
        consumer.subscribe(topic)
        assert await read(consumer, 10) == list(range(10))
        await consumer.commit()
        port = int(broker_control.address.rpartition(":")[2])
        code, _ = await asyncio.to_thread(
            ask, port, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, reset
        )
        assert code == 0
        assert await read(consumer, 10) == list(range(10))


async def test_a_broker_that_restarts_is_read_on(
    name_servers: str, create_topic: CreateTopic, unique: Unique, broker_control: BrokerControl
) -> None:
    topic = create_topic(queues=2)

    await send(name_servers, topic, range(10))
    async with LitePullConsumer(
        unique("lite"), name_servers=name_servers, config=FROM_FIRST
    ) as consumer:
        consumer.subscribe(topic)
        assert sorted(await read(consumer, 10)) == list(range(10))
        await asyncio.to_thread(broker_control.restart)
        await send(name_servers, topic, range(10, 20))
        assert sorted(await read(consumer, 10)) == list(range(10, 20))


async def test_namespaces_are_out_of_sight(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    space = unique("ns").replace("-", "")
    name = unique("topic")
    client = ClientConfig(namespace=space)

    config = ProducerConfig(client=client)
    async with Producer("writers", name_servers=name_servers, config=config) as producer:
        for number in range(4):
            await producer.send(Message(topic=name, body=b"%d" % number))
    lite = LitePullConfig(consume_from_where="CONSUME_FROM_FIRST_OFFSET", client=client)
    async with LitePullConsumer(unique("lite"), name_servers=name_servers, config=lite) as consumer:
        consumer.subscribe(name)
        messages: list[ReceivedMessage] = []
        while len(messages) < 4:
            messages += await consumer.poll()
        assert {message.topic for message in messages} == {name}
        assert {queue.topic for queue in consumer.assignment()} == {name}
        queue = consumer.assignment()[0]
        await consumer.seek(queue, 0)
        await consumer.commit()
        assert await consumer.committed(queue) == consumer.position(queue)
