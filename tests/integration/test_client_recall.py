"""Our client takes back messages that are not yet due, through both faces."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from cometmq.base.errors import UsageError
from cometmq.client import (
    ClientConfig,
    Message,
    ProducerConfig,
    PushConsumerConfig,
    TraceConfig,
)
from cometmq.client.aio import Producer, PushConsumer
from cometmq.client.sync import Producer as BlockingProducer
from cometmq.model.messages.recall_handle import decode_recall_handle
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.trace import RecallTrace, decode_traces
from cometmq.protocol.reply_errors import IllegalOperation, NoPermission
from cometmq.testing import cluster

TOPIC = "Reminders"


@pytest.mark.parametrize("namespace", ["", "tenant"])
async def test_a_recalled_message_does_not_come(namespace: str) -> None:
    seen: list[bytes] = []
    last = asyncio.Event()

    async def listener(message: ReceivedMessage) -> None:
        seen.append(message.body)
        if message.body == b"last":
            last.set()

    async with cluster() as servers:
        client = ClientConfig(name_servers=servers.name_servers, namespace=namespace)
        consumer = PushConsumer(
            "readers", listener=listener, config=PushConsumerConfig(client=client)
        )
        consumer.subscribe(TOPIC)
        async with (
            Producer("writers", config=ProducerConfig(client=client)) as producer,
            Producer("others", config=ProducerConfig(client=client)) as other,
            consumer,
        ):
            due_ms = int(time.time() * 1000) + 1500
            timed = [
                await producer.send(Message(topic=TOPIC, body=body, deliver_at_ms=due_ms))
                for body in (b"kept", b"recalled", b"recalled by another")
            ]
            assert await producer.recall(TOPIC, timed[1].recall_handle) == timed[1].message_id
            assert await other.recall(TOPIC, timed[2].recall_handle) == timed[2].message_id
            last_due_ms = due_ms + 1000
            await producer.send(Message(topic=TOPIC, body=b"last", deliver_at_ms=last_due_ms))
            await asyncio.wait_for(last.wait(), 30)
            with pytest.raises(IllegalOperation, match="timestamp invalid"):
                await producer.recall(TOPIC, timed[0].recall_handle)
    assert sorted(seen) == [b"kept", b"last"]


def test_a_plain_message_has_no_handle_and_a_broker_may_forbid_recalls() -> None:
    with (
        cluster(settings={"recallMessageEnable": "false"}) as servers,
        BlockingProducer("writers", name_servers=servers.name_servers) as producer,
    ):
        plain = producer.send(Message(topic=TOPIC, body=b"plain"))
        with pytest.raises(UsageError, match="got None"):
            producer.recall(TOPIC, plain.recall_handle)
        timed = producer.send(Message(topic=TOPIC, body=b"timed", delay_seconds=60))
        with pytest.raises(NoPermission, match="operation is forbidden"):
            producer.recall(TOPIC, timed.recall_handle)


def test_the_blocking_face_recalls_from_threads() -> None:
    with (
        cluster() as servers,
        BlockingProducer("writers", name_servers=servers.name_servers) as producer,
        ThreadPoolExecutor(4) as threads,
    ):
        sent = [producer.send(Message(topic=TOPIC, body=b"x", delay_seconds=60)) for _ in range(20)]
        recalled = threads.map(lambda each: producer.recall(TOPIC, each.recall_handle), sent)
        assert list(recalled) == [each.message_id for each in sent]


def test_recalls_are_traced_whatever_the_broker_says() -> None:
    trace = TraceConfig(is_trace_on=True, flush_interval_ms=20)
    with cluster(settings={"traceTopicEnable": "true"}) as servers:
        with BlockingProducer(
            "writers", name_servers=servers.name_servers, config=ProducerConfig(trace=trace)
        ) as producer:
            sent = producer.send(Message(topic=TOPIC, body=b"x", delay_seconds=60))
            producer.recall(TOPIC, sent.recall_handle)
            assert sent.recall_handle is not None
            handle = decode_recall_handle(sent.recall_handle)._replace(deliver_ms=1)
            with pytest.raises(IllegalOperation):
                producer.recall(TOPIC, handle.encode())
        # Closed: what waited was sent.
        with BlockingProducer("readers", name_servers=servers.name_servers) as reader:
            records = [
                record
                for message in reader.query(trace.trace_topic, sent.message_id)
                for record in decode_traces(message.body.decode())
            ]
    recalls = [record for record in records if isinstance(record, RecallTrace)]
    assert sorted(recall.is_success for recall in recalls) == [False, True]
    assert {(recall.topic, recall.group, recall.message_id) for recall in recalls} == {
        (TOPIC, "writers", sent.message_id)
    }
