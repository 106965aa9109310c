"""Every page of the dashboard, each with data in it; ``test_login`` has the login and the accounts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tests.browser.shop import LOST_ORDER


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardPage:
    """``shows`` is a text that is there once the page has its data; ``{lost_id}`` is filled in."""

    name: str
    path: tuple[str, ...]
    params: dict[str, str] = field(default_factory=dict)
    shows: str


PAGES: Final = (
    DashboardPage(name="overview", path=("overview",), shows="billing"),
    DashboardPage(name="topics", path=("topics",), shows="Payments"),
    DashboardPage(name="topic", path=("topics", "Orders"), shows="analytics"),
    DashboardPage(name="groups", path=("groups",), shows="billing"),
    DashboardPage(name="group", path=("groups", "billing"), shows="Orders"),
    DashboardPage(name="messages", path=("messages",), params={"topic": "Orders"}, shows="order-1"),
    DashboardPage(
        name="found",
        path=("messages",),
        params={"by": "key", "key": LOST_ORDER},
        shows=LOST_ORDER,
    ),
    DashboardPage(
        name="message",
        path=("messages", "{lost_id}"),
        params={"topic": "Orders"},
        shows=LOST_ORDER,
    ),
    DashboardPage(name="dead-letters", path=("dead-letters",), shows="shipping"),
    DashboardPage(name="dead-letters-group", path=("dead-letters", "shipping"), shows=LOST_ORDER),
    DashboardPage(name="delayed", path=("delayed",), shows="later-0"),
    DashboardPage(name="transactions", path=("transactions",), shows="refund-1"),
    DashboardPage(name="cluster", path=("cluster",), shows="DefaultCluster"),
    DashboardPage(name="broker", path=("cluster", "standalone"), shows="brokerClusterName"),
    DashboardPage(name="pipelines", path=("pipelines",), shows="paid-orders"),
    DashboardPage(name="alerts", path=("alerts",), shows="billing"),
    DashboardPage(name="audit", path=("audit",), shows="create_topic"),
)
