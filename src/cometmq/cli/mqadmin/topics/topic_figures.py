"""What is sent to topics and consumed from them."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Final

from cometmq.cli.mqadmin.call import Call
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.layout import Layout
from cometmq.cli.mqadmin.options import flag, value

if TYPE_CHECKING:
    from cometmq.admin import TopicTraffic

FIGURES: Final = Layout(
    (
        *("#Topic", "#Consumer Group", "#Accumulation", "#InTPS", "#OutTPS"),
        *("#InMsg24Hour", "#OutMsg24Hour"),
    ),
    "%-64s  %-64s %12s %11s %11s %14s %14s",
    "%-64.64s  %-64.64s %12s %11s %11s %14s %14s",
)
NO_CONSUMER: Final = "NO_CONSUMER"

Row = tuple[str, ...]
Lags = Counter[tuple[str, str]]
"""Messages that are not consumed yet, by topic and group."""


async def all_figures(call: Call) -> None:
    topic = call.args.text("t")
    if topic is not None:
        # Says so if there is no such topic.
        await call.admin.topics.route(topic)
        found = await call.admin.topics.traffic([topic])
        lags = await _lags_of(call, found.rows)
    else:
        found, lags = await asyncio.gather(call.admin.topics.traffic(), _all_lags(call))
    rows = [row for told in found for row in _rows(told, lags)]
    if "a" in call.args:
        rows = [row for row in rows if row[5] != "0" or row[6] not in ("0", NO_CONSUMER)]
    call.out.table(FIGURES, rows)
    call.out.failures(found.failed)
    titles = ("topic", "group", "lag", "in_tps", "out_tps", "in_day", "out_day")
    call.out.value([dict(zip(titles, row, strict=True)) for row in rows])


async def _lags_of(call: Call, topics: list[TopicTraffic]) -> Lags:
    """Asks only for these: to look at all groups takes a broker its time."""
    lags: Lags = Counter()
    for told in topics:
        for group in told.groups:
            progress = await call.admin.groups.progress(group, [told.topic])
            call.out.failures(progress.failed)
            lags[told.topic, group] = progress.lag
    return lags


async def _all_lags(call: Call) -> Lags:
    lags: Lags = Counter()
    answers = await call.admin.brokers.consume_stats()
    for told in answers.values():
        for of_groups in told.consume_stats_list:
            for group, tables in of_groups.items():
                for table in tables:
                    for queue, at in table.offset_table.items():
                        lags[queue.topic, group] += at.broker_offset - at.consumer_offset
    call.out.failures(answers.failed)
    return lags


def _rows(told: TopicTraffic, lags: Lags) -> list[Row]:
    put = (f"{told.put.tps:.2f}", str(told.put.in_24h))
    if not told.groups:
        return [(told.topic, "", "0", put[0], "", put[1], NO_CONSUMER)]
    return [
        (
            told.topic,
            group,
            str(max(lags[told.topic, group], 0)),
            put[0],
            f"{got.tps:.2f}",
            put[1],
            str(got.in_24h),
        )
        for group, got in told.groups.items()
    ]


COMMANDS: Final = (
    Command(
        name="statsAll",
        summary="Show what is sent to topics and consumed from them.",
        run=all_figures,
        options=(
            flag("a", "activeTopic", "only topics in use"),
            value("t", "topic", "only this topic"),
        ),
        can_watch=True,
        examples=("statsAll", "statsAll -t Orders --watch 5"),
    ),
)
