"""Orderly consumption on real servers: order whatever fails, dead letters, one consumer of a queue at a time."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from tests.eventually import eventually
from tests.integration.client.conftest import CreateTopic
from tests.integration.client.consuming import (
    Taken,
    committed,
    config,
    consuming,
    numbered,
    queues_of,
    send,
)

from cometmq.client.aio.pull.pull_consumer import PullConsumer
from cometmq.client.core.consume.outcome import Outcome
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.names import dlq_topic

pytestmark = pytest.mark.timeout(180)

Unique = Callable[[str], str]


@pytest.mark.parametrize("is_async", [True, False])
async def test_messages_of_a_queue_come_in_order_and_one_at_a_time(
    name_servers: str, create_topic: CreateTopic, unique: Unique, is_async: bool
) -> None:
    topic = create_topic(queues=3)
    for queue_id in range(3):
        await send(name_servers, topic, numbered(60), queue_id)
    order: dict[int, list[int]] = defaultdict(list)
    busy: set[int] = set()
    overlaps: list[int] = []
    lock = threading.Lock()

    def enter(message: ReceivedMessage) -> None:
        with lock:
            if message.queue_id in busy:
                overlaps.append(message.queue_id)
            busy.add(message.queue_id)

    def leave(message: ReceivedMessage) -> None:
        with lock:
            order[message.queue_id].append(int(message.body))
            busy.discard(message.queue_id)

    async def listener(message: ReceivedMessage) -> None:
        enter(message)
        await asyncio.sleep(0.001)
        leave(message)

    def listener_in_thread(message: ReceivedMessage) -> None:
        enter(message)
        time.sleep(0.001)
        leave(message)

    async with consuming(
        unique("group"),
        topic,
        name_servers,
        listener=listener if is_async else listener_in_thread,
        orderly=True,
    ):
        await eventually(lambda: sum(map(len, order.values())) == 180)
    assert not overlaps
    assert order == {queue_id: list(range(60)) for queue_id in range(3)}


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_failed_message_holds_its_queue_up_until_it_succeeds(
    name_servers: str, create_topic: CreateTopic, unique: Unique, is_async: bool
) -> None:
    topic, group = create_topic(queues=1), unique("group")
    await send(name_servers, topic, numbered(10))

    def fail_twice(message: ReceivedMessage) -> object:
        if message.body == b"4" and message.reconsume_times < 2:
            if message.reconsume_times == 0:
                raise RuntimeError("not today")
            return Outcome.later()
        return None

    taken = Taken(fail_twice)
    async with consuming(
        group,
        topic,
        name_servers,
        listener=taken.listener if is_async else taken.in_thread,
        orderly=True,
        config=config(suspend_queue_ms=200),
    ):
        await eventually(lambda: len(taken.messages) == 12)
    assert taken.bodies == [*numbered(5), b"4", b"4", *numbered(5, 5)]
    assert await committed(name_servers, group, topic) == 10


@pytest.mark.parametrize("way", ["retries used up", "to_dlq"])
async def test_dead_letters_let_the_queue_go_on(
    name_servers: str, create_topic: CreateTopic, unique: Unique, way: str
) -> None:
    topic, group = create_topic(queues=1), unique("group")
    await send(name_servers, topic, numbered(3))

    def fail(message: ReceivedMessage) -> Outcome | None:
        if message.body != b"1":
            return None
        return Outcome.to_dlq() if way == "to_dlq" else Outcome.later()

    taken = Taken(fail)
    settings = config(suspend_queue_ms=10, max_reconsume_times=2)
    async with consuming(
        group, topic, name_servers, listener=taken.listener, orderly=True, config=settings
    ):
        await eventually(lambda: b"2" in taken.bodies)
        tries = 3 if way == "retries used up" else 1
        assert taken.bodies == [b"0", *[b"1"] * tries, b"2"]
        async with PullConsumer("reader", name_servers=name_servers) as reader:
            async with asyncio.timeout(30):
                while not (letters := await _letters(reader, group)):
                    await asyncio.sleep(0.1)
    assert letters == [b"1"]


async def test_a_batch_commits_its_first_messages_and_tries_the_rest_again(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic(queues=1)
    await send(name_servers, topic, numbered(6))
    batches: list[list[bytes]] = []

    async def listener(messages: list[ReceivedMessage]) -> Outcome | None:
        batches.append([message.body for message in messages])
        return Outcome.consumed_through(1) if len(batches) == 1 else None

    settings = config(consume_batch_max=4, suspend_queue_ms=10)
    async with consuming(
        unique("group"),
        topic,
        name_servers,
        batch_listener=listener,
        orderly=True,
        config=settings,
    ):
        await eventually(lambda: b"5" in {body for batch in batches for body in batch})
    assert batches[0] == numbered(4)
    assert [body for batch in batches[1:] for body in batch] == numbered(4, 2)


async def test_members_that_come_and_go_keep_the_order_and_repeat_nothing(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    """Each member may be told to leave at any time; the lock passes a queue on only when its work has ended."""

    topic, group = create_topic(queues=4), unique("group")
    taken: dict[int, list[int]] = defaultdict(list)
    busy: set[int] = set()
    overlaps: list[int] = []

    async def listener(message: ReceivedMessage) -> None:
        if message.queue_id in busy:
            overlaps.append(message.queue_id)
        busy.add(message.queue_id)
        await asyncio.sleep(0.002)
        taken[message.queue_id].append(int(message.body))
        busy.discard(message.queue_id)

    def member() -> Any:
        return consuming(group, topic, name_servers, listener=listener, orderly=True)

    count = 150

    async def produce() -> None:
        for part in range(5):
            for queue_id in range(4):
                await send(name_servers, topic, numbered(count // 5, part * count // 5), queue_id)

    producing = asyncio.create_task(produce())
    async with member() as first:
        async with member() as second:
            await eventually(
                lambda: len(queues_of(first, topic)) == len(queues_of(second, topic)) == 2
            )
            await producing
        await eventually(lambda: sum(map(len, taken.values())) >= 4 * count)
    assert not overlaps
    assert taken == {queue_id: list(range(count)) for queue_id in range(4)}


async def _letters(reader: PullConsumer, group: str) -> list[bytes]:
    try:
        queues = await reader.queues(dlq_topic(group))
    except Exception:  # noqa: BLE001 - the topic is made by the first dead letter
        return []
    found: list[bytes] = []
    for queue in queues:
        found += [message.body for message in (await reader.pull(queue, 0)).messages]
    return found
