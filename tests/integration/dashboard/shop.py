"""The small cluster of the examples: orders, a group that consumes some, and a dead letter."""

from __future__ import annotations

import asyncio
import dataclasses

from tests.eventually import eventually

from cometmq.admin import Admin, new_group, new_topic
from cometmq.client import (
    ClientConfig,
    Message,
    Outcome,
    ProducerConfig,
    PushConsumerConfig,
    ReceivedMessage,
)
from cometmq.client.aio import Producer, PushConsumer
from cometmq.client.errors import NoRoute

ORDERS = 20


async def open_shop(name_servers: str, client: ClientConfig | None = None) -> str:
    """Returns the unique id of order 17."""
    client = client or ClientConfig()
    async with Admin(name_servers, config=client) as admin:
        await admin.topics.create(new_topic("Orders", read_queues=4, write_queues=4))
        await admin.groups.create(new_group("billing"))
        await eventually(lambda: _is_known(admin, "Orders"), "the topic is known")
        config = ProducerConfig(client=client)
        async with Producer("shop", name_servers=name_servers, config=config) as producer:
            sent = {
                number: await producer.send(
                    Message(
                        topic="Orders",
                        body=b'{"order": %d, "card": "4711", "customer": "ada"}' % number,
                        tags="paid",
                        keys=[f"order-{number}"],
                    )
                )
                for number in range(17, 17 + ORDERS)
            }
        await _consume(name_servers, client)
        await eventually(lambda: _has_letter(admin), "the dead letter is there")
    return sent[17].message_id


async def _consume(name_servers: str, client: ClientConfig) -> None:
    seen = asyncio.Event()
    keys: set[str] = set()

    async def bill(message: ReceivedMessage) -> Outcome:
        keys.update(message.keys)
        if len(keys) == ORDERS:
            seen.set()
        return Outcome.to_dlq() if "order-17" in message.keys else Outcome.consumed

    config = PushConsumerConfig(
        consume_from_where="CONSUME_FROM_FIRST_OFFSET",
        client=dataclasses.replace(client, persist_offsets_millis=50),
    )
    async with PushConsumer(
        "billing", listener=bill, name_servers=name_servers, config=config
    ) as consumer:
        consumer.subscribe("Orders")
        await asyncio.wait_for(seen.wait(), 60)


async def _is_known(admin: Admin, topic: str) -> bool:
    try:
        return bool((await admin.topics.route(topic)).queue_datas)
    except NoRoute:
        return False


async def _has_letter(admin: Admin) -> bool:
    return await admin.dead_letters.count("billing") > 0
