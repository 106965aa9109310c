"""A reset of a group with a member online, as the broker does it: who hears of it, queues that no member holds, and
groups that pop."""

from __future__ import annotations

from typing import Any

import pytest
from tests.eventually import eventually

from cometmq.client.aio.push.push_consumer import PushConsumer
from cometmq.client.aio.send.producer import Producer
from cometmq.client.consumer_config import PushConsumerConfig
from cometmq.client.helpers.skip_backlog import GroupIsOffline, jump_running
from cometmq.model.messages.message import Message
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.protocol import fastjson
from cometmq.testing.cluster import cluster

from .test_pop import GROUP, TOPIC, Popper

QUEUE_COUNT = 4
FLUSHED_SOON = {"flushCommitLogThoroughInterval": "100"}
"""A pop's position counts when the log is flushed up to it; few bytes wait ten seconds for that otherwise."""


async def join(client: Popper) -> None:
    """Be a member that does nothing about a reset by itself, as one that pops."""
    consumer = {
        "groupName": GROUP,
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
        "subscriptionDataSet": [{"topic": TOPIC, "subString": "*", "subVersion": 1}],
    }
    beat = {"clientID": "c1", "producerDataSet": [], "consumerDataSet": [consumer]}
    assert (await client.ask(34, None, beat)).code == 0


async def reset(client: Popper, timestamp_ms: int) -> Any:
    ext = {"topic": TOPIC, "group": GROUP, "timestamp": str(timestamp_ms), "isForce": "true"}
    reply = await client.ask(222, ext)
    assert reply.code == 0, reply.remark
    return fastjson.loads(bytes(reply.body))["offsetTable"]


async def positions(client: Popper) -> list[str]:
    found = []
    for queue_id in range(QUEUE_COUNT):
        queue = {"consumerGroup": GROUP, "topic": TOPIC, "queueId": str(queue_id)}
        reply = await client.ask(14, queue)
        found.append((reply.ext or {}).get("offset", "none"))
    return found


async def test_whoever_takes_a_queue_next_finds_the_new_position() -> None:
    async with cluster() as servers, Popper(servers.broker_address) as client:
        await client.send(TOPIC, b"1")
        for queue_id in range(QUEUE_COUNT):
            queue = {"consumerGroup": GROUP, "topic": TOPIC, "queueId": str(queue_id)}
            await client.ask(15, {**queue, "commitOffset": "1" if queue_id == 0 else "0"})
        await join(client)
        table = await reset(client, 0)
        assert sorted(table.values()) == [0] * QUEUE_COUNT
        assert await positions(client) == ["0"] * QUEUE_COUNT
        await reset(client, -1)
        assert await positions(client) == ["1", "0", "0", "0"]


@pytest.mark.parametrize("is_server_side", ["true", "false"])
async def test_a_consumer_that_waits_goes_back_at_once(is_server_side: str) -> None:
    """Well before the fifteen seconds are over that its pulls may wait."""
    came: list[bytes] = []

    async def listener(message: ReceivedMessage) -> None:
        came.append(message.body)

    async def all_came() -> bool | None:
        return True if sorted(came) == [b"%d" % number for number in range(8)] else None

    settings = {"useServerSideResetOffset": is_server_side}
    config = PushConsumerConfig(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    async with cluster(settings=settings) as servers:
        where = servers.name_servers
        async with Producer("senders", name_servers=where) as producer:
            for number in range(8):
                await producer.send(Message(topic=TOPIC, body=b"%d" % number))
        consumer = PushConsumer(GROUP, listener=listener, name_servers=where, config=config)
        consumer.subscribe(TOPIC)
        async with consumer:
            await eventually(all_came, "all messages")
            for _ in range(2):
                came.clear()
                await jump_running(GROUP, TOPIC, to_time_ms=0, name_servers=where)
                await eventually(all_came, "all messages again")
        with pytest.raises(GroupIsOffline, match="no consumer of group"):
            await jump_running(GROUP, TOPIC, name_servers=where)


async def test_a_group_that_pops_goes_back() -> None:
    async with (
        cluster(settings=FLUSHED_SOON) as servers,
        Popper(servers.broker_address) as client,
    ):
        for number in range(10):
            await client.send(TOPIC, b"%d" % number)
        for record, handle in await client.take():
            assert (await client.ack(record, handle)).code == 0

        async def popped() -> bool | None:
            return True if "10" in await positions(client) else None

        await eventually(popped, "the positions of what was popped")
        # Queues without a message have no position, and without one a broker resets nothing.
        for queue_id in range(1, QUEUE_COUNT):
            queue = {"consumerGroup": GROUP, "topic": TOPIC, "queueId": str(queue_id)}
            await client.ask(15, {**queue, "commitOffset": "0"})
        await join(client)
        assert await client.take() == []
        await reset(client, 0)
        again = await client.take()
        assert sorted(int(record.body) for record, _ in again) == list(range(10))
