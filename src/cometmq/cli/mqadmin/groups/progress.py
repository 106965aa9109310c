"""How far consumer groups are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cometmq.base.errors import CometError
from cometmq.cli.mqadmin.call import Call
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.layout import Layout
from cometmq.cli.mqadmin.options import ROUTE_CLUSTER, needed, value
from cometmq.cli.mqadmin.texts import time_text, version_text

if TYPE_CHECKING:
    from cometmq.admin import GroupProgress, GroupSummary

NOT_KNOWN: Final = "N/A"

QUEUES: Final = Layout(
    (
        *("#Topic", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset"),
        *("#Diff", "#Inflight", "#LastTime"),
    ),
    "%-64s  %-32s  %-4s  %-20s  %-20s  %-20s %-20s%s",
    "%-64.64s  %-32.32s  %-4s  %-20s  %-20s  %-20s %-20s %s",
)
QUEUES_WITH_CLIENTS: Final = Layout(
    (
        *("#Topic", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset", "#Client IP"),
        *("#Diff", "#Inflight", "#LastTime"),
    ),
    "%-64s  %-32s  %-4s  %-20s  %-20s  %-20s %-20s %-20s%s",
    "%-64.64s  %-32.32s  %-4s  %-20s  %-20s  %-20s %-20s %-20s %s",
)
GROUPS: Final = Layout(
    ("#Group", "#Count", "#Version", "#Type", "#Model", "#TPS", "#Diff Total"),
    "%-64s  %-6s  %-24s %-5s  %-14s  %-7s  %s",
    "%-64.64s  %-6s  %-24s %-5s  %-14s  %-7s  %s",
)
BROKER_LAGS: Final = Layout(
    (
        *("#Topic", "#Group", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset"),
        *("#Diff", "#LastTime"),
    ),
    "%-64s  %-64s  %-32s  %-4s  %-20s  %-20s  %-20s  %s",
    "%-64.64s  %-64.64s  %-32.32s  %-4s  %-20s  %-20s  %-20s  %s",
)


async def consumer_progress(call: Call) -> None:
    group = call.args.text("g")
    if group is None:
        await _all_groups(call)
        return
    topics = call.args.names("t")
    progress = await call.admin.groups.progress(group, topics)
    clients = await _clients(call, group) if call.args.truth("s", False) else None
    _show_queues(call, progress, clients)
    call.out.failures(progress.failed)
    call.out.value(progress)


async def _clients(call: Call, group: str) -> dict[tuple[str, str, int], str]:
    """The address of the client that has each queue; none if nobody is online."""
    try:
        holders = await call.admin.connections.holders(group)
    except CometError:
        return {}
    return {
        (queue.topic, queue.broker_name, queue.queue_id): client.partition("@")[0]
        for queue, client in holders.items()
    }


def _show_queues(
    call: Call, progress: GroupProgress, clients: dict[tuple[str, str, int], str] | None
) -> None:
    rows = []
    for row in progress.queues:
        queue = row.queue
        cells = [
            queue.topic,
            queue.broker_name,
            str(queue.queue_id),
            str(row.broker_offset),
            str(row.consumer_offset),
        ]
        if clients is not None:
            cells.append(clients.get((queue.topic, queue.broker_name, queue.queue_id), NOT_KNOWN))
        cells += [str(row.lag), str(row.in_flight), second_text(row.consumed_ms)]
        rows.append(cells)
    call.out.table(QUEUES if clients is None else QUEUES_WITH_CLIENTS, rows)
    call.out.line()
    call.out.line(f"Consume TPS: {progress.tps:.2f}")
    call.out.line(f"Consume Diff Total: {progress.lag}")
    call.out.line(f"Consume Inflight Total: {progress.in_flight}")


def second_text(milliseconds: int) -> str:
    return time_text(milliseconds).partition(",")[0] or NOT_KNOWN


async def _all_groups(call: Call) -> None:
    found = await call.admin.groups.summary()
    call.out.table(GROUPS, [_group_row(row) for row in found])
    call.out.failures(found.failed)
    call.out.value(found.rows)


def _group_row(row: GroupSummary) -> tuple[str, ...]:
    types = {"CONSUME_ACTIVELY": "PULL", "CONSUME_PASSIVELY": "PUSH", "CONSUME_POP": "POP"}
    return (
        row.group,
        str(row.members),
        "OFFLINE" if row.version is None else version_text(row.version),
        types.get(row.consume_type, row.consume_type),
        row.message_model,
        str(int(row.tps)),
        str(row.lag),
    )


async def broker_consume_stats(call: Call) -> None:
    args = call.args
    least = args.number("l", 0)
    answers = await call.admin.brokers.consume_stats(
        call.target(),
        only_ordered=args.truth("o", False),
        timeout=args.number("t", 50_000, low=1) / 1000,
    )
    rows = []
    for told in answers.values():
        for of_groups in told.consume_stats_list:
            for group, tables in of_groups.items():
                for table in tables:
                    for queue, lag in sorted(table.offset_table.items()):
                        diff = lag.broker_offset - lag.consumer_offset
                        if diff < least:
                            continue
                        rows.append(
                            (
                                queue.topic,
                                group,
                                queue.broker_name,
                                str(queue.queue_id),
                                str(lag.broker_offset),
                                str(lag.consumer_offset),
                                str(diff),
                                second_text(lag.last_timestamp),
                            )
                        )
    call.out.table(BROKER_LAGS, rows)
    total = sum(told.total_diff for told in answers.values())
    call.out.line()
    call.out.line(f"Diff Total: {total}")
    call.out.failures(answers.failed)
    call.out.value(
        [dict(zip((title[1:] for title in BROKER_LAGS.titles), row, strict=True)) for row in rows]
    )


COMMANDS: Final = (
    Command(
        name="consumerProgress",
        summary="Show how far a consumer group is queue by queue, or all groups in a row each.",
        run=consumer_progress,
        options=(
            value("g", "groupName", "one group, queue by queue"),
            value("t", "topicName", "only this topic"),
            value("s", "showClientIP", "true: who consumes each queue (false)"),
            ROUTE_CLUSTER,
        ),
        can_watch=True,
        examples=(
            "consumerProgress",
            "consumerProgress -g billing -s true",
            "consumerProgress -g billing --watch 2",
            "consumerProgress -g billing --json",
        ),
    ),
    Command(
        name="brokerConsumeStats",
        summary="Show the positions of all groups at a broker.",
        run=broker_consume_stats,
        options=(
            needed("b", "brokerAddr", "address of the broker"),
            value("t", "timeoutMillis", "how long it may take (50000)"),
            value("l", "level", "only queues with at least so many messages to consume (0)"),
            value("o", "order", "true: only groups that consume in order (false)"),
        ),
        can_watch=True,
        examples=("brokerConsumeStats -b 127.0.0.1:10911 -l 1000",),
    ),
)
