"""A slave's tables follow a real master's over real connections, however large they are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.eventually import eventually
from tests.integration.servers import running_broker

from cometmq.broker.replication.metadata_sync import MetadataSync
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.topic import TopicConfig
from cometmq.remoting.client import RemotingClient
from cometmq.store.log.new_messages import NewMessage
from cometmq.testing.memory_broker import MemoryBroker

TOPICS = 4500
"""More than two pages."""


@asynccontextmanager
async def running_slave() -> AsyncIterator[tuple[MemoryBroker, MetadataSync]]:
    slave = MemoryBroker({"brokerRole": "SLAVE", "brokerId": "1"}, is_master=False)
    client = RemotingClient()
    sync = MetadataSync(
        core=slave.core,
        delays=slave.rooms.schedule,
        timers=slave.rooms.timer.timed,
        sinks=slave.rooms.sink.keeper,
        client=client,
        period_seconds=0.05,
    )
    sync.start()
    try:
        yield slave, sync
    finally:
        await sync.stop()
        await client.close()


async def test_a_slave_follows_the_tables_of_its_master(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker, running_slave() as (slave, sync):
        master, copy = broker.core, slave.core
        master.topics.put_many(TopicConfig(topic_name=f"T{number}") for number in range(TOPICS))
        for number in range(TOPICS):
            master.offsets.commit("G", f"T{number}", 0, number)
        sync.follow(broker.address)
        await eventually(lambda: copy.topics.version == master.topics.version)
        await eventually(lambda: copy.offsets.query("G", f"T{TOPICS - 1}", 0) == TOPICS - 1)
        assert copy.topics.all() == master.topics.all()
        master.topics.remove("T7")
        master.groups.put(SubscriptionGroupConfig(group_name="new"))
        master.offsets.commit("G", "T8", 0, 100)
        await eventually(lambda: "T7" not in copy.topics and "new" in copy.groups)
        await eventually(lambda: copy.offsets.query("G", "T8", 0) == 100)


async def test_commits_at_the_slave_reach_a_master_that_comes_back(tmp_path: Path) -> None:
    async with running_slave() as (slave, sync):
        async with running_broker(tmp_path) as broker:
            broker.core.topics.put(TopicConfig(topic_name="T"))
            for _ in range(10):
                broker.core.store.put(NewMessage(topic="T", queue_id=0, body=b"x", properties=b""))
            broker.core.offsets.commit("G", "T", 0, 5)
            sync.follow(broker.address)
            await eventually(lambda: slave.core.offsets.query("G", "T", 0) == 5)
        slave.core.offsets.commit("G", "T", 0, 9)
        async with running_broker(tmp_path) as broker:
            assert broker.core.offsets.query("G", "T", 0) == 5
            sync.follow(broker.address)
            await eventually(lambda: broker.core.offsets.query("G", "T", 0) == 9)
            await eventually(lambda: sync.stray_count == 0)
            assert slave.core.offsets.query("G", "T", 0) == 9
