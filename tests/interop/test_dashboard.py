"""Our dashboard at clusters of RocketMQ 4.9.7 and 5.5.0: the data of every page, and every change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from tests.eventually import eventually
from tests.integration.dashboard.shop import ORDERS, open_shop
from tests.integration.dashboard.visitor import Visitor, dashboard
from tests.integration.dashboard.walk import STEPS, Shop, route_is_known

from cometmq.client import Message, ProducerConfig, ReceivedMessage
from cometmq.client.aio import TransactionProducer, TransactionState

from .conftest import required
from .systems import ROCKETMQ_4, ROCKETMQ_5, THEIRS, Broker, NameServer, commands_of

# The first test waits for the servers.
pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

SETTINGS: dict[str, object] = {
    "mappedFileSizeCommitLog": 64 * 1024 * 1024,
    "mappedFileSizeConsumeQueue": 20 * 1000,
    "maxHashSlotNum": 5000,
    "maxIndexNum": 20000,
    "traceTopicEnable": "true",
    # RocketMQ 4 makes the topic of half messages with its first check.
    "transactionCheckInterval": 1000,
    # Otherwise a new group begins at offset 0 of a queue whose messages are all in memory, whatever it asks for.
    "accessMessageInMemoryMaxRatio": 0,
}
ORDER: dict[str, Any] = {"topic": "Orders"}


@dataclass(frozen=True)
class Running:
    make: str
    name_server: str
    order_id: str
    """The unique id of the order that ``billing`` gave up."""


@pytest.fixture(scope="module", params=THEIRS)
def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """A name server, two masters and a slave of RocketMQ, with the shop of the examples."""
    directory = tmp_path_factory.mktemp("dashboard")
    with required(), ExitStack() as stack:
        commands = commands_of(request.param, directory / "home")
        name_server = stack.enter_context(NameServer(commands, directory / "namesrv").running())
        for name, broker_id in (("broker-a", 0), ("broker-b", 0), ("broker-a", 1)):
            settings = {**SETTINGS, "brokerId": broker_id}
            if broker_id:
                settings["brokerRole"] = "SLAVE"
            broker = Broker([name_server], directory / f"{name}-{broker_id}", name, **settings)
            stack.callback(broker.kill)
            broker.start(commands)
        order_id = asyncio.run(open_shop(name_server.address))
        yield Running(request.param, name_server.address, order_id)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
async def test_step(step: Callable[[Shop], Awaitable[None]], running: Running) -> None:
    """The same walk as at our own servers."""
    await step(Shop(running.name_server))


async def test_every_page(running: Running) -> None:
    async with dashboard(running.name_server) as (_, visitor):
        await _is_filled(visitor)
        version = "V4_9_7" if running.make == ROCKETMQ_4 else "V5_5_0"
        overview = await visitor.get("overview")
        assert (overview["totals"]["brokers"], overview["totals"]["brokers_silent"]) == (3, 0)
        assert overview["incomplete"] == []
        cluster = await visitor.get("cluster")
        assert {(row["name"], row["id"]) for row in cluster["brokers"]} == {
            ("broker-a", 0),
            ("broker-a", 1),
            ("broker-b", 0),
        }
        for row in cluster["brokers"]:
            assert row["version"] == version
            assert 0 < row["disk_ratio"] < 1
            assert row["put_tps"] is not None
        [slave] = [row for row in cluster["brokers"] if row["id"]]
        assert slave["slave_lag_bytes"] is not None
        assert [row["answers"] for row in cluster["name_servers"]] == [True]

        place = {"broker": "broker-a", "id": "0"}
        assert (await visitor.get("broker", place))["runtime"]["brokerVersionDesc"] == version
        settings = {
            row["key"]: row for row in (await visitor.get("broker_settings", place))["rows"]
        }
        assert settings["brokerName"]["value"] == "broker-a"
        assert settings["fileReservedTime"]["change"] == "unknown"
        assert (await visitor.get("name_server_settings"))["rows"]

        [topic] = (await visitor.get("topics", q="Orders", kind="normal"))["rows"]
        assert (topic["messages"], topic["read_queues"], topic["perm"]) == (ORDERS, 8, "rw")
        seen = await visitor.get("topic", ORDER)
        assert {one["broker"] for one in seen["route"]} == {"broker-a", "broker-b"}
        assert "billing" in {one["name"] for one in seen["groups"]}
        assert {row["name"] for row in (await visitor.get("groups", q="bill"))["rows"]} == {
            "billing"
        }
        group = await visitor.get("group", {"group": "billing"})
        assert {row["broker"] for row in group["queues"]} >= {"broker-a", "broker-b"}
        assert {row["broker"] for row in group["definitions"]} == {"broker-a", "broker-b"}

        message = {"id": running.order_id}
        assert (await visitor.get("message", message, **ORDER))["message"]["keys"] == ["order-17"]
        assert (await visitor.ask("body", message, ORDER)).body.startswith(b'{"order": 17')
        fates = (await visitor.get("fate", message, **ORDER))["rows"]
        assert "billing" in {row["group"] for row in fates}
        lines = await visitor.ask("export_dead_letters", {"group": "billing"})
        assert b'"order-17"' in lines.body
        [letters] = (await visitor.get("dead_letter_groups"))["rows"]
        assert letters["group"] == "billing"
        assert (await visitor.get("alerts"))["rules"]
        assert (await visitor.get("accounts"))["checked"] is False
        history = (await visitor.get("history", series="put_tps,disk_ratio"))["rows"]
        assert all(row["points"] for row in history)
        hits = (await visitor.get("search", q="broker-a"))["rows"]
        assert ("broker", "broker-a") in {(row["type"], row["name"]) for row in hits}


async def test_topics_and_groups_are_changed(running: Running) -> None:
    async with dashboard(running.name_server) as (_, visitor):
        parcels, packers = {"topic": "Parcels"}, {"group": "packers"}
        await visitor.do("create_topic", name="Parcels", read_queues=2, write_queues=2)
        await route_is_known(visitor, "Parcels")
        sent = await visitor.do("send", parcels, body="a parcel", keys=["p-1"], tags="small")
        assert sent["status"] == "SEND_OK"
        [row] = (await visitor.get("messages", topic="Parcels"))["rows"]
        assert (row["keys"], row["tags"]) == (["p-1"], "small")
        changed = await visitor.do("change_topic", parcels, perm="r")
        assert {place["where"] for place in changed["done"]} == {"broker-a", "broker-b"}
        definitions = (await visitor.get("topic", parcels))["definitions"]
        assert {one["perm"] for one in definitions} == {"r"}

        await visitor.do("create_group", name="packers", retries=3)
        group = await visitor.get("group", packers)
        assert {one["retries"] for one in group["definitions"]} == {3}
        deleted = await visitor.do("delete_group", packers, confirm="packers")
        # At the slave, too.
        assert (len(deleted["done"]), deleted["failed"]) == (3, [])
        await visitor.do("delete_topic", parcels, confirm="Parcels")
        assert (await visitor.get("topics", q="Parcels"))["rows"] == []


async def test_servers_are_changed(running: Running) -> None:
    place = {"broker": "broker-b", "id": "0"}
    async with dashboard(running.name_server) as (_, visitor):
        await _is_filled(visitor)
        await visitor.do("change_broker_settings", place, values={"fileReservedTime": "50"})
        rows = (await visitor.get("broker_settings", place))["rows"]
        assert [row["value"] for row in rows if row["key"] == "fileReservedTime"] == ["50"]
        for allowed in (False, True):
            told = await visitor.do("write_permission", {"broker": "broker-b"}, allowed=allowed)
            assert told["failed"] == []


async def test_a_delayed_message_waits(running: Running) -> None:
    """And can be taken back where RocketMQ can: 5.5.0, by time."""
    async with dashboard(running.name_server) as (_, visitor):
        await visitor.do("create_topic", name="Later", read_queues=1, write_queues=1)
        await route_is_known(visitor, "Later")
        await visitor.do(
            "send", {"topic": "Later"}, body="by level", keys=["level"], delay_level=18
        )
        if running.make == ROCKETMQ_5:
            await visitor.do(
                "send", {"topic": "Later"}, body="by time", keys=["time"], delay_ms=3_600_000
            )

        async def waiting() -> dict[str, Any]:
            rows = (await visitor.get("waiting", topic="Later"))["rows"]
            return {key: row for row in rows for key in row["keys"]}

        wanted = {"level"} if running.make == ROCKETMQ_4 else {"level", "time"}
        found = await eventually(lambda: _if(waiting(), wanted), "what waits is listed")
        assert found["level"]["topic"] == "Later"
        if running.make == ROCKETMQ_5:
            recall = {"topic": "Later", "handle": found["time"]["recall"]}
            refused = await visitor.ask("recall", body=recall)
            assert "recallMessageEnable" in refused.json()["error"]["hint"]
            for name in ("broker-a", "broker-b"):
                place = {"broker": name, "id": "0"}
                await visitor.do(
                    "change_broker_settings", place, values={"recallMessageEnable": "true"}
                )
            assert (await visitor.do("recall", **recall))["failed"] == []
            await eventually(lambda: _if(waiting(), {"level"}), "it is gone")


async def test_an_open_transaction(running: Running) -> None:
    config = ProducerConfig(send_timeout_ms=30_000)

    async def undecided(message: Message, argument: object) -> TransactionState:
        return TransactionState.UNKNOWN

    async def unchecked(message: ReceivedMessage) -> TransactionState:
        return TransactionState.UNKNOWN

    async with (
        dashboard(running.name_server) as (_, visitor),
        TransactionProducer(
            "refunding",
            execute=undecided,
            check=unchecked,
            name_servers=running.name_server,
            config=config,
        ) as producer,
    ):
        await producer.send_transaction(
            Message(topic="Orders", body=b'{"refund": 12}', keys=["refund-1"])
        )

        async def is_listed() -> bool:
            rows = (await visitor.get("transactions"))["rows"]
            return [(row["keys"], row["producer_group"]) for row in rows] == [
                (["refund-1"], "refunding")
            ]

        await eventually(is_listed, "the transaction is listed")


async def _if(asked: Awaitable[dict[str, Any]], wanted: set[str]) -> dict[str, Any] | None:
    found = await asked
    return found if set(found) == wanted else None


async def _is_filled(visitor: Visitor) -> None:
    async def knows_all() -> bool:
        rows = (await visitor.get("topics", q="Orders", kind="normal"))["rows"]
        brokers = (await visitor.get("cluster"))["brokers"]
        return bool(rows and rows[0]["messages"]) and len(brokers) == 3

    await eventually(knows_all, "the dashboard has seen the cluster")
