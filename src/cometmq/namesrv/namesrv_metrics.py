"""Metrics and health of a name server. RocketMQ's has neither, so all names are ours."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final

from cometmq.monitor.family import Family, gauge, single
from cometmq.monitor.health import Health
from cometmq.monitor.loop_lag import LoopLag
from cometmq.monitor.metrics import Ready
from cometmq.monitor.monitor import process_families
from cometmq.monitor.request_families import request_families
from cometmq.namesrv.route_table import RouteTable
from cometmq.remoting.bounds.reached import Reached
from cometmq.remoting.times.request_times import RequestTimes

SCOPE: Final = "namesrv"


def namesrv_source(
    table: RouteTable, times: RequestTimes, reached: Reached, connections: Callable[[], int]
) -> Ready:
    started = monotonic()
    return Ready(
        *_families(table, connections),
        *request_families(times),
        *process_families(reached, lambda: monotonic() - started),
    )


def namesrv_health(lag: LoopLag, waits_for_brokers: Callable[[], str | None]) -> Health:
    return Health(alive={"loop": lag.check}, ready={"routes": waits_for_brokers})


def _families(table: RouteTable, connections: Callable[[], int]) -> tuple[Family, ...]:
    return (
        gauge(
            "cometmq_namesrv_brokers",
            (),
            single(lambda: float(len(table.liveness))),
            text="Registered brokers, slaves among them",
        ),
        gauge(
            "cometmq_namesrv_topics",
            (),
            single(lambda: float(table.topic_count)),
            text="Topics that have a route",
        ),
        gauge(
            "cometmq_connections",
            (),
            single(lambda: float(connections())),
            text="Open connections at all ports for clients",
        ),
    )
