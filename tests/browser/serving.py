"""A dashboard for a cluster, in the thread of its servers; and its API, as a program asks it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from cometmq.client import ClientConfig
from cometmq.dashboard.dashboard_config import DashboardConfig
from cometmq.dashboard.server import Dashboard
from cometmq.testing.cluster import Cluster

SAMPLE_MS: Final = 500


@contextmanager
def dashboard_of(
    servers: Cluster, *, account: ClientConfig | None = None, **settings: Any
) -> Iterator[str]:
    """Its address. ``settings`` are fields of ``DashboardConfig``."""
    config = DashboardConfig(
        **{
            "name_servers": servers.name_servers,
            "listen_port": 0,
            "sample_interval_ms": SAMPLE_MS,
            **settings,
        },
    )
    dashboard = Dashboard(config, account)
    servers.run(dashboard.start())
    try:
        yield dashboard.url.rstrip("/")
    finally:
        servers.run(dashboard.stop())


def ask(address: str, path: str) -> Any:
    with urllib.request.urlopen(f"{address}/api/v1/{path}") as answer:
        return json.load(answer)


def change(address: str, method: str, path: str, body: object) -> Any:
    """Without a login, as on loopback."""
    request = urllib.request.Request(
        f"{address}/api/v1/{path}",
        method=method,
        data=json.dumps(body).encode(),
        headers={
            "Content-Type": "application/json",
            "X-CSRF-Token": ask(address, "me")["csrf_token"],
        },
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)
