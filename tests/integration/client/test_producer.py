"""The producer against a real broker of either make."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any

import pytest

from cometmq.base.errors import RemotingError, TooManyInFlight, UsageError
from cometmq.client.aio.pull.pull_consumer import PullConsumer
from cometmq.client.aio.send.producer import Producer, SendStatus
from cometmq.client.client_config import ClientConfig
from cometmq.client.core.send.queue_selector import by_hash
from cometmq.client.errors import ClientClosed, GroupInUse, NoRoute
from cometmq.client.producer_config import ProducerConfig
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message, ReceivedMessage
from cometmq.protocol.reply_errors import BrokerReplyError

CreateTopic = Callable[..., str]
Unique = Callable[[str], str]
SECONDS_MAX = 30.0


async def _read(
    name_servers: str, group: str, topic: str, count: int
) -> dict[MessageQueue, list[ReceivedMessage]]:
    """All messages of a topic by queue, as soon as there are ``count``."""
    found: dict[MessageQueue, list[ReceivedMessage]] = {}
    deadline = time.monotonic() + SECONDS_MAX
    async with PullConsumer(group, name_servers=name_servers) as consumer:
        queues = await consumer.queues(topic)
        while sum(map(len, found.values())) < count:
            assert time.monotonic() < deadline, f"{found} after {SECONDS_MAX} s"
            for queue in queues:
                have = found.setdefault(queue, [])
                offset = have[-1].queue_offset + 1 if have else 0
                have += (await consumer.pull(queue, offset)).messages
            await asyncio.sleep(0.02)
    return found


def _all(found: dict[MessageQueue, list[ReceivedMessage]]) -> list[ReceivedMessage]:
    return [message for messages in found.values() for message in messages]


async def test_a_message_arrives_with_all_it_was_given(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("all-fields", queues=2)

    async with Producer(unique("pg"), name_servers=name_servers) as producer:
        sent = await producer.send(
            Message(
                topic=topic,
                body=b"paid \x00\xff",
                tags="paid",
                keys=["o-17", "c-3"],
                properties={"shop": "Bücher", "π": "3.14"},
                flag=7,
            )
        )
    assert sent.status is SendStatus.SEND_OK
    [got] = _all(await _read(name_servers, unique("cg"), topic, 1))
    assert (got.body, got.tags, got.keys, got.flag) == (
        b"paid \x00\xff",
        "paid",
        ["o-17", "c-3"],
        7,
    )
    assert got.properties["shop"] == "Bücher"
    assert got.properties["π"] == "3.14"
    assert (got.message_id, got.offset_id) == (sent.message_id, sent.offset_id)
    assert (got.queue_id, got.queue_offset) == (sent.queue.queue_id, sent.queue_offset)
    assert abs(got.born_timestamp - time.time() * 1000) < 60_000


async def test_the_first_message_creates_its_topic(name_servers: str, unique: Unique) -> None:
    topic = unique("created")

    async with Producer(unique("pg"), name_servers=name_servers) as producer:
        results = [await producer.send(Message(topic=topic, body=b"x")) for _ in range(12)]
        # As many queues as the producer wants for new topics, whatever the broker would make.
        assert {result.queue.queue_id for result in results} == {0, 1, 2, 3}
    found = await _read(name_servers, unique("cg"), topic, 12)
    assert len(found) == 4


@pytest.mark.parametrize("compression", ["ZLIB", "LZ4", "ZSTD"])
async def test_large_bodies_travel_compressed(
    name_servers: str, create_topic: CreateTopic, unique: Unique, compression: str
) -> None:
    topic = create_topic("packed", queues=1)
    bodies = [b"x" * 5000, b"y" * 600_000, b"z" * 4095]

    config = ProducerConfig(compression=compression)
    async with Producer(unique("pg"), name_servers=name_servers, config=config) as producer:
        for body in bodies:
            await producer.send(Message(topic=topic, body=body))
    messages = _all(await _read(name_servers, unique("cg"), topic, 3))
    assert [message.body for message in messages] == bodies
    assert [message.size_bytes < 5000 for message in messages] == [True, True, True]
    assert [message.sys_flag & 0x701 != 0 for message in messages] == [True, True, False]


async def test_a_sharding_key_keeps_its_queue(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("sharded", queues=4)

    async with Producer(unique("pg"), name_servers=name_servers) as producer:
        for number in range(20):
            key = f"customer-{number % 5}"
            message = Message(topic=topic, body=str(number).encode())
            by_key = await producer.send(message, sharding_key=key)
            by_selector = await producer.send(message, selector=by_hash(key))
            assert by_key.queue == by_selector.queue
        queue = (await producer.fetch_publish_queues(topic))[2]
        assert (await producer.send(message, queue=queue)).queue == queue


async def test_a_batch_lies_together_and_in_order(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("batch", queues=3)
    messages = [
        Message(topic=topic, body=f"{number}".encode(), tags="even" if number % 2 == 0 else "odd")
        for number in range(50)
    ]

    async with Producer(unique("pg"), name_servers=name_servers) as producer:
        sent = await producer.send_batch(messages)
    assert sent.status is SendStatus.SEND_OK
    found = await _read(name_servers, unique("cg"), topic, 50)
    got = found[sent.queue]
    assert [message.body for message in got] == [message.body for message in messages]
    assert [message.queue_offset for message in got] == list(
        range(sent.queue_offset, sent.queue_offset + 50)
    )
    assert [message.message_id for message in got] == sent.message_id.split(",")
    assert [message.tags for message in got] == [message.tags for message in messages]


async def test_any_number_of_messages_is_cut_into_batches(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("many", queues=1)
    messages = [Message(topic=topic, body=bytes([number]) * 90_000) for number in range(60)]

    async with Producer(unique("pg"), name_servers=name_servers) as producer:
        results = await producer.send_all(messages, timeout=30)
    # 4 MiB hold 46 of them.
    assert len(results) == 2
    [got] = (await _read(name_servers, unique("cg"), topic, 60)).values()
    assert [message.body[:1] for message in got] == [message.body[:1] for message in messages]


async def test_oneway_and_background_sends_arrive(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("quick", queues=2)

    async with Producer(unique("pg"), name_servers=name_servers) as producer:
        futures = [
            producer.send_soon(Message(topic=topic, body=b"soon-%d" % number))
            for number in range(100)
        ]
        for number in range(100):
            await producer.send_oneway(Message(topic=topic, body=b"oneway-%d" % number))
        results = await asyncio.gather(*futures)
    assert {result.status for result in results} == {SendStatus.SEND_OK}
    got = {message.body for message in _all(await _read(name_servers, unique("cg"), topic, 200))}
    assert got == {b"soon-%d" % n for n in range(100)} | {b"oneway-%d" % n for n in range(100)}


async def test_background_sends_are_bounded(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("bounded")

    config = ProducerConfig(in_flight_max=3)
    async with Producer(unique("pg"), name_servers=name_servers, config=config) as producer:
        message = Message(topic=topic, body=b"x")
        futures = [producer.send_soon(message) for _ in range(3)]
        with pytest.raises(TooManyInFlight, match="3 sends with 3 bytes"):
            producer.send_soon(message)
        await asyncio.gather(*futures)
        await producer.send_soon(message)


async def test_a_delay_level_holds_a_message_back(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("delayed", queues=1)

    async with Producer(unique("pg"), name_servers=name_servers) as producer:
        started = time.time()
        await producer.send(Message(topic=topic, body=b"later", delay_level=1))
        await producer.send(Message(topic=topic, body=b"now"))
    got = _all(await _read(name_servers, unique("cg"), topic, 2))
    assert [message.body for message in got] == [b"now", b"later"]
    assert got[1].store_timestamp / 1000 - started >= 0.9


@pytest.mark.skipif(
    os.environ.get("COMETMQ_CLIENT_SERVERS", "").startswith("rocketmq-4"),
    reason="RocketMQ 4 has no delivery times",
)
async def test_a_delivery_time_holds_a_message_back(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("timed", queues=1)

    async with Producer(unique("pg"), name_servers=name_servers) as producer:
        now_ms = int(time.time() * 1000)
        delayed = [
            Message(topic=topic, body=b"2 s", delay_seconds=2),
            Message(topic=topic, body=b"3.5 s", delay_ms=3500),
            Message(topic=topic, body=b"5 s", deliver_at_ms=now_ms + 5000),
        ]
        for message in reversed(delayed):
            assert (await producer.send(message)).status is SendStatus.SEND_OK
    got = _all(await _read(name_servers, unique("cg"), topic, 3))
    assert [message.body for message in got] == [b"2 s", b"3.5 s", b"5 s"]
    assert got[2].store_timestamp - now_ms >= 4900


async def test_what_can_never_be_sent_is_refused_before_it_leaves(
    name_servers: str, unique: Unique
) -> None:
    bad: list[tuple[dict[str, Any], str]] = [
        ({"topic": "a b"}, "illegal characters"),
        ({"topic": "SCHEDULE_TOPIC_XXXX"}, "belongs to the system"),
        ({"body": b""}, "empty body"),
        ({"body": b"x" * (4 * 1024 * 1024 + 1)}, "maxMessageSize"),
        ({"properties": {"WAIT": "x"}}, "reserved"),
        ({"tags": "a\x01b"}, "separate"),
    ]

    async with Producer(unique("pg"), name_servers=name_servers) as producer:
        for fields, reason in bad:
            message = Message(**{"topic": unique("bad"), "body": b"x", **fields})
            with pytest.raises(UsageError, match=reason):
                await producer.send(message)


async def test_a_topic_without_write_permission_has_no_queue(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("read-only", perm=4)

    async with Producer(unique("pg"), name_servers=name_servers) as producer:
        with pytest.raises(NoRoute, match="no writable queue"):
            await producer.send(Message(topic=topic, body=b"x"))


async def test_a_broker_that_refuses_is_heard(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("strict", queues=1)

    async with Producer(unique("pg"), name_servers=name_servers) as producer:
        [queue] = await producer.fetch_publish_queues(topic)
        beyond = MessageQueue(broker_name=queue.broker_name, queue_id=99, topic=topic)
        with pytest.raises(BrokerReplyError, match="queueId"):
            await producer.send(Message(topic=topic, body=b"x"), queue=beyond)


async def test_sends_go_on_after_the_broker_came_back(
    name_servers: str, broker_control: Any, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("again")

    async with Producer(unique("pg"), name_servers=name_servers) as producer:
        message = Message(topic=topic, body=b"x")
        await producer.send(message)
        await asyncio.to_thread(broker_control.kill)
        started = time.monotonic()
        with pytest.raises((RemotingError, NoRoute)):
            await producer.send(message, timeout=2.0)
        assert time.monotonic() - started < 10
        await asyncio.to_thread(broker_control.start)
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            try:
                assert (await producer.send(message)).status is SendStatus.SEND_OK
                return
            except (RemotingError, NoRoute, BrokerReplyError):
                assert time.monotonic() < deadline
                await asyncio.sleep(0.1)


async def test_hooks_see_every_send(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("watched")
    seen: list[str] = []

    class Hook:
        def before(self, context: Any) -> None:
            context.notes["began"] = True
            seen.append(f"before {len(context.messages)}")

        def after(self, context: Any) -> None:
            assert context.notes["began"]
            assert context.error is None
            assert context.elapsed_ms >= 0
            seen.append(f"after {context.mode.value} {context.result and context.result.status}")

    async with Producer(unique("pg"), name_servers=name_servers) as producer:
        producer.add_send_hook(Hook())
        message = Message(topic=topic, body=b"x")
        await producer.send(message)
        await producer.send_batch([message, message])
        await producer.send_oneway(message)
    assert seen == [
        "before 1",
        "after waiting SEND_OK",
        "before 2",
        "after waiting SEND_OK",
        "before 1",
        "after one-way None",
    ]


async def test_a_producer_says_when_it_does_not_run(name_servers: str, unique: Unique) -> None:
    group = unique("pg")

    producer = Producer(group, name_servers=name_servers)
    with pytest.raises(ClientClosed, match="does not run"):
        await producer.send(Message(topic="T", body=b"x"))
    await producer.start()
    await producer.start()
    await producer.close()
    await producer.close()


async def test_one_producer_per_group_and_client_id(name_servers: str, unique: Unique) -> None:
    group = unique("pg")

    config = ProducerConfig(client=ClientConfig(instance_name=unique("shared")))
    async with Producer(group, name_servers=name_servers, config=config):
        with pytest.raises(GroupInUse):
            await Producer(group, name_servers=name_servers, config=config).start()
        async with Producer(unique("other"), name_servers=name_servers, config=config):
            pass
