"""Transactions against a real broker of either make. Half messages are checked after about two seconds."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.eventually import eventually

from cometmq.base.errors import UsageError
from cometmq.client.aio.pull.pull_consumer import PullConsumer
from cometmq.client.aio.send.transaction_producer import TransactionProducer, TransactionState
from cometmq.client.producer_config import ProducerConfig
from cometmq.model.messages.message import Message, ReceivedMessage

CreateTopic = Callable[..., str]
Unique = Callable[[str], str]
CHECK_SECONDS_MAX = 60.0

COMMIT, ROLLBACK, UNKNOWN = (
    TransactionState.COMMIT,
    TransactionState.ROLLBACK,
    TransactionState.UNKNOWN,
)


async def _bodies(consumer: PullConsumer, topic: str) -> list[bytes]:
    return [
        message.body
        for queue in await consumer.queues(topic)
        for message in (await consumer.pull(queue, 0)).messages
    ]


async def _until_there(consumer: PullConsumer, topic: str, wanted: set[bytes]) -> list[bytes]:
    deadline = time.monotonic() + CHECK_SECONDS_MAX
    while not wanted <= set(found := await _bodies(consumer, topic)):
        assert time.monotonic() < deadline, f"{found}, expected {wanted}"
        await asyncio.sleep(0.05)
    return found


async def test_only_committed_messages_are_delivered(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("transactions", queues=1)
    group = unique("tpg")
    executed: list[tuple[bytes, Any, bool]] = []
    main_thread = threading.get_ident()

    def execute(message: Message, argument: Any) -> TransactionState:
        executed.append((message.body, argument, threading.get_ident() == main_thread))
        return COMMIT if argument == "good" else ROLLBACK

    def check(message: ReceivedMessage) -> TransactionState:
        return UNKNOWN

    async with (
        TransactionProducer(
            group, execute=execute, check=check, name_servers=name_servers
        ) as producer,
        PullConsumer(unique("cg"), name_servers=name_servers) as consumer,
    ):
        bad = await producer.send_transaction(Message(topic=topic, body=b"bad"), "bad")
        good = await producer.send_transaction(
            Message(topic=topic, body=b"good", keys=["k"]), "good"
        )
        assert (bad.state, good.state, good.error) == (ROLLBACK, COMMIT, None)
        # A blocking function must not stop the event loop.
        assert executed == [(b"bad", "bad", False), (b"good", "good", False)]
        assert await _until_there(consumer, topic, {b"good"}) == [b"good"]
        [queue] = await consumer.queues(topic)
        [message] = (await consumer.pull(queue, 0)).messages
        assert message.message_id == good.sent.message_id
        assert message.keys == ["k"]


async def test_the_broker_asks_about_what_it_was_not_told(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("checked", queues=1)
    group = unique("tpg")
    checked: list[tuple[str, bytes]] = []

    async def execute(message: Message, argument: Any) -> TransactionState:
        if message.body == b"raised":
            raise ValueError("the database is away")
        return UNKNOWN

    async def check(message: ReceivedMessage) -> TransactionState:
        checked.append((message.topic, message.body))
        return ROLLBACK if message.body == b"dropped" else COMMIT

    async with (
        TransactionProducer(
            group, execute=execute, check=check, name_servers=name_servers
        ) as producer,
        PullConsumer(unique("cg"), name_servers=name_servers) as consumer,
    ):
        bodies = [b"unknown", b"raised", b"dropped"]
        results = [
            await producer.send_transaction(Message(topic=topic, body=body)) for body in bodies
        ]
        assert {result.state for result in results} == {UNKNOWN}
        assert isinstance(results[1].error, ValueError)
        await eventually(
            lambda: {(topic, body) for body in bodies} <= set(checked),
            seconds=CHECK_SECONDS_MAX,
        )
        found = await _until_there(consumer, topic, {b"unknown", b"raised"})
        assert b"dropped" not in found


async def test_any_producer_of_the_group_answers(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("inherited", queues=1)
    group = unique("tpg")

    def execute(message: Message, argument: Any) -> TransactionState:
        return UNKNOWN

    def never(message: ReceivedMessage) -> TransactionState:
        raise AssertionError("the first producer is gone before anybody asks")

    async with TransactionProducer(
        group, execute=execute, check=never, name_servers=name_servers
    ) as first:
        sent = await first.send_transaction(Message(topic=topic, body=b"orphan"))
    async with (
        TransactionProducer(
            group, execute=execute, check=lambda message: COMMIT, name_servers=name_servers
        ),
        PullConsumer(unique("cg"), name_servers=name_servers) as consumer,
    ):
        await _until_there(consumer, topic, {b"orphan"})
        [queue] = await consumer.queues(topic)
        message = (await consumer.pull(queue, 0)).messages[0]
        assert message.message_id == sent.sent.message_id


async def test_a_delay_and_a_transaction_exclude_each_other(
    name_servers: str, unique: Unique
) -> None:
    async with TransactionProducer(
        unique("tpg"),
        execute=lambda message, argument: COMMIT,
        check=lambda message: COMMIT,
        name_servers=name_servers,
        config=ProducerConfig(),
    ) as producer:
        with pytest.raises(UsageError, match="delay"):
            await producer.send_transaction(Message(topic="T", body=b"x", delay_level=1))
