"""What servers do for order: queue locks that expire, and topics whose queues a configuration fixes."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from dataclasses import replace

from tests.eventually import eventually

from cometmq.client import Message, PushConsumerConfig, ReceivedMessage
from cometmq.client.aio import Producer, PushConsumer
from cometmq.protocol import fastjson
from cometmq.testing.cluster import Cluster, cluster

from .raw_client import RawClient

GROUP = "Steps"
TOPIC = "OrderSteps"
BROKER = "standalone"
HOLD_SECONDS = 2.0
SETTINGS = {"rocketmq.broker.rebalance.lockMaxLiveTime": str(int(HOLD_SECONDS * 1000))}
CONFIG = replace(
    PushConsumerConfig(),
    consume_from_where="CONSUME_FROM_FIRST_OFFSET",
    rebalance_interval_ms=1000,
    lock_interval_ms=300,
)


async def lock(client: RawClient, client_id: str) -> int:
    """How many of the topic's two queues the client has now."""
    queues = [{"brokerName": BROKER, "queueId": queue_id, "topic": TOPIC} for queue_id in range(2)]
    body = {"consumerGroup": GROUP, "clientId": client_id, "mqSet": queues}
    reply = await client.ask(41, None, body)
    return len(fastjson.loads(bytes(reply.body))["lockOKMQSet"])


def consumer(servers: Cluster, taken: list[ReceivedMessage]) -> PushConsumer:
    async def listener(message: ReceivedMessage) -> None:
        taken.append(message)

    made = PushConsumer(
        GROUP, listener=listener, orderly=True, name_servers=servers.name_servers, config=CONFIG
    )
    made.subscribe(TOPIC)
    return made


async def test_a_lock_that_nobody_renews_passes_on_and_one_that_is_renewed_does_not() -> None:
    async with cluster(settings=SETTINGS) as servers, RawClient(servers.broker_address) as raw:
        await raw.create_topic(TOPIC, 2)
        async with Producer("shop", name_servers=servers.name_servers) as producer:
            for number in range(8):
                await producer.send(Message(topic=TOPIC, body=b"%d" % number))
        # A consumer that died without a word.
        assert await lock(raw, "dead") == 2
        locked_at = time.monotonic()
        taken: list[ReceivedMessage] = []
        async with consumer(servers, taken):

            async def all_taken() -> bool | None:
                if taken:
                    assert time.monotonic() - locked_at >= HOLD_SECONDS
                return True if len(taken) == 8 else None

            await eventually(all_taken, "the messages of a lock that expired", 30)
            # The living one keeps its queues for longer than a lock holds by itself.
            until = time.monotonic() + 2 * HOLD_SECONDS
            while time.monotonic() < until:
                assert await lock(raw, "other") == 0
                await asyncio.sleep(0.1)
        assert await lock(raw, "other") == 2


async def test_an_order_configuration_fixes_the_queues_of_a_topic() -> None:
    async with (
        cluster() as servers,
        RawClient(servers.broker_address) as raw,
        RawClient(servers.name_servers) as name_server,
    ):
        await raw.create_topic(TOPIC, 4)
        assert (await name_server.ask(318, None, b"orderMessageEnable=true")).code == 0
        entry = {"namespace": "ORDER_TOPIC_CONFIG", "key": TOPIC, "value": f"{BROKER}:2"}
        assert (await name_server.ask(100, entry)).code == 0

        used: dict[str, set[int]] = defaultdict(set)
        async with Producer("shop", name_servers=servers.name_servers) as producer:
            for step in range(5):
                for order in range(12):
                    body = f"{order}:{step}".encode()
                    sent = await producer.send(
                        Message(topic=TOPIC, body=body), sharding_key=str(order)
                    )
                    used[str(order)].add(sent.queue.queue_id)
        assert all(len(queues) == 1 for queues in used.values())
        assert set.union(*used.values()) == {0, 1}

        taken: list[ReceivedMessage] = []
        async with consumer(servers, taken):

            async def all_taken() -> bool | None:
                return True if len(taken) == 60 else None

            await eventually(all_taken, "all steps", 30)
        steps: dict[str, list[str]] = defaultdict(list)
        for message in taken:
            key, _, done = message.body.decode().partition(":")
            steps[key].append(done)
        assert set(map(tuple, steps.values())) == {tuple("01234")}


async def test_a_broker_that_takes_no_writes_refuses_order_topics_alone() -> None:
    """Other messages may go elsewhere, and those under way to it are taken; ordered ones have nowhere else to go."""
    async with (
        cluster() as servers,
        RawClient(servers.broker_address) as raw,
        RawClient(servers.name_servers) as name_server,
    ):
        entry = {"namespace": "ORDER_TOPIC_CONFIG", "key": TOPIC, "value": f"{BROKER}:2"}
        assert (await name_server.ask(100, entry)).code == 0
        # Each registration tells the broker which topics are in order; a new topic is one.
        await raw.create_topic(TOPIC, 4)
        await raw.create_topic("Plain", 4)

        async def ordered() -> bool | None:
            config = fastjson.loads(bytes((await raw.ask(351, {"topic": TOPIC})).body))
            return True if config["order"] else None

        await eventually(ordered, "the broker's order topic")
        config = fastjson.loads(bytes((await raw.ask(351, {"topic": "Plain"})).body))
        assert not config["order"]
        assert (await raw.ask(25, None, b"brokerPermission=4")).code == 0
        assert (await raw.send(TOPIC, b"x")).code == 16
        assert (await raw.send("Plain", b"x")).code == 0
