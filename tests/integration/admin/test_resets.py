"""Resets at brokers that push them to clients, as RocketMQ 4 does (``useServerSideResetOffset=false``)."""

from __future__ import annotations

from cometmq.admin import Admin, ResetPoint, new_group, new_topic
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
