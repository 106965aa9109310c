"""Traced clients against real servers, with a trace topic of the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from cometmq.client.aio.push.push_consumer import PushConsumer
from cometmq.client.aio.send.producer import Producer
from cometmq.client.consumer_config import PushConsumerConfig
from cometmq.client.producer_config import ProducerConfig
from cometmq.client.sync import Producer as BlockingProducer
from cometmq.client.trace_config import TraceConfig
from cometmq.model.messages.message import Message
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.trace import TraceRecord, decode_traces


async def _traces(name_servers: str, topic: str, message_id: str, count: int) -> list[TraceRecord]:
    async with Producer("trace-readers", name_servers=name_servers) as client:
        async with asyncio.timeout(30):
            while True:
                found = [
                    record
                    for message in await client.query(topic, message_id)
                    for record in decode_traces(message.body.decode())
                    if record.message_id == message_id
                ]
                if len(found) >= count:
                    return found
                await asyncio.sleep(0.05)


async def test_a_messages_way_is_found_in_a_topic_of_ones_own(
    name_servers: str, create_topic: Any, unique: Callable[[str], str]
) -> None:
    topic, trace_topic = create_topic("traced"), create_topic("traces", queues=1)
    trace = TraceConfig(is_trace_on=True, trace_topic=trace_topic, flush_interval_ms=20)
    got = asyncio.Event()

    async def listener(message: ReceivedMessage) -> None:
        got.set()

    consumer = PushConsumer(
        unique("traced"),
        listener=listener,
        name_servers=name_servers,
        config=PushConsumerConfig(trace=trace, consume_from_where="CONSUME_FROM_FIRST_OFFSET"),
    )
    consumer.subscribe(topic)
    config = ProducerConfig(trace=trace)
    async with (
        Producer(unique("traced"), name_servers=name_servers, config=config) as producer,
        consumer,
    ):
        sent = await producer.send(Message(topic=topic, body=b"x", keys=["k"]))
        async with asyncio.timeout(30):
            await got.wait()
    # Both are closed: what waited was sent.
    records = await _traces(name_servers, trace_topic, sent.message_id, 3)
    kinds = [type(record).WORD for record in records]
    assert sorted(kinds) == ["Pub", "SubAfter", "SubBefore"]


async def test_trace_sends_are_not_traced(
    name_servers: str, create_topic: Any, unique: Callable[[str], str]
) -> None:
    topic, trace_topic = create_topic("traced"), create_topic("traces", queues=1)
    trace = TraceConfig(is_trace_on=True, trace_topic=trace_topic, flush_interval_ms=5)

    config = ProducerConfig(trace=trace)
    async with Producer(unique("t"), name_servers=name_servers, config=config) as producer:
        for _ in range(3):
            await producer.send(Message(topic=topic, body=b"x"))
            await asyncio.sleep(0.03)
    async with Producer(unique("t"), name_servers=name_servers) as reader:
        [queue] = await reader.fetch_publish_queues(trace_topic)
        assert 1 <= await reader.max_offset(queue) <= 3


def test_a_blocking_producer_is_traced_too(
    name_servers: str, create_topic: Any, unique: Callable[[str], str]
) -> None:
    topic, trace_topic = create_topic("traced"), create_topic("traces", queues=1)
    trace = TraceConfig(is_trace_on=True, trace_topic=trace_topic, flush_interval_ms=20)
    with BlockingProducer(
        unique("t"), name_servers=name_servers, config=ProducerConfig(trace=trace)
    ) as producer:
        sent = producer.send(Message(topic=topic, body=b"x"))
    [record] = asyncio.run(_traces(name_servers, trace_topic, sent.message_id, 1))
    assert type(record).WORD == "Pub"


async def test_a_missing_trace_topic_does_not_disturb_sends(
    name_servers: str, create_topic: Any, unique: Callable[[str], str]
) -> None:
    topic = create_topic("traced")
    # No broker takes this one: it belongs to the system.
    trace = TraceConfig(is_trace_on=True, trace_topic="SCHEDULE_TOPIC_XXXX", flush_interval_ms=5)

    config = ProducerConfig(trace=trace)
    async with Producer(unique("t"), name_servers=name_servers, config=config) as producer:
        for _ in range(5):
            await producer.send(Message(topic=topic, body=b"x"))
            await asyncio.sleep(0.01)
