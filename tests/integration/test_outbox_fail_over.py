"""An outbox goes on when the master is replaced: in order, and doubles can be told by their message id."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.eventually import eventually
from tests.integration.test_switch_over import stored

from cometmq.client import Message
from cometmq.client.aio import Producer, PullConsumer
from cometmq.client.helpers.outbox import Outbox, OutboxSettings
from cometmq.testing import Cluster, cluster

COUNT = 60
SOON = OutboxSettings(poll_seconds=0.05, pause_seconds=0.05, pause_seconds_max=0.2)


async def numbers_by_id(servers: Cluster) -> list[bytes]:
    """The bodies, each message id once."""
    found: dict[str, bytes] = {}
    async with PullConsumer("readers", name_servers=servers.name_servers) as consumer:
        for queue in await consumer.queues("T"):
            result = await consumer.pull(queue, 0, count_max=1000)
            found |= {str(message.message_id): message.body for message in result.messages}
    return sorted(found.values(), key=int)


@pytest.mark.parametrize("is_planned", [True, False])
async def test_everything_comes_once(tmp_path: Path, is_planned: bool) -> None:
    async with (
        cluster(slaves=1, controller=True) as servers,
        Producer("p", name_servers=servers.name_servers) as producer,
        Outbox(producer, lambda: sqlite3.connect(tmp_path / "outbox.db"), settings=SOON) as outbox,
    ):
        for number in range(COUNT):
            await outbox.send(Message(topic="T", body=b"%d" % number))
            if number != COUNT // 2:
                continue
            if is_planned:
                await servers.promote(servers.slaves[0])
            else:
                await servers.kill(servers.masters[0])

        async def is_empty() -> bool:
            return await outbox.count() == 0

        await eventually(is_empty, seconds=30)
        wanted = [b"%d" % number for number in range(COUNT)]
        if is_planned:
            assert sorted(stored(servers.masters[0], "T"), key=int) == wanted
        assert await numbers_by_id(servers) == wanted
