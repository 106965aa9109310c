"""A broker that keeps its connections and answers nobody: no page waits for it, and what it told is still there."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest
from tests.eventually import eventually
from tests.integration.dashboard.shop import ORDERS, open_shop
from tests.integration.dashboard.visitor import Visitor, dashboard
from tests.interop.servers import cometmq_commands
from tests.interop.systems import Broker, NameServer

from cometmq.dashboard.watch.site import CALL_SECONDS

ORDERS_TOPIC: Final = {"topic": "Orders"}
BILLING: Final = {"group": "billing"}
FROM_MEMORY: Final[tuple[tuple[str, dict[str, str]], ...]] = (
    ("overview", {}),
    ("cluster", {}),
    ("broker", {"broker": "broker-b", "id": "0"}),
    ("topics", {}),
    ("groups", {}),
    ("dead_letter_groups", {}),
)
ASKED_ANEW: Final[tuple[tuple[str, dict[str, str]], ...]] = (
    ("topic", ORDERS_TOPIC),
    ("group", BILLING),
)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Broker, str]]:
    """Name server, the broker that can be stopped, and the id of an order at one of the two brokers."""
    directory = tmp_path_factory.mktemp("late")
    commands = cometmq_commands()
    with ExitStack() as stack:
        name_server = stack.enter_context(NameServer(commands, directory / "namesrv").running())
        for name in ("broker-a", "broker-b"):
            broker = Broker([name_server], directory / name, name)
            stack.callback(broker.kill)
            broker.start(commands)
        order_id = asyncio.run(open_shop(name_server.address))
        yield name_server.address, broker, order_id
        os.kill(broker.pid, signal.SIGCONT)


async def test_pages_show_what_there_is(stopped: tuple[str, Broker, str]) -> None:
    name_servers, broker, order_id = stopped
    async with dashboard(name_servers) as (_, visitor):
        await _eventually_incomplete(visitor, False)
        before = await visitor.get("topic", ORDERS_TOPIC)
        assert sum(one["max_offset"] for one in before["queues"]) == ORDERS
        os.kill(broker.pid, signal.SIGSTOP)
        await _eventually_incomplete(visitor, True)
        for name, names in FROM_MEMORY:
            # No server is asked: it may not take as long as one question to a broker that is silent.
            async with asyncio.timeout(CALL_SECONDS):
                answer = await visitor.get(name, names)
            _check_gap(answer, name)
        [topic] = (await visitor.get("topics", q="Orders"))["rows"]
        assert topic["messages"] == ORDERS
        for name, names in ASKED_ANEW:
            _check_gap(await visitor.get(name, names), name)
        group = await visitor.get("group", BILLING)
        assert {row["broker"] for row in group["queues"]} == {"broker-a"}
        # A search says what it could not look at; a message at the other broker is found.
        for name, names in (("trace", {"id": order_id}), ("fate", {"id": order_id})):
            answer = await visitor.ask(name, names, ORDERS_TOPIC)
            assert answer.status in (200, 404, 503), answer.body
        changed = await visitor.do("create_topic", name="Half", read_queues=1, write_queues=1)
        assert [len(changed["done"]), len(changed["failed"])] == [1, 1]
        os.kill(broker.pid, signal.SIGCONT)
        await _eventually_incomplete(visitor, False)


async def _eventually_incomplete(visitor: Visitor, wanted: bool) -> None:
    async def is_so() -> bool:
        overview = await visitor.get("overview")
        return bool(overview["totals"]["brokers"] == 2 and bool(overview["incomplete"]) == wanted)

    await eventually(is_so, f"the overview is incomplete: {wanted}")


def _check_gap(answer: Any, page: str) -> None:
    [gap] = answer["incomplete"]
    assert gap["server"].startswith(("broker-b", "127.0.0.1")), page
    assert gap["problem"], page
    assert 0 < gap["since_ms"] <= answer["as_of_ms"], page
