"""Questions and answers through a real broker of either make."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from cometmq.base.errors import TooManyInFlight
from cometmq.client.aio.pull.pull_consumer import PullConsumer
from cometmq.client.aio.send.producer import Producer
from cometmq.client.aio.send.request_reply import reply_to
from cometmq.client.errors import ReplyImpossible, RequestTimedOut
from cometmq.client.producer_config import ProducerConfig
from cometmq.model.messages.message import Message, ReceivedMessage

CreateTopic = Callable[..., str]
Unique = Callable[[str], str]
Answer = Callable[[ReceivedMessage], bytes | None]


@asynccontextmanager
async def _answering(
    name_servers: str, unique: Unique, topic: str, answer: Answer
) -> AsyncIterator[list[ReceivedMessage]]:
    """Somebody who answers what arrives at a topic of one queue; None is no answer."""
    asked: list[ReceivedMessage] = []

    async def work(consumer: PullConsumer, producer: Producer) -> None:
        [queue] = await consumer.queues(topic)
        offset = 0
        while True:
            pulled = await consumer.pull(queue, offset, wait_seconds=5)
            offset = pulled.next_offset
            for request in pulled.messages:
                asked.append(request)
                body = answer(request)
                if body is not None:
                    await producer.send(reply_to(request, body))

    async with (
        PullConsumer(unique("cg"), name_servers=name_servers) as consumer,
        Producer(unique("answerers"), name_servers=name_servers) as producer,
    ):
        task = asyncio.create_task(work(consumer, producer))
        try:
            yield asked
        finally:
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error


async def test_each_request_gets_its_own_reply(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("questions", queues=1)

    async with (
        _answering(name_servers, unique, topic, lambda request: request.body[::-1] * 3000),
        Producer(unique("askers"), name_servers=name_servers) as producer,
    ):
        questions = [b"question-%d" % number for number in range(10)]
        replies = await asyncio.gather(
            *(producer.request(Message(topic=topic, body=body), timeout=20) for body in questions)
        )
        # Long enough to travel compressed.
        assert [reply.body for reply in replies] == [body[::-1] * 3000 for body in questions]


async def test_no_reply_in_time_is_an_error_of_its_own(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("unanswered", queues=1)

    async with (
        _answering(name_servers, unique, topic, lambda request: None) as asked,
        Producer(unique("askers"), name_servers=name_servers) as producer,
    ):
        started = time.monotonic()
        with pytest.raises(RequestTimedOut, match=r"within 1\.5 s"):
            await producer.request(Message(topic=topic, body=b"anybody?"), timeout=1.5)
        assert 1.4 < time.monotonic() - started < 15
        [request] = asked
        assert request.properties["TTL"] == "1500"


async def test_a_late_reply_is_dropped(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("late", queues=1)

    def answer(request: ReceivedMessage) -> bytes:
        return b"too late"

    async with Producer(unique("askers"), name_servers=name_servers) as producer:
        with pytest.raises(RequestTimedOut):
            await producer.request(Message(topic=topic, body=b"first"), timeout=1.0)
        async with _answering(name_servers, unique, topic, answer) as asked:
            # Both questions are answered; only the second one is still waited for.
            reply = await producer.request(Message(topic=topic, body=b"second"), timeout=20)
            assert reply.body == b"too late"
            assert [request.body for request in asked] == [b"first", b"second"]


def test_only_requests_can_be_replied_to() -> None:
    with pytest.raises(ReplyImpossible, match="whom to answer"):
        reply_to(ReceivedMessage(topic="T", body=b"x"), b"y")


async def test_waiting_requests_are_bounded(
    name_servers: str, create_topic: CreateTopic, unique: Unique
) -> None:
    topic = create_topic("crowded", queues=1)

    config = ProducerConfig(requests_max=1)
    async with Producer(unique("askers"), name_servers=name_servers, config=config) as producer:
        message = Message(topic=topic, body=b"x")
        await producer.send(message)
        # Which of the two comes first is not said.
        outcomes = await asyncio.gather(
            producer.request(message, timeout=3),
            producer.request(message, timeout=3),
            return_exceptions=True,
        )
        assert {type(outcome) for outcome in outcomes} == {TooManyInFlight, RequestTimedOut}
        (refused,) = [one for one in outcomes if isinstance(one, TooManyInFlight)]
        assert "1 requests" in str(refused)
