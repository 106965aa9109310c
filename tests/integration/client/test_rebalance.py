"""Members of a group share its queues on real servers, and hand them over without loss or repetition."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest
from tests.eventually import eventually
from tests.integration.client.conftest import CreateTopic
from tests.integration.client.consuming import config, consuming, queues_of

from cometmq.client.aio.push.push_consumer import PushConsumer
from cometmq.client.aio.send.producer import Producer
from cometmq.client.core.consume.rebalance import find_strategy, share_of
from cometmq.model.allocation import fixed
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message
from cometmq.model.messages.received_message import ReceivedMessage

pytestmark = pytest.mark.timeout(180)

Unique = Callable[[str], str]


@pytest.mark.parametrize("strategy", ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "own"])
async def test_queues_are_shared_and_shared_anew(
    name_servers: str, create_topic: CreateTopic, unique: Unique, strategy: str
) -> None:
    def by_turns(
        queues: Sequence[MessageQueue], clients: Sequence[str], me: int
    ) -> list[MessageQueue]:
        return [queue for queue in queues if queue.queue_id % len(clients) == me]

    topic, group = create_topic(queues=8), unique("group")
    settings = config(allocation=by_turns if strategy == "own" else strategy)

    async def listener(message: ReceivedMessage) -> None: ...

    def member() -> Any:
        return consuming(group, topic, name_servers, listener=listener, config=settings)

    async with member() as first:
        await eventually(lambda: len(queues_of(first, topic)) == 8)
        async with AsyncExitStack() as stack:
            consumer = PushConsumer(
                group, listener=listener, name_servers=name_servers, config=settings
            )
            consumer.subscribe(topic)
            await stack.enter_async_context(consumer)
            for each in (first, consumer):
                share = _share(each, [first, consumer], topic, 8)
                await eventually(
                    lambda each=each, share=share: queues_of(each, topic) == share  # type: ignore[misc]
                )
        await eventually(lambda: len(queues_of(first, topic)) == 8)


async def test_a_member_can_have_queues_of_its_own(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic(queues=4)
    mine = [MessageQueue("broker-c", 1, topic), MessageQueue("broker-c", 3, topic)]

    async def listener(message: ReceivedMessage) -> None: ...

    async with consuming(
        unique("group"),
        topic,
        name_servers,
        listener=listener,
        config=config(allocation=fixed(mine)),
    ) as consumer:
        await eventually(lambda: queues_of(consumer, topic) == mine)


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_rolling_restart_of_all_members_loses_and_repeats_nothing(
    name_servers: str, create_topic: CreateTopic, unique: Unique, is_async: bool
) -> None:
    """Three members under load; a fourth joins, and each of the first three is replaced."""

    topic, group = create_topic(queues=8), unique("group")
    taken: Counter[bytes] = Counter()

    async def listener(message: ReceivedMessage) -> None:
        await asyncio.sleep(0.003)
        taken[message.body] += 1

    def listener_in_thread(message: ReceivedMessage) -> None:
        # Appends of one thread at a time are all a Counter needs; the interpreter sees to that.
        taken[message.body] += 1

    settings = config(rebalance_interval_ms=20_000, consume_thread_max=4)

    async def join() -> PushConsumer:
        consumer = PushConsumer(
            group,
            listener=listener if is_async else listener_in_thread,
            name_servers=name_servers,
            config=settings,
        )
        consumer.subscribe(topic)
        await consumer.start()
        return consumer

    members = [await join() for _ in range(3)]
    await eventually(lambda: _is_shared(members, topic, 8))
    sent = 0
    is_done = False

    async def produce() -> None:
        nonlocal sent
        async with Producer("sender", name_servers=name_servers) as producer:
            while not is_done:
                await producer.send(Message(topic=topic, body=b"%d" % sent))
                sent += 1

    producing = asyncio.create_task(produce())
    await eventually(lambda: sum(taken.values()) > 100)
    members.append(await join())
    await eventually(lambda: _is_shared(members, topic, 8))
    for number in range(3):
        leaver = members.pop(0)
        if number < 2:
            await leaver.close()
            members.append(await join())
        else:
            # Both at once: members change twice while queues are still being handed over.
            members.append((await asyncio.gather(join(), leaver.close()))[0])
        await eventually(lambda: _is_shared(members, topic, 8))
    is_done = True
    await producing
    await eventually(lambda: len(taken) == sent, seconds=60)
    for member in members:
        await member.close()
    repeated = {body: count for body, count in taken.items() if count > 1}
    assert not repeated
    assert len(taken) == sent


async def test_a_slow_listener_is_waited_for_before_its_queue_passes_on(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic, group = create_topic(queues=2), unique("group")
    ended: list[tuple[str, bytes]] = []
    begun = asyncio.Event()

    def listener(name: str, seconds: float) -> Any:
        async def take(message: ReceivedMessage) -> None:
            begun.set()
            await asyncio.sleep(seconds)
            ended.append((name, message.body))

        return take

    async with Producer("sender", name_servers=name_servers) as producer:
        for queue in await producer.fetch_publish_queues(topic):
            for number in range(3):
                body = b"%d-%d" % (queue.queue_id, number)
                await producer.send(Message(topic=topic, body=body), queue=queue)
    # One worker per queue and a message: the others wait in the queue when it is given away.
    settings = config(consume_thread_max=2)
    async with consuming(
        group, topic, name_servers, listener=listener("old", 1.5), config=settings
    ) as old:
        await eventually(lambda: len(queues_of(old, topic)) == 2)
        await begun.wait()
        async with consuming(
            group, topic, name_servers, listener=listener("new", 0.0), config=settings
        ):
            await eventually(lambda: len(ended) >= 6)
    bodies = Counter(body for _, body in ended)
    assert bodies == Counter({b"%d-%d" % (q, n): 1 for q in range(2) for n in range(3)})
    assert "new" in {name for name, _ in ended}


def _share(
    consumer: PushConsumer, members: Sequence[PushConsumer], topic: str, count: int
) -> list[MessageQueue]:
    """What the consumer's strategy gives it."""
    queues = [MessageQueue("broker-c", number, topic) for number in range(count)]
    strategy = find_strategy(consumer.config.allocation)
    ids = [member.client_id for member in members]
    return share_of(strategy, consumer.client_id, queues, ids)


def _is_shared(members: Sequence[PushConsumer], topic: str, count: int) -> bool:
    held = [queue for member in members for queue in queues_of(member, topic)]
    is_even = all(queues_of(member, topic) for member in members)
    return is_even and len(held) == len(set(held)) == count
