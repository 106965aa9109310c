"""Clusters and the figures of their brokers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from cometmq.cli.mqadmin.call import Call
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.layout import Layout
from cometmq.cli.mqadmin.options import BROKER, CLUSTER, EITHER, flag, value

if TYPE_CHECKING:
    from cometmq.admin import BrokerFigures, BrokerRow

NOT_TOLD: Final = "N"
_HOUR_MS: Final = 3_600_000

BROKERS: Final = Layout(
    (
        *("#Cluster Name", "#Broker Name", "#BID", "#Addr", "#Version", "#InTPS(LOAD)"),
        *("#OutTPS(LOAD)", "#Timer(Progress)", "#PCWait(ms)", "#Hour", "#SPACE", "#ACTIVATED"),
    ),
    "%-22s  %-22s  %-4s  %-22s %-16s  %16s  %30s  %-22s  %-11s  %-12s  %-8s  %-10s",
    "%-22s  %-22s  %-4s  %-22s %-16s  %16s  %30s  %-22s  %11s  %-12s  %-8s  %10s",
)
TOTALS: Final = Layout(
    (
        *("#Cluster Name", "#Broker Name"),
        *("#InTotalYest", "#OutTotalYest", "#InTotalToday", "#OutTotalToday"),
    ),
    "%-16s  %-32s %14s %14s %14s %14s",
)


async def cluster_list(call: Call) -> None:
    from cometmq.admin import BrokerFigures, Target

    target = Target(cluster=call.args.text("c"), with_slaves=True)
    found = await call.admin.clusters.brokers(target)
    now_ms = time.time_ns() // 1_000_000
    if "m" in call.args:
        rows = [_totals(row, row.figures or BrokerFigures({})) for row in found]
        call.out.table(TOTALS, rows)
    else:
        call.out.table(
            BROKERS, [_row(row, row.figures or BrokerFigures({}), now_ms) for row in found]
        )
    call.out.failures(found.failed)
    call.out.value(found.rows)


def _row(row: BrokerRow, figures: BrokerFigures, now_ms: int) -> tuple[str, ...]:
    """A broker that does not answer has zeros, and is told of on standard error."""
    table = figures.table
    oldest_ms = figures.earliest_message_ms
    hours = (now_ms - oldest_ms) / _HOUR_MS if oldest_ms else 0.0
    timer = (
        f"{figures.number('timerReadBehind')}-{figures.number('timerOffsetBehind')}"
        f"({figures.number('timerCongestNum') / 10_000:.1f}w, "
        f"{figures.decimal('timerEnqueueTps'):.1f}, {figures.decimal('timerDequeueTps'):.1f})"
    )
    sends = table.get("sendThreadPoolQueueSize") or NOT_TOLD
    sends_wait = table.get("sendThreadPoolQueueHeadWaitTimeMills") or NOT_TOLD
    pulls, pulls_wait, acks, acks_wait = (
        table.get(f"{name}{figure}") or NOT_TOLD
        for name in ("pullThreadPoolQueue", "ackThreadPoolQueue")
        for figure in ("Size", "HeadWaitTimeMills")
    )
    return (
        row.place.cluster,
        row.place.broker_name,
        str(row.place.broker_id),
        row.place.address,
        figures.version,
        f"{figures.put_tps:9.2f}({sends},{sends_wait}ms)",
        f"{figures.get_tps:9.2f}({pulls},{pulls_wait}ms|{acks},{acks_wait}ms)",
        timer,
        str(figures.number("pageCacheLockTimeMills")),
        f"{hours:.2f}",
        f"{figures.disk_ratio:.4f}",
        "true" if figures.is_active else "false",
    )


def _totals(row: BrokerRow, figures: BrokerFigures) -> tuple[str, ...]:
    counts = (
        figures.put_yesterday,
        figures.get_yesterday,
        figures.put_today,
        figures.get_today,
    )
    return row.place.cluster, row.place.broker_name, *map(str, counts)


async def broker_status(call: Call) -> None:
    answers = await call.admin.brokers.runtime(call.target(with_slaves=True))
    for address, table in answers.done.items():
        prefix = "" if call.args.text("b") else f"{address:<24} "
        for key, text in sorted(table.items()):
            call.out.line(f"{prefix}{key:<32}: {text}")
    call.out.failures(answers.failed)
    call.out.value(answers.done)


COMMANDS: Final = (
    Command(
        name="clusterList",
        summary="List all brokers of all clusters, with their figures.",
        run=cluster_list,
        options=(
            flag("m", "moreStats", "messages of yesterday and today instead"),
            value("i", "interval", "repeat every so many seconds, as --watch"),
            value("c", "clusterName", "only this cluster"),
        ),
        interval="i",
        can_watch=True,
        examples=("clusterList", "clusterList -m", "clusterList --watch 5"),
    ),
    Command(
        name="brokerStatus",
        summary="Show all figures that a broker tells about itself.",
        run=broker_status,
        options=(BROKER, CLUSTER),
        groups=EITHER,
        can_watch=True,
        examples=("brokerStatus -b 127.0.0.1:10911",),
    ),
)
