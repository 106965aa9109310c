"""What an operator does with the dashboard, step by step, on any cluster that has the small shop of the examples.

Ours in test_pages, RocketMQ's in tests/interop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.eventually import eventually
from tests.integration.dashboard.shop import ORDERS
from tests.integration.dashboard.visitor import Visitor, dashboard

from cometmq.admin.pipeline_report import NAMESPACE, PipelineReport
from cometmq.client import ClientConfig, Message, PushConsumerConfig, ReceivedMessage
from cometmq.client.aio import Producer, PushConsumer


@dataclass(frozen=True)
class Shop:
    """Where it is."""

    name_servers: str


async def from_an_order_number_to_its_dead_letter_and_back(shop: Shop) -> None:
    """The way of a support case: no topic is known, only the order's number."""
    async with dashboard(shop.name_servers) as (_, visitor):
        await knows(visitor, "Orders")
        found = await visitor.get("messages", key="order-17")
        [row] = [one for one in found["rows"] if one["topic"] == "Orders"]
        message = await visitor.get("message", {"id": row["message_id"]}, topic="Orders")
        assert message["body"]["format"] == "json"
        assert '"order": 17' in message["body"]["text"]
        steps = (await visitor.get("trace", {"id": row["message_id"]}, topic="Orders"))["steps"]
        assert steps[0]["kind"] == "stored"
        assert ("dead_letter", "billing") in {(step["kind"], step["group"]) for step in steps}

        letters = await visitor.get("dead_letters", {"group": "billing"})
        [letter] = [one for one in letters["rows"] if one["keys"] == ["order-17"]]
        assert letter["origin_topic"] == "Orders"
        assert letters["kinds"][0]["count"] == letters["total"] == 1
        by_letter = await visitor.get("message", {"id": letter["id"]}, topic="%DLQ%billing")
        assert by_letter["message"]["message_id"] == row["message_id"]

        again: list[ReceivedMessage] = []

        async def bill(received: ReceivedMessage) -> None:
            again.append(received)

        config = PushConsumerConfig(client=ClientConfig(persist_offsets_millis=50))
        async with PushConsumer(
            "billing", listener=bill, name_servers=shop.name_servers, config=config
        ) as consumer:
            consumer.subscribe("Orders")
            told = await visitor.do("resend_dead_letters", {"group": "billing"}, ids=[letter["id"]])
            assert [place["where"] for place in told["done"]] == [letter["id"]]
            await eventually(lambda: again, "the letter is delivered again")
        assert [received.message_id for received in again] == [row["message_id"]]
        record = await visitor.get("audit", action="resend_dead_letters")
        assert record["rows"][0]["target"]["ids"] == [letter["id"]]
        assert record["rows"][0]["result"] == "done"


async def a_group_that_is_offline_shows_its_lag_and_why(shop: Shop) -> None:
    async with dashboard(shop.name_servers) as (_, visitor):
        await visitor.do("create_topic", name="Stuck", read_queues=1, write_queues=1)
        await route_is_known(visitor, "Stuck")
        await visitor.do("create_group", name="idle")
        begun = {"topic": "Stuck", "to": "beginning", "confirm": "idle"}
        assert (await visitor.do("reset", {"group": "idle"}, **begun))["failed"] == []
        async with Producer("shop", name_servers=shop.name_servers) as producer:
            for number in range(3):
                await producer.send(Message(topic="Stuck", body=b"%d" % number))

        async def behind() -> Any:
            # RocketMQ enters messages into their queues a little later.
            told = await visitor.get("group", {"group": "idle"})
            return told if told["lag"] == 3 else None

        group: Any = await eventually(behind, "all messages are in their queues")
        assert group["online"] is False
        assert [one["code"] for one in group["stuck"]] == ["stuck_nobody"]

        async def problem() -> list[Any]:
            overview = await visitor.get("overview")
            return [one for one in overview["problems"] if one["params"].get("group") == "idle"]

        [found] = await eventually(problem, "the overview says that nobody consumes")
        assert found["code"] == "group_offline"
        assert found["page"] == "#/groups/idle"

        async def is_listed() -> bool:
            # Lists show what the last round found, and that may have come between two messages.
            listed = await visitor.get("groups", state="lagging")
            return [(row["name"], row["lag"]) for row in listed["rows"]] == [("idle", 3)]

        await eventually(is_listed, "the list has the whole lag")

        preview = await visitor.ask(
            "preview_reset", {"group": "idle"}, body={"topic": "Stuck", "to": "end"}
        )
        assert (preview.json()["skipped"], preview.json()["again"]) == (3, 0)
        assert (await visitor.get("group", {"group": "idle"}))["lag"] == 3
        await visitor.do("reset", {"group": "idle"}, topic="Stuck", to="end", confirm="idle")
        assert (await visitor.get("group", {"group": "idle"}))["lag"] == 0


