"""What the pages show: the answer to each question that an operator has."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest
from tests.integration.dashboard.shop import open_shop
from tests.integration.dashboard.visitor import dashboard
from tests.integration.dashboard.walk import STEPS, Shop

from cometmq.testing import cluster
from cometmq.testing.cluster import Cluster


@pytest.fixture(scope="module")
def servers() -> Iterator[Cluster]:
    with cluster() as running:
        asyncio.run(open_shop(running.name_servers))
        yield running


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
async def test_step(step: Callable[[Shop], Awaitable[None]], servers: Cluster) -> None:
    await step(Shop(servers.name_servers))


async def test_settings_are_read_and_changed(servers: Cluster) -> None:
    broker = {"broker": "broker-0", "id": "0"}
    async with dashboard(servers.name_servers) as (_, visitor):
        cluster_view = await visitor.get("cluster")
        broker["broker"] = cluster_view["brokers"][0]["name"]
        rows = (await visitor.get("broker_settings", broker))["rows"]
        [hours] = [row for row in rows if row["key"] == "fileReservedTime"]
        assert hours["change"] == "live"
        await visitor.do("change_broker_settings", broker, values={"fileReservedTime": "24"})
        rows = (await visitor.get("broker_settings", broker))["rows"]
        [hours] = [row for row in rows if row["key"] == "fileReservedTime"]
        assert (hours["value"], hours["is_default"]) == ("24", False)
        refused = await visitor.ask(
            "change_broker_settings", broker, body={"values": {"listenPort": "1"}}
        )
        assert refused.json()["failed"]
