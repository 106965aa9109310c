"""Our own client, asyncio and blocking, tries what accounts may do, at our broker and at RocketMQ's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from tests.eventually import eventually, wait_until

from cometmq.client import (
    BrokerReplyError,
    ClientConfig,
    Message,
    MessageQueue,
    ProducerConfig,
    PullConsumerConfig,
    PushConsumerConfig,
    ReceivedMessage,
    aio,
    sync,
)

from .account_attempts import OK, OWN_OPERATIONS, Attempt, Surprises, offered, surprises_of
from .account_servers import BROKER_NAME, Guarded, GuardedBroker

ASYNCIO, BLOCKING = "asyncio", "blocking"
FACES = (ASYNCIO, BLOCKING)
_CALL_SECONDS = 15.0
_CONSUMED = "a message was consumed"


def own_surprises(face: str, guarded: Guarded, attempts: Sequence[Attempt]) -> Surprises:
    """What was not as expected."""
    return surprises_of(
        (broker.make, attempt, _outcome(face, broker, attempt))
        for broker in guarded.values()
        for attempt in offered(attempts, OWN_OPERATIONS)
    )


def _outcome(face: str, broker: GuardedBroker, attempt: Attempt) -> str:
    try:
        if face == ASYNCIO:
            asyncio.run(_try(broker, attempt))
        else:
            _try_blocking(broker, attempt)
    except BrokerReplyError as error:
        return f"{error.code} {error.remark}"
    return OK


async def _try(broker: GuardedBroker, attempt: Attempt) -> None:
    client = broker.client_config(attempt.account)
    match attempt.operation:
        case "send" | "batch":
            config = ProducerConfig(client=client, retries=0)
            async with aio.Producer("own-producers", config=config) as producer:
                if attempt.operation == "send":
                    await producer.send(_message(attempt), timeout=_CALL_SECONDS)
                else:
                    await producer.send_batch([_message(attempt)] * 2, timeout=_CALL_SECONDS)
        case "consume":
            inbox: list[ReceivedMessage] = []
            async with aio.PushConsumer(
                attempt.group, listener=inbox.append, config=_from_first(client)
            ) as consumer:
                consumer.subscribe(attempt.topic)
                # One message has to be new: the group may have been at the end already.
                await _try(broker, replace(attempt, operation="send"))
                await eventually(lambda: inbox, _CONSUMED)
        case _:
            async with aio.PullConsumer(
                attempt.group, config=PullConsumerConfig(client=client)
            ) as puller:
                match attempt.operation:
                    case "pull":
                        await puller.pull(_queue(attempt), 0)
                    case "max-offset":
                        await puller.max_offset(_queue(attempt))
                    case "position":
                        await puller.committed(_queue(attempt))


def _try_blocking(broker: GuardedBroker, attempt: Attempt) -> None:
    client = broker.client_config(attempt.account)
    match attempt.operation:
        case "send" | "batch":
            config = ProducerConfig(client=client, retries=0)
            with sync.Producer("own-producers", config=config) as producer:
                if attempt.operation == "send":
                    producer.send(_message(attempt), timeout=_CALL_SECONDS)
                else:
                    producer.send_batch([_message(attempt)] * 2, timeout=_CALL_SECONDS)
        case "consume":
            inbox: list[ReceivedMessage] = []
            with sync.PushConsumer(
                attempt.group, listener=inbox.append, config=_from_first(client)
            ) as consumer:
                consumer.subscribe(attempt.topic)
                _try_blocking(broker, replace(attempt, operation="send"))
                wait_until(lambda: inbox, _CONSUMED)
        case _:
            with sync.PullConsumer(
                attempt.group, config=PullConsumerConfig(client=client)
            ) as puller:
                match attempt.operation:
                    case "pull":
                        puller.pull(_queue(attempt), 0)
                    case "max-offset":
                        puller.max_offset(_queue(attempt))
                    case "position":
                        puller.committed(_queue(attempt))


def _from_first(client: ClientConfig) -> PushConsumerConfig:
    """To find the last one, a consumer needs the permission Get at RocketMQ 5."""
    return PushConsumerConfig(client=client, consume_from_where="CONSUME_FROM_FIRST_OFFSET")


def _queue(attempt: Attempt) -> MessageQueue:
    return MessageQueue(BROKER_NAME, 0, attempt.topic)


def _message(attempt: Attempt) -> Message:
    return Message(
        topic=attempt.topic,
        body=bytes(range(256)) * 100,
        keys=["a", "b"],
        properties={"schlüssel": "值😀"},
    )