async def members_and_what_they_hold(shop: Shop) -> None:
    async def ignore(received: ReceivedMessage) -> None:
        pass

    async with (
        dashboard(shop.name_servers) as (_, visitor),
        PushConsumer("crew", listener=ignore, name_servers=shop.name_servers) as consumer,
    ):
        consumer.subscribe("Orders", "paid")

        async def owned() -> Any:
            answer = await visitor.ask("group", {"group": "crew"})
            if answer.status != 200:
                return None
            group = answer.json()
            is_whole = group["queues"] and all(
                queue["owner"] for queue in group["queues"] if queue["topic"] == "Orders"
            )
            return group if is_whole and group["subscriptions"] else None

        group: Any = await eventually(owned, "every queue has an owner")
        [member] = group["members"]
        table = {one["topic"]: one["expression"] for one in group["subscriptions"]}
        assert table["Orders"] == "paid"
        client = await visitor.get(
            "client", {"group": "crew", "client": member["client_id"]}, stacks="true"
        )
        assert {queue["topic"] for queue in client["queues"]} >= {"Orders"}


async def search_by_time_filter_and_page(shop: Shop) -> None:
    async with dashboard(shop.name_servers) as (_, visitor):
        keys: list[str] = []
        cursor, pages = "", 0
        while True:
            page = await visitor.get("messages", topic="Orders", size=7, cursor=cursor)
            keys += [row["keys"][0] for row in page["rows"]]
            stored = [row["stored_ms"] for row in page["rows"]]
            assert stored == sorted(stored, reverse=True)
            cursor, pages = page["cursor"], pages + 1
            if not cursor:
                break
        assert sorted(keys) == sorted(f"order-{number}" for number in range(17, 17 + ORDERS))
        assert pages == 3
        one = await visitor.get("messages", topic="Orders", text='"order": 20')
        assert [row["keys"] for row in one["rows"]] == [["order-20"]]
        lines = await visitor.ask(
            "export_messages", query={"topic": "Orders", "text": '"order": 20'}
        )
        assert lines.body.count(b"\n") == 1
        assert b'"order-20"' in lines.body
        none = await visitor.get("messages", topic="Orders", tags="created")
        assert none["rows"] == []
        short = await visitor.get("messages", topic="Orders", text="not there", scan_max=4)
        assert short["cursor"]
        assert "stopped after" in short["notes"][0]["text"]


async def fields_are_masked_everywhere(shop: Shop) -> None:
    async with dashboard(shop.name_servers, masked_fields="card*") as (_, visitor):
        [row] = (await visitor.get("messages", topic="Orders", key="order-18"))["rows"]
        assert "4711" not in row["preview"]
        name = {"id": row["message_id"]}
        for wanted in ("", "json", "text", "hex"):
            message = await visitor.get("message", name, topic="Orders", format=wanted)
            assert "4711" not in message["body"]["text"]
            assert message["body"]["masked"] == ["card"]
        assert (await visitor.ask("body", name, {"topic": "Orders"})).error == "masked"
        lines = await visitor.ask("export_messages", query={"topic": "Orders"})
        assert lines.body.count(b"\n") == ORDERS
        assert b"4711" not in lines.body
        searched = await visitor.get("messages", topic="Orders", text="4711")
        assert searched["rows"] == []


async def pipelines_show_what_they_reported(shop: Shop) -> None:
    async with dashboard(shop.name_servers) as (server, visitor):
        assert (await visitor.get("pipelines"))["rows"] == []
        report = PipelineReport(
            name="hourly",
            state="running",
            topics=["Orders"],
            lag=7,
            rows_read=10,
            rows_per_second=2.5,
            started_ms=1,
            reported_ms=2,
        )
        admin = server.desk.site("").admin
        await admin.kv.put(NAMESPACE, "hourly", report.encode())
        await admin.kv.put(NAMESPACE, "broken", "{")
        told = await visitor.get("pipelines")
        [row] = told["rows"]
        # It said so long ago, and nothing since.
        assert (row["name"], row["state"], row["lag"]) == ("hourly", "silent", 7)
        assert [one["text"] for one in told["notes"]] == ["reports that cannot be read: 1"]


async def knows(visitor: Visitor, topic: str) -> None:
    async def listed() -> bool:
        rows = (await visitor.get("topics", q=topic))["rows"]
        return any(row["name"] == topic and row["messages"] for row in rows)

    await eventually(listed, f"the dashboard knows {topic}")


async def route_is_known(visitor: Visitor, topic: str) -> None:
    """RocketMQ's brokers register a new topic one by one."""

    async def is_everywhere() -> bool:
        brokers = (await visitor.get("cluster"))["brokers"]
        answer = await visitor.ask("topic", {"topic": topic})
        if answer.status != 200:
            return False
        masters = {row["name"] for row in brokers if row["is_master"]}
        return {row["broker"] for row in answer.json()["route"]} == masters != set()

    await eventually(is_everywhere, f"name servers know {topic}")


STEPS = (
    from_an_order_number_to_its_dead_letter_and_back,
    a_group_that_is_offline_shows_its_lag_and_why,
    members_and_what_they_hold,
    search_by_time_filter_and_page,
    fields_are_masked_everywhere,
    pipelines_show_what_they_reported,
)
