"""Resets at brokers that push them to clients, as RocketMQ 4 does (``useServerSideResetOffset=false``)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cometmq.admin import Admin, ResetPoint, new_group, new_topic
from cometmq.protocol.codes import RequestCode
from cometmq.testing import cluster


async def test_positions_of_a_group_that_is_offline_are_committed_instead() -> None:
    settings = {"useServerSideResetOffset": "false"}
    async with cluster(settings=settings) as servers, Admin(servers.name_servers) as admin:
        await admin.topics.create(new_topic("orders", read_queues=2, write_queues=2))
        await admin.groups.create(new_group("billing"))
        queues = [row.queue for row in (await admin.topics.status("orders")).queues]
        await admin.offsets.commit("billing", dict.fromkeys(queues, 3))

        done = await admin.offsets.reset("billing", "orders", ResetPoint.beginning())
        assert (done.is_complete, dict(done.offsets)) == (True, dict.fromkeys(queues, 0))
        await admin.offsets.commit("billing", dict.fromkeys(queues, 3))
        done = await admin.offsets.reset("billing", "orders", ResetPoint.at(1, 0))
        assert (done.is_complete, dict(done.offsets)) == (True, {queues[1]: 0})
        progress = await admin.groups.progress("billing", ["orders"])
        assert [row.consumer_offset for row in progress.queues] == [3, 0]


async def test_commits_to_one_broker_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """RocketMQ may lose one of two simultaneous commits of a group that is new in a topic."""
    async with cluster() as servers, Admin(servers.name_servers) as admin:
        await admin.topics.create(new_topic("orders", read_queues=8, write_queues=8))
        await admin.groups.create(new_group("billing"))
        queues = [row.queue for row in (await admin.topics.status("orders")).queues]
        calls = admin._rooms.calls
        really_ask, under_way, most = calls.ask, 0, 0

        async def ask(address: str, code: RequestCode, *args: Any, **named: Any) -> Any:
            nonlocal under_way, most
            if code != RequestCode.UPDATE_CONSUMER_OFFSET:
                return await really_ask(address, code, *args, **named)
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0)
            try:
                return await really_ask(address, code, *args, **named)
            finally:
                under_way -= 1

        monkeypatch.setattr(calls, "ask", ask)
        done = await admin.offsets.commit("billing", dict.fromkeys(queues, 3))
        assert (len(done.offsets), done.is_complete, most) == (8, True, 1)
