"""What the tests of push consumers share: a listener that remembers, sending, and waiting for something to be so."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from tests.eventually import eventually

from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.aio.offsets.broker_offsets import BrokerOffsets
from cometmq.client.aio.push.push_consumer import PushConsumer
from cometmq.client.aio.send.producer import Producer
from cometmq.client.client_config import ClientConfig
from cometmq.client.consumer_config import PushConsumerConfig
from cometmq.client.core.send.publish_queues import subscribe_queues
from cometmq.client.producer_config import ProducerConfig
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message
from cometmq.model.messages.received_message import ReceivedMessage

PATIENT = ProducerConfig(send_timeout_ms=30_000)
"""The first send to a topic waits until the name server knows it, which takes longer on a busy machine."""

FROM_FIRST = "CONSUME_FROM_FIRST_OFFSET"


def config(**settings: Any) -> PushConsumerConfig:
    """From the first offset, and quick to share queues out anew."""
    client = ClientConfig(**settings.pop("client", {}))
    settings.setdefault("consume_from_where", FROM_FIRST)
    settings.setdefault("rebalance_interval_ms", 1000)
    return dataclasses.replace(PushConsumerConfig(client=client), **settings)


class Taken:
    """A listener's memory; ``listener`` may do something first."""

    def __init__(self, act: Callable[[ReceivedMessage], Any] | None = None) -> None:
        self.messages: list[ReceivedMessage] = []
        self.act = act

    @property
    def bodies(self) -> list[bytes]:
        return [message.body for message in self.messages]

    def counts(self) -> Counter[bytes]:
        return Counter(self.bodies)

    def in_thread(self, message: ReceivedMessage) -> Any:
        self.messages.append(message)
        return self.act(message) if self.act is not None else None

    async def listener(self, message: ReceivedMessage) -> Any:
        self.messages.append(message)
        returned = self.act(message) if self.act is not None else None
        return await returned if asyncio.iscoroutine(returned) else returned


async def send(
    name_servers: str, topic: str, bodies: Iterable[bytes], queue_id: int | None = None, **more: Any
) -> None:
    async with Producer("sender", name_servers=name_servers, config=PATIENT) as producer:
        queue = None
        if queue_id is not None:
            queues = await producer.fetch_publish_queues(topic)
            queue = next(queue for queue in queues if queue.queue_id == queue_id)
        for body in bodies:
            await producer.send(Message(topic=topic, body=body, **more), queue=queue)


@asynccontextmanager
async def consuming(
    group: str, topic: str, name_servers: str, expression: Any = "*", **more: Any
) -> AsyncIterator[PushConsumer]:
    """A consumer that has its queues."""
    more.setdefault("config", config())
    consumer = PushConsumer(group, name_servers=name_servers, **more)
    consumer.subscribe(topic, expression)
    async with consumer:
        await eventually(lambda: queues_of(consumer, topic))
        yield consumer


def queues_of(consumer: PushConsumer, topic: str) -> list[MessageQueue]:
    return [queue for queue in consumer.queues if queue.topic == topic]


async def committed(name_servers: str, group: str, topic: str) -> int | None:
    """The sum of the group's positions, None when it has none. Asked as an operator, not as a member."""
    instance = ClientInstance.acquire(ClientConfig(name_servers=name_servers))
    try:
        store = BrokerOffsets(instance, group)
        queues = subscribe_queues(topic, await instance.route(topic))
        offsets = [await store.read(queue) for queue in queues]
    finally:
        await instance.release()
    known = [offset for offset in offsets if offset is not None]
    return sum(known) if known else None


def numbered(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]
