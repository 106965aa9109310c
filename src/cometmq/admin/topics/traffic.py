"""Rates of topics and of the groups that consume them, for many topics at once.

Brokers have no request for all counters, so each takes one (315); they are sent ahead, some at a time to each broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cometmq.admin.calls import Calls
from cometmq.admin.fan_out import Listing
from cometmq.admin.servers.brokers import view_stats
from cometmq.model.names import DLQ_PREFIX, RETRY_PREFIX
from cometmq.protocol.bodies.offsets import ConsumerOffsets
from cometmq.protocol.bodies.stats import BrokerStatsData
from cometmq.protocol.bodies.topic import TopicConfigTable
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.headers.admin import ViewBrokerStatsHeader
from cometmq.protocol.reply_errors import SystemFault


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Messages per second in the last minute, and messages in the last day; less if it has not run for so long."""

    tps: float = 0.0
    in_24h: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicTraffic:
    """What goes into a topic, and out of it by group."""

    topic: str
    put: Traffic
    groups: Mapping[str, Traffic]


@dataclass(slots=True)
class _Sum:
    tps: float = 0.0
    count: int = 0

    def add(self, data: BrokerStatsData | None) -> None:
        if data is not None:
            self.tps += data.stats_minute.tps
            self.count += data.stats_day.sum or data.stats_hour.sum or data.stats_minute.sum

    def told(self) -> Traffic:
        return Traffic(tps=self.tps, in_24h=self.count)


async def traffic(
    calls: Calls, addresses: list[str], topics: frozenset[str]
) -> Listing[TopicTraffic]:
    """Of the named topics, or of all but retry topics and dead letters."""

    async def keys(address: str) -> list[tuple[str, str]]:
        table = await calls.table(address, RequestCode.GET_ALL_TOPIC_CONFIG, TopicConfigTable)
        names = {
            name
            for name in table.topic_config_table
            if name in topics or (not topics and not name.startswith((RETRY_PREFIX, DLQ_PREFIX)))
        }
        pairs = await groups_by_topic(calls, address)
        found = [("TOPIC_PUT_NUMS", name) for name in names]
        found += [
            ("GROUP_GET_NUMS", f"{name}@{group}") for name in names for group in pairs.get(name, ())
        ]
        return found

    wanted = await calls.fan_out.each(addresses, keys)

    async def ask(address: str, key: tuple[str, str]) -> BrokerStatsData | None:
        name, what = key
        header = ViewBrokerStatsHeader(stats_name=name, stats_key=what)
        return await view_stats(calls, address, header)

    answers = await calls.fan_out.many(wanted.done, ask)
    puts: dict[str, _Sum] = {}
    gets: dict[str, dict[str, _Sum]] = {}
    for table in answers.values():
        for (name, what), data in table.items():
            if name == "TOPIC_PUT_NUMS":
                puts.setdefault(what, _Sum()).add(data)
            else:
                topic, _, group = what.partition("@")
                gets.setdefault(topic, {}).setdefault(group, _Sum()).add(data)
    rows = [
        TopicTraffic(
            topic=topic,
            put=puts[topic].told(),
            groups={group: one.told() for group, one in sorted(gets.get(topic, {}).items())},
        )
        for topic in sorted(puts)
    ]
    return Listing(rows, {**wanted.failed, **answers.failed})


async def groups_by_topic(calls: Calls, address: str) -> dict[str, list[str]]:
    """The groups that have positions in each topic at a broker (43)."""
    try:
        offsets = await calls.table(address, RequestCode.GET_ALL_CONSUMER_OFFSET, ConsumerOffsets)
    except SystemFault:
        # RocketMQ answers so as long as there are none.
        return {}
    found: dict[str, list[str]] = {}
    for key in offsets.offset_table:
        topic, _, group = key.partition("@")
        found.setdefault(topic, []).append(group)
    return found
