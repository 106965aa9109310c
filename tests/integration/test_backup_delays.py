"""A restore to a time: what waited then is delivered, and what had been delivered is not delivered again."""

from __future__ import annotations

import dataclasses
from contextlib import closing
from pathlib import Path

from tests.eventually import eventually

from cometmq.base.clock import SystemClock
from cometmq.base.disk import SystemFiles
from cometmq.broker.server import Broker
from cometmq.client import Message
from cometmq.client.aio import Producer, PullConsumer
from cometmq.model.names import SCHEDULE_TOPIC, TIMER_TOPIC
from cometmq.store.backup.backups import Backups
from cometmq.store.backup.create import create
from cometmq.store.backup.restore import restore
from cometmq.store.backup.source import Source
from cometmq.testing import cluster
from cometmq.testing.cluster import Cluster

LEVEL, DELAY_MS = 1, 1500
SETTINGS = {
    "mappedFileSizeCommitLog": str(1 << 20),
    "mappedFileSizeConsumeQueue": "20000",
    "maxHashSlotNum": "100",
    "maxIndexNum": "400",
}


async def bodies(servers: Cluster, topic: str) -> list[bytes]:
    found: list[bytes] = []
    async with PullConsumer("readers", name_servers=servers.name_servers) as consumer:
        for queue in await consumer.queues(topic):
            result = await consumer.pull(queue, 0, count_max=100)
            found += [message.body for message in result.messages]
    return sorted(found)


def delivered(broker: Broker, topic: str) -> int:
    store = broker.core.store
    return sum(store.max_offset(topic, queue) for queue in store.queue_ids(topic))


async def test_what_waited_is_delivered_once(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with cluster(settings=SETTINGS, data_directory=str(data)) as servers:
        [broker] = servers.brokers
        async with Producer("senders", name_servers=servers.name_servers) as producer:
            await producer.send(Message(topic="Later", body=b"level 1", delay_level=LEVEL))
            await producer.send(Message(topic="Timed", body=b"time 1", delay_ms=DELAY_MS))
            await eventually(lambda: delivered(broker, "Later") + delivered(broker, "Timed") == 2)
            await producer.send(Message(topic="Later", body=b"level 2", delay_level=LEVEL))
            await producer.send(Message(topic="Timed", body=b"time 2", delay_ms=DELAY_MS))
            waiting = [(SCHEDULE_TOPIC, LEVEL - 1), (TIMER_TOPIC, 0)]
            at_ms = max(broker.core.store.store_time(*queue, 1) for queue in waiting)
            await eventually(lambda: delivered(broker, "Later") + delivered(broker, "Timed") == 4)
        files, config = SystemFiles(), broker.live.current.store
        backups = Backups(str(tmp_path / "backups"), files)
        with closing(Source(config.root, config.log_path, files)) as source:
            create(source, backups, SystemClock(), pause=lambda: None, tell=no_tell)

    again = tmp_path / "again"
    target = dataclasses.replace(config, root=str(again / Path(config.root).name))
    restore(
        backups,
        target,
        SystemClock(),
        name=None,
        at_ms=at_ms,
        accept_damage=False,
        tell=no_tell,
    )
    async with cluster(settings=SETTINGS, data_directory=str(again)) as servers:
        [broker] = servers.brokers
        await eventually(lambda: delivered(broker, "Later") + delivered(broker, "Timed") == 4)
        assert await bodies(servers, "Later") == [b"level 1", b"level 2"]
        assert await bodies(servers, "Timed") == [b"time 1", b"time 2"]


def no_tell(what: str, done: int, total: int) -> None:
    pass
