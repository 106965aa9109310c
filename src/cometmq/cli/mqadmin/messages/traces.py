"""Traces: what producers and consumers reported about a message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cometmq.cli.mqadmin.call import Call
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.layout import Layout
from cometmq.cli.mqadmin.options import needed, value
from cometmq.cli.mqadmin.texts import time_text
from cometmq.client.core.message_lookup import TIME_MS_MAX
from cometmq.model.names import TRACE_TOPIC
from cometmq.model.trace import PubTrace

if TYPE_CHECKING:
    from cometmq.admin import Consumption, TraceRow

_FORMAT: Final = "%-10s %-20s %-20s %-20s %-10s %-10s"
SENT: Final = Layout(
    ("#Type", "#ProducerGroup", "#ClientHost", "#SendTime", "#CostTimes", "#Status"), _FORMAT
)
CONSUMED: Final = Layout(
    ("#Type", "#ConsumerGroup", "#ClientHost", "#ConsumerTime", "#CostTimes", "#Status"), _FORMAT
)


async def trace_by_id(call: Call) -> None:
    args = call.args
    end = args.time("e")
    trace = await call.admin.traces.of_message(
        args.needed("i"),
        topic=args.text("t", TRACE_TOPIC),
        begin_ms=args.time("b") or 0,
        end_ms=TIME_MS_MAX if end is None else end,
        count_max=args.number("c", 64, low=1),
    )
    sent = [row for row in trace.rows if isinstance(row.record, PubTrace)]
    for row in sent:
        call.out.table(SENT, [_sent(row)])
    by_group: dict[str, list[Consumption]] = {}
    for one in trace.consumptions:
        by_group.setdefault(one.before.group or "", []).append(one)
    for consumptions in by_group.values():
        call.out.line()
        call.out.table(CONSUMED, [_consumed(one) for one in consumptions])
    call.out.value(trace)


def _sent(row: TraceRow) -> tuple[str, ...]:
    record = row.record
    assert isinstance(record, PubTrace)
    return (
        "Pub",
        record.group or "",
        row.client,
        time_text(record.timestamp).partition(",")[0],
        f"{record.cost_ms}ms",
        "success" if record.is_success else "failed",
    )


def _consumed(one: Consumption) -> tuple[str, ...]:
    after = one.after
    return (
        "Sub",
        one.before.group or "",
        one.client,
        time_text(one.before.timestamp).partition(",")[0],
        f"{after.cost_ms}ms" if after else "",
        "" if after is None else "success" if after.is_success else "failed",
    )


COMMANDS: Final = (
    Command(
        name="queryMsgTraceById",
        summary="Show who sent and consumed a message, and how long it took.",
        run=trace_by_id,
        options=(
            needed("i", "msgId", "the id that the producer gave the message"),
            value("t", "traceTopic", f"the topic of traces ({TRACE_TOPIC})"),
            value("b", "beginTimestamp", "stored at this time or later (0)"),
            value("e", "endTimestamp", "stored at this time or earlier"),
            value("c", "maxNum", "at most so many trace messages of each broker (64)"),
        ),
        examples=("queryMsgTraceById -i C000020207431FE24D0D5BFEB6850013",),
    ),
)
