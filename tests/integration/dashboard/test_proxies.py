"""Members that only a proxy knows. A broker of another cluster stands in for it: both answer the same request."""

from __future__ import annotations

from typing import Any

from tests.eventually import eventually
from tests.integration.dashboard.visitor import dashboard

from cometmq.admin import Admin, new_topic
from cometmq.client import ReceivedMessage
from cometmq.client.aio import PushConsumer
from cometmq.testing import cluster


async def ignore(received: ReceivedMessage) -> None:
    pass


async def test_members_behind_a_proxy_are_listed() -> None:
    async with (
        cluster() as servers,
        cluster() as behind,
        dashboard(servers.name_servers, proxies=behind.broker_address) as (_, visitor),
        Admin(behind.name_servers) as admin,
        PushConsumer("crew", listener=ignore, name_servers=behind.name_servers) as consumer,
    ):
        await admin.topics.create(new_topic("Orders", read_queues=1, write_queues=1))
        await visitor.do("create_topic", name="Orders", read_queues=1, write_queues=1)
        await visitor.do("create_group", name="crew")
        reset = {"topic": "Orders", "to": "beginning", "confirm": "crew"}
        await visitor.do("reset", {"group": "crew"}, **reset)
        consumer.subscribe("Orders")

        async def listed() -> Any:
            group = await visitor.get("group", {"group": "crew"})
            [row] = (await visitor.get("groups", q="crew"))["rows"]
            return group if group["online"] and row["members"] == 1 else None

        group = await eventually(listed, "the member is listed")
        assert len(group["members"]) == 1
        assert group["incomplete"] == []


async def test_a_proxy_that_does_not_answer_is_named() -> None:
    async with (
        cluster() as servers,
        dashboard(servers.name_servers, proxies="127.0.0.1:1") as (
            _,
            visitor,
        ),
    ):
        await visitor.do("create_topic", name="Orders", read_queues=1, write_queues=1)
        await visitor.do("create_group", name="crew")
        reset = {"topic": "Orders", "to": "beginning", "confirm": "crew"}
        await visitor.do("reset", {"group": "crew"}, **reset)
        group = await visitor.get("group", {"group": "crew"})
        assert [gap["server"] for gap in group["incomplete"]] == ["127.0.0.1:1"]
