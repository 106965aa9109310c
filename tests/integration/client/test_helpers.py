"""The helpers with real clients and servers."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.eventually import eventually

from cometmq.client.aio.pull.lite_pull_consumer import LitePullConsumer
from cometmq.client.aio.pull.pull_consumer import PullConsumer
from cometmq.client.aio.push.push_consumer import PushConsumer
from cometmq.client.aio.send.producer import Producer
from cometmq.client.consumer_config import PushConsumerConfig
from cometmq.client.helpers.idempotence import TableClaims, once
from cometmq.client.helpers.log_handler import TopicHandler
from cometmq.client.helpers.outbox import Outbox, OutboxSettings
from cometmq.client.helpers.outbox_blocking import BlockingOutbox
from cometmq.client.helpers.priority import ByPriority
from cometmq.client.helpers.rate_limit import RateLimit
from cometmq.client.helpers.skip_backlog import (
    GroupIsOffline,
    GroupIsOnline,
    jump,
    jump_running,
)
from cometmq.client.lite_pull_config import LitePullConfig
from cometmq.client.producer_config import ProducerConfig
from cometmq.client.sync import Producer as BlockingProducer
from cometmq.model.messages.message import Message
from cometmq.model.messages.received_message import ReceivedMessage

FIRST = PushConsumerConfig(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
FIRST_LITE = LitePullConfig(consume_from_where="CONSUME_FROM_FIRST_OFFSET", pull_batch_size=1)
QUICK = OutboxSettings(poll_seconds=0.05, pause_seconds=0.05, pause_seconds_max=0.2)

Unique = Callable[[str], str]


async def _read_all(name_servers: str, topic: str, count: int, group: str) -> list[bytes]:
    """What lies in a topic of one queue, once it is so many."""
    async with PullConsumer(group, name_servers=name_servers) as consumer:
        [queue] = await consumer.queues(topic)
        async with asyncio.timeout(60):
            while await consumer.max_offset(queue) < count:
                await asyncio.sleep(0.05)
        bodies: list[bytes] = []
        offset = 0
        while len(bodies) < count:
            result = await consumer.pull(queue, offset)
            bodies += [message.body for message in result.messages]
            offset = result.next_offset
        return bodies


async def test_an_outbox_brings_messages_over_a_broker_that_was_down(
    name_servers: str, broker_control: Any, create_topic: Any, unique: Unique, tmp_path: Path
) -> None:
    topic = create_topic("outbox", queues=1)

    config = ProducerConfig(send_timeout_ms=500, retries=0)
    async with (
        Producer(unique("outbox"), name_servers=name_servers, config=config) as producer,
        Outbox(producer, lambda: sqlite3.connect(tmp_path / "o.db"), settings=QUICK) as outbox,
    ):
        assert await outbox.send(Message(topic=topic, body=b"0")) is not None
        await asyncio.to_thread(broker_control.kill)
        for number in range(1, 4):
            assert await outbox.send(Message(topic=topic, body=b"%d" % number)) is None
        await asyncio.to_thread(broker_control.start)
        async with asyncio.timeout(60):
            while await outbox.count():
                await asyncio.sleep(0.05)
    bodies = await _read_all(name_servers, topic, 4, unique("reader"))
    # At least once and in order: the first one of those kept may be there twice.
    assert list(dict.fromkeys(bodies)) == [b"0", b"1", b"2", b"3"]


def test_a_blocking_outbox_sends_what_a_transaction_put_there(
    name_servers: str, create_topic: Any, unique: Unique, tmp_path: Path
) -> None:
    topic = create_topic("outbox", queues=1)
    path = tmp_path / "o.db"
    with (
        BlockingProducer(unique("outbox"), name_servers=name_servers) as producer,
        BlockingOutbox(producer, lambda: sqlite3.connect(path), settings=QUICK) as outbox,
    ):
        assert outbox.send(Message(topic=topic, body=b"direct")) is not None
        connection = sqlite3.connect(path)
        with connection:
            outbox.table.add(connection, Message(topic=topic, body=b"from a transaction"))
        connection.close()
        outbox.wake()
        deadline = time.monotonic() + 30
        while outbox.count():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert outbox.refused() == []
    bodies = asyncio.run(_read_all(name_servers, topic, 2, unique("reader")))
    assert bodies == [b"direct", b"from a transaction"]


async def test_a_limited_consumer_keeps_its_rate(
    name_servers: str, create_topic: Any, unique: Unique
) -> None:
    topic = create_topic("limited")
    times: list[float] = []

    async def handle(message: ReceivedMessage) -> None:
        times.append(time.monotonic())

    async with Producer(unique("limited"), name_servers=name_servers) as producer:
        await producer.send_all(Message(topic=topic, body=b"x") for _ in range(30))
    consumer = PushConsumer(
        unique("limited"),
        listener=RateLimit(50).around(handle),
        name_servers=name_servers,
        config=FIRST,
    )
    consumer.subscribe(topic)
    async with consumer:
        await eventually(lambda: len(times) == 30)
    assert max(times) - min(times) >= 29 / 50 * 0.9


async def test_an_event_that_is_sent_twice_is_worked_on_once(
    name_servers: str, create_topic: Any, unique: Unique, tmp_path: Path
) -> None:
    topic = create_topic("once")
    claims = TableClaims(lambda: sqlite3.connect(tmp_path / "c.db"))
    claims.create_table()
    worked: list[str] = []
    arrived: list[str] = []

    def handle(message: ReceivedMessage) -> None:
        worked.append(message.keys[0])

    guarded = once(claims, handle)

    def listener(message: ReceivedMessage) -> Any:
        outcome = guarded(message)
        arrived.append(message.keys[0])
        return outcome

    try:
        async with Producer(unique("once"), name_servers=name_servers) as producer:
            for number in [0, 1, 2, 0, 1, 2]:
                await producer.send(Message(topic=topic, body=b"x", keys=[f"k{number}"]))
        consumer = PushConsumer(
            unique("once"), listener=listener, name_servers=name_servers, config=FIRST
        )
        consumer.subscribe(topic)
        async with consumer:
            await eventually(lambda: len(arrived) >= 6)
    finally:
        claims.close()
    assert sorted(worked) == ["k0", "k1", "k2"]


async def test_a_group_jumps_to_the_end_and_back_when_nobody_runs(
    name_servers: str, create_topic: Any, unique: Unique
) -> None:
    topic, group = create_topic("jump", queues=2), unique("jump")
    got: list[bytes] = []

    def handle(message: ReceivedMessage) -> None:
        got.append(message.body)

    async with Producer(unique("jump"), name_servers=name_servers) as producer:
        for _ in range(6):
            await producer.send(Message(topic=topic, body=b"old"))
        positions = await jump(group, topic, name_servers=name_servers)
        assert sum(positions.values()) == 6
        await producer.send(Message(topic=topic, body=b"new"))
        consumer = PushConsumer(group, listener=handle, name_servers=name_servers, config=FIRST)
        consumer.subscribe(topic)
        async with consumer:
            await eventually(lambda: got == [b"new"])
            with pytest.raises(GroupIsOnline, match="stop them first"):
                await jump(group, topic, name_servers=name_servers)
        positions = await jump(group, topic, to_time_ms=0, name_servers=name_servers)
        assert sum(positions.values()) == 0
        async with consumer:
            await eventually(lambda: len(got) == 8)


async def test_a_running_group_jumps_back_and_to_the_end(
    name_servers: str, create_topic: Any, unique: Unique
) -> None:
    topic, group = create_topic("jump", queues=2), unique("jump")
    got: list[bytes] = []

    def handle(message: ReceivedMessage) -> None:
        got.append(message.body)

    await jump(group, topic, name_servers=name_servers)
    with pytest.raises(GroupIsOffline, match=r"jump\(\)"):
        await jump_running(group, topic, name_servers=name_servers)
    async with Producer(unique("jump"), name_servers=name_servers) as producer:
        for _ in range(6):
            await producer.send(Message(topic=topic, body=b"old"))
        consumer = PushConsumer(group, listener=handle, name_servers=name_servers, config=FIRST)
        consumer.subscribe(topic)
        async with consumer:
            await eventually(lambda: len(got) == 6)
            back = await jump_running(group, topic, to_time_ms=0, name_servers=name_servers)
            assert {queue.topic: at for queue, at in back.items()} == {topic: 0}
            assert len(back) == 2
            await eventually(lambda: len(got) == 12)
            end = await jump_running(group, topic, name_servers=name_servers)
            assert sum(end.values()) == 6
            await producer.send(Message(topic=topic, body=b"new"))
            await eventually(lambda: b"new" in got)
    assert len(got) == 13


async def test_urgent_messages_come_first(
    name_servers: str, create_topic: Any, unique: Unique
) -> None:
    urgent_topic, normal_topic = create_topic("urgent"), create_topic("normal")

    async with Producer(unique("p"), name_servers=name_servers) as producer:
        for _ in range(5):
            await producer.send(Message(topic=normal_topic, body=b"normal"))
            await producer.send(Message(topic=urgent_topic, body=b"urgent"))
        urgent = LitePullConsumer(unique("u"), name_servers=name_servers, config=FIRST_LITE)
        normal = LitePullConsumer(unique("n"), name_servers=name_servers, config=FIRST_LITE)
        urgent.subscribe(urgent_topic)
        normal.subscribe(normal_topic)
        bodies: list[bytes] = []
        async with urgent, normal, asyncio.timeout(60):
            order = ByPriority([urgent, normal])
            while len(bodies) < 10:
                bodies += [message.body for message in await order.poll()]
            # All is read; now the order is no matter of who was shared out first.
            for _ in range(3):
                await producer.send(Message(topic=normal_topic, body=b"normal"))
                await producer.send(Message(topic=urgent_topic, body=b"urgent"))
            await eventually(lambda: _ready(urgent) == 3 and _ready(normal) == 3)
            late: list[bytes] = []
            while len(late) < 6:
                late += [message.body for message in await order.poll()]
    assert late == [b"urgent"] * 3 + [b"normal"] * 3


def _ready(consumer: LitePullConsumer) -> int:
    running = consumer._running
    assert running is not None
    return running.assigned._cached_count


def test_log_lines_arrive_in_their_topic(
    name_servers: str, create_topic: Any, unique: Unique
) -> None:
    topic = create_topic("logs", queues=1)
    handler = TopicHandler(topic, name_servers=name_servers, group=unique("logs"))
    logger = logging.getLogger("app.helpers")
    logger.addHandler(handler)
    try:
        for number in range(5):
            logger.warning("line %d", number)
    finally:
        logger.removeHandler(handler)
        handler.close()
    assert (handler.sent, handler.dropped) == (5, 0)
    bodies = asyncio.run(_read_all(name_servers, topic, 5, unique("reader")))
    assert bodies == [b"line %d" % number for number in range(5)]
