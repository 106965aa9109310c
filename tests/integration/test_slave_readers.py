"""Consumers go on at the slave when their master is lost, and go back when it returns. Nothing is skipped."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path

import pytest
from tests.eventually import eventually
from tests.integration.client.consuming import FROM_FIRST, Taken, config, numbered
from tests.integration.replica_group import QUEUES, TOPIC, ReplicaGroup, replica_group

from cometmq.broker.server import Broker
from cometmq.client.aio.bulk.bulk_client import BulkClient
from cometmq.client.aio.pull.lite_pull_consumer import LitePullConsumer
from cometmq.client.aio.pull.pull_consumer import PullConsumer
from cometmq.client.aio.push.push_consumer import PushConsumer
from cometmq.client.aio.send.producer import Producer
from cometmq.client.client_config import ClientConfig
from cometmq.client.errors import NoRoute
from cometmq.client.lite_pull_config import LitePullConfig
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message

FAIL_OVER_SECONDS = 30.0
GROUP = "readers"


async def send(group: ReplicaGroup, bodies: list[bytes]) -> None:
    async with Producer("sender", name_servers=group.name_server) as producer:
        for body in bodies:
            await producer.send(Message(topic=TOPIC, body=body))
    await group.copied()


def positions(broker: Broker) -> int:
    offsets = broker.core.offsets
    return sum(offsets.query(GROUP, TOPIC, queue_id) for queue_id in range(QUEUES))


async def is_back(group: ReplicaGroup) -> None:
    """All queues are read from the master again."""
    held = group.master.rooms.pull.long_polling
    queues = range(QUEUES)
    await eventually(lambda: all(held.is_waiting_for([TOPIC], [queue_id]) for queue_id in queues))


@pytest.mark.parametrize("orderly", [False, True])
async def test_a_push_consumer(tmp_path: Path, orderly: bool) -> None:
    async with replica_group(tmp_path) as group:
        taken = Taken()
        consumer = PushConsumer(
            GROUP,
            name_servers=group.name_server,
            listener=taken.listener,
            orderly=orderly,
            config=config(),
        )
        consumer.subscribe(TOPIC)
        async with consumer:
            await send(group, numbered(20))
            await eventually(lambda: len(taken.messages) >= 20, lambda: str(taken.counts()))
            await eventually(lambda: positions(group.master) == 20, "committed")

            await group.kill_master()
            group.put(numbered(20, start=20))
            await eventually(lambda: len(taken.messages) >= 40, lambda: str(taken.counts()))
            await eventually(lambda: positions(group.slave) == 40, "committed at the slave")

            await group.bring_master_back()
            await is_back(group)
            await send(group, numbered(20, start=40))
            await eventually(lambda: len(taken.messages) >= 60, lambda: str(taken.counts()))
        assert sorted(map(int, taken.counts())) == list(range(60))
        assert set(taken.counts().values()) == {1}, "a loss of the master repeats nothing"


async def test_a_lite_pull_consumer_of_a_slave_that_does_not_look_for_its_master(
    tmp_path: Path,
) -> None:
    async with replica_group(tmp_path, watch_ms=None) as group:
        settings = LitePullConfig(consume_from_where=FROM_FIRST)
        consumer = LitePullConsumer(GROUP, name_servers=group.name_server, config=settings)
        consumer.subscribe(TOPIC)
        seen: list[int] = []

        async def poll_until(count: int) -> None:
            async with asyncio.timeout(20):
                while len(seen) < count:
                    seen.extend(int(one.body) for one in await consumer.poll(1.0))

        async with consumer:
            await send(group, numbered(20))
            await poll_until(20)
            await group.kill_master()
            group.put(numbered(20, start=20))
            await poll_until(40)
            await consumer.commit()
            assert positions(group.slave) == 40
            await group.bring_master_back()
            await is_back(group)
            await send(group, numbered(20, start=40))
            await poll_until(60)
        assert sorted(seen) == list(range(60))


async def test_a_pull_consumer(tmp_path: Path) -> None:
    async with replica_group(tmp_path) as group:
        await send(group, numbered(20))
        async with PullConsumer(GROUP, name_servers=group.name_server) as consumer:
            queue = MessageQueue(broker_name="b", queue_id=0, topic=TOPIC)
            first = await consumer.pull(queue, 0)
            assert first.messages
            await group.kill_master()
            group.put(numbered(20, start=20))
            again = await consumer.pull(queue, first.next_offset)
            assert [int(one.body) for one in again.messages] == list(range(20, 40, 2))
            await consumer.commit(queue, again.next_offset)
            assert await consumer.committed(queue) == again.next_offset
            assert group.slave.core.offsets.query(GROUP, TOPIC, 0) == again.next_offset
            ahead = await consumer.pull(queue, again.next_offset + 5)
            assert ahead.next_offset == again.next_offset + 5, "an offset is not corrected"


async def test_the_client_that_spark_reads_with(tmp_path: Path) -> None:
    async with replica_group(tmp_path) as group:
        await send(group, numbered(20))
        client = BulkClient(ClientConfig(name_servers=group.name_server))
        try:
            queues = await client.queues(TOPIC)
            bounds, failures = await client.bounds(queues)
            assert not failures
            assert all(one.is_master for one in bounds.values())
            await group.kill_master()
            again, failures = await client.bounds(queues)
            assert not failures
            assert again == {
                queue: dataclasses.replace(one, is_master=False) for queue, one in bounds.items()
            }
        finally:
            await client.close()


async def test_a_consumer_that_starts_while_there_is_no_master(tmp_path: Path) -> None:
    async with replica_group(tmp_path) as group:
        await send(group, numbered(20))
        group.slave.core.offsets.commit(GROUP, TOPIC, 0, 3)
        await group.kill_master()
        taken = Taken()
        consumer = PushConsumer(
            GROUP, name_servers=group.name_server, listener=taken.listener, config=config()
        )
        consumer.subscribe(TOPIC)
        async with consumer:
            await eventually(lambda: len(taken.messages) >= 17, lambda: str(taken.counts()))
        assert {one.queue_offset for one in taken.messages if one.queue_id == 0} == set(
            range(3, 10)
        )


async def test_a_slave_that_stands_in_for_its_master(tmp_path: Path) -> None:
    async with replica_group(tmp_path) as group:
        assert not group.acting.is_acting
        await eventually(lambda: group.slave.core.master.is_there)
        await group.kill_master()
        await eventually(lambda: group.acting.is_acting, seconds=FAIL_OVER_SECONDS)
        assert not group.slave.core.master.is_there
        async with Producer("sender", name_servers=group.name_server) as producer:
            with pytest.raises(NoRoute):
                await producer.send(Message(topic=TOPIC, body=b"x"))
        await group.bring_master_back()
        await eventually(lambda: group.slave.core.master.is_there, seconds=FAIL_OVER_SECONDS)
        await eventually(lambda: not group.acting.is_acting)


async def test_a_name_server_tells_the_slave_at_once(tmp_path: Path) -> None:
    async with replica_group(
        tmp_path, watch_ms=3_600_000, notifyMinBrokerIdChanged="true"
    ) as group:
        await eventually(lambda: group.slave.core.master.is_there)
        await group.kill_master()
        await eventually(lambda: group.acting.is_acting, seconds=FAIL_OVER_SECONDS)
        await group.bring_master_back()
        await eventually(lambda: group.slave.core.master.is_there, seconds=FAIL_OVER_SECONDS)
