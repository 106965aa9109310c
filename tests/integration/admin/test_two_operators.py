"""Two operators at once: both are told what became of it, and the cluster is as one of them said."""

from __future__ import annotations

import asyncio

import pytest

from cometmq.admin import Admin, Definitions, NoSuchTopic, ResetPoint, new_group, new_topic
from cometmq.client import Message
from cometmq.testing import cluster

QUEUES = 4
MESSAGES = 40


async def test_both_import_definitions() -> None:
    async with (
        cluster(masters=2) as servers,
        Admin(servers.name_servers) as one,
        Admin(servers.name_servers) as other,
    ):
        for admin, queues in ((one, 2), (other, 3)):
            topics = [
                new_topic(f"topic-{n}", read_queues=queues, write_queues=queues) for n in range(20)
            ]
            (await admin.topics.create_many(topics)).raise_failed()
        twos = Definitions.parse(
            (await one.definitions.read()).text().replace('QueueNums": 3', 'QueueNums": 2')
        )
        threes = Definitions.parse(
            (await one.definitions.read()).text().replace('QueueNums": 2', 'QueueNums": 3')
        )
        results = await asyncio.gather(one.definitions.write(twos), other.definitions.write(threes))
        assert all(result.is_complete for result in results)
        for row in await one.topics.rows():
            if row.name.startswith("topic-"):
                sizes = {(c.read_queue_nums, c.write_queue_nums) for c in row.by_broker.values()}
                assert sizes <= {(2, 2), (3, 3)}
        # Whoever repeats it has the last word.
        await other.definitions.write(threes)
        assert not (await other.definitions.plan(threes)).rows


async def test_both_reset_a_group_and_then_delete_its_topic() -> None:
    async with (
        cluster() as servers,
        Admin(servers.name_servers) as one,
        Admin(servers.name_servers) as other,
    ):
        await one.topics.create(new_topic("orders", read_queues=QUEUES, write_queues=QUEUES))
        await one.groups.create(new_group("billing"))
        for number in range(MESSAGES):
            await one.messages.send(Message(topic="orders", body=b"%d" % number))
        first, last = await asyncio.gather(
            one.offsets.reset("billing", "orders", ResetPoint.beginning()),
            other.offsets.reset("billing", "orders", ResetPoint.end()),
        )
        assert first.is_complete
        assert last.is_complete
        for row in (await one.groups.progress("billing", ["orders"])).queues:
            assert row.consumer_offset in (first.offsets[row.queue], last.offsets[row.queue])
        deleted = await asyncio.gather(
            one.topics.delete("orders"), other.topics.delete("orders"), return_exceptions=True
        )
        for result in deleted:
            if isinstance(result, BaseException):
                assert isinstance(result, NoSuchTopic)
            else:
                assert result.is_complete
        assert "orders" not in await one.topics.names()
        with pytest.raises(NoSuchTopic, match="'orders'"):
            await other.topics.delete("orders")
