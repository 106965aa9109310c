"""Lag: of one group queue by queue (208), and of all groups at once (317)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cometmq.admin.calls import Calls
from cometmq.admin.errors import no_such
from cometmq.admin.fan_out import ByServer, Listing
from cometmq.admin.groups.group_rows import GroupProgress, GroupSummary, QueueLag
from cometmq.admin.target import Target
from cometmq.base.errors import CometError
from cometmq.client.errors import NoRoute
from cometmq.model.message_queue import MessageQueue
from cometmq.model.names import RETRY_PREFIX, SYSTEM_GROUPS, check_group
from cometmq.protocol.bodies.connection import ConsumerConnection
from cometmq.protocol.bodies.group import SubscriptionGroupTable
from cometmq.protocol.bodies.stats import BrokerConsumeStats, ConsumeStats, OffsetLag
from cometmq.protocol.bodies.topic import TopicConfigTable
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.headers.admin import (
    GetBrokerConsumeStatsHeader,
    GetConsumerConnectionHeader,
    GetConsumeStatsHeader,
)
from cometmq.protocol.reply_errors import ConsumerNotOnline

STATS_SECONDS = 15.0
"""How long a broker may take to look at all groups; RocketMQ's reads a message for each position."""


class Progress:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def of_group(self, group: str, topics: Sequence[str]) -> GroupProgress:
        check_group(group)

        async def ask(address: str) -> ConsumeStats:
            return await self.at_broker(address, group, topics)

        addresses = await self._brokers_of(group)
        answers = await self._calls.fan_out.each(addresses, ask)
        rows = [
            _lag(queue, told)
            for stats in answers.values()
            for queue, told in stats.offset_table.items()
        ]
        if not rows and answers.is_complete:
            await self.check_known(group, addresses)
        return GroupProgress(
            group=group,
            queues=sorted(rows, key=lambda row: row.queue),
            tps=sum(stats.consume_tps for stats in answers.values()),
            failed=answers.failed,
        )

    async def at_broker(self, address: str, group: str, topics: Sequence[str] = ()) -> ConsumeStats:
        """One request for each topic: RocketMQ 4 does not know lists of them."""
        chosen: list[str | None] = [*topics] or [None]
        tables = [
            await self._calls.table(
                address,
                RequestCode.GET_CONSUME_STATS,
                ConsumeStats,
                GetConsumeStatsHeader(consumer_group=group, topic=topic),
            )
            for topic in chosen
        ]
        return ConsumeStats(
            consume_tps=sum(table.consume_tps for table in tables),
            offset_table={
                queue: lag for table in tables for queue, lag in table.offset_table.items()
            },
        )

    async def members(self, group: str, addresses: Iterable[str]) -> list[str]:
        """The client ids that these brokers know of a group. Raises PartialFailure if one does not answer."""

        async def ask(address: str) -> ConsumerConnection | None:
            return await self._connection(address, group)

        answers = await self._calls.fan_out.each(addresses, ask)
        answers.raise_failed(f"asking who is online of group {group!r}")
        told = [table for table in answers.values() if table is not None]
        return sorted({one.client_id for table in told for one in table.connection_set})

    async def _connection(self, address: str, group: str) -> ConsumerConnection | None:
        """None if nobody of the group is online there."""
        try:
            return await self._calls.table(
                address,
                RequestCode.GET_CONSUMER_CONNECTION_LIST,
                ConsumerConnection,
                GetConsumerConnectionHeader(consumer_group=group),
            )
        except ConsumerNotOnline:
            return None

    async def summary(self, target: Target) -> Listing[GroupSummary]:
        calls = self._calls
        addresses = await calls.addresses(target)
        header = GetBrokerConsumeStatsHeader(is_order=False)

        async def ask(address: str) -> _Told:
            reply = await calls.ask(
                address, RequestCode.GET_BROKER_CONSUME_STATS, header, timeout=STATS_SECONDS
            )
            stats = BrokerConsumeStats.decode(reply.body)
            groups = await calls.table(
                address, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, SubscriptionGroupTable
            )
            topics = await calls.table(address, RequestCode.GET_ALL_TOPIC_CONFIG, TopicConfigTable)
            return _Told(
                stats.consume_stats_list,
                groups.subscription_group_table,
                topics.topic_config_table,
            )

        answers = await calls.fan_out.each(addresses, ask)
        names = sorted(
            {name for told in answers.values() for name in told.groups} - set(SYSTEM_GROUPS)
        )
        online = await self._online(names, answers)
        sums = _Sums()
        for told in answers.values():
            sums.add(told.stats)
        rows = [sums.row(name, online.done.get(name)) for name in names]
        return Listing(rows, {**answers.failed, **online.failed})

    async def _online(self, groups: Iterable[str], answers: ByServer[_Told]) -> _Online:
        """Who of each group is online: one broker is asked, because members greet all brokers of their retry topic."""
        wanted: dict[str, list[str]] = {}
        for number, group in enumerate(groups):
            having = [
                address
                for address, told in answers.done.items()
                if f"{RETRY_PREFIX}{group}" in told.topics
            ]
            if having:
                wanted.setdefault(having[number % len(having)], []).append(group)

        found = await self._calls.fan_out.many(wanted, self._connection)
        done = {
            group: connection
            for table in found.values()
            for group, connection in table.items()
            if connection is not None
        }
        return _Online(done, found.failed)

    async def _brokers_of(self, group: str) -> list[str]:
        """Those of its retry topic; all masters if there is none."""
        try:
            return list((await self._calls.masters_of(f"{RETRY_PREFIX}{group}")).values())
        except NoRoute:
            return await self._calls.addresses(Target())

    async def check_known(self, group: str, addresses: Iterable[str]) -> None:
        """Raises NoSuchName if none of these brokers defines the group; not if one of them does not answer."""

        async def ask(address: str) -> SubscriptionGroupTable:
            code = RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG
            return await self._calls.table(address, code, SubscriptionGroupTable)

        answers = await self._calls.fan_out.each(addresses, ask)
        names = {name for table in answers.values() for name in table.subscription_group_table}
        if group not in names and answers.is_complete:
            raise no_such("group", group, sorted(names - set(SYSTEM_GROUPS)))


class _Told:
    """What a broker tells of all its groups."""

    def __init__(
        self,
        stats: list[dict[str, list[ConsumeStats]]],
        groups: Iterable[str],
        topics: Iterable[str],
    ) -> None:
        self.stats = stats
        self.groups = set(groups)
        self.topics = set(topics)


class _Online:
    def __init__(
        self, done: Mapping[str, ConsumerConnection], failed: Mapping[str, CometError]
    ) -> None:
        self.done = done
        self.failed = failed


class _Sums:
    """Lag by group and topic, and rates by group, over several brokers."""

    def __init__(self) -> None:
        self._lags: dict[str, dict[str, int]] = {}
        self._tps: dict[str, float] = {}

    def add(self, stats: list[dict[str, list[ConsumeStats]]]) -> None:
        for of_groups in stats:
            for group, tables in of_groups.items():
                lags = self._lags.setdefault(group, {})
                for table in tables:
                    self._tps[group] = self._tps.get(group, 0.0) + table.consume_tps
                    for queue, told in table.offset_table.items():
                        lag = told.broker_offset - told.consumer_offset
                        lags[queue.topic] = lags.get(queue.topic, 0) + lag

    def row(self, group: str, online: ConsumerConnection | None) -> GroupSummary:
        lags = self._lags.get(group, {})
        members = online.connection_set if online is not None else []
        return GroupSummary(
            group=group,
            members=len(members),
            version=min((member.version for member in members), default=None),
            consume_type=(online.consume_type if online else None) or "",
            message_model=(online.message_model if online else None) or "",
            tps=self._tps.get(group, 0.0),
            lag=sum(lags.values()),
            topics=lags,
        )


def _lag(queue: MessageQueue, told: OffsetLag) -> QueueLag:
    return QueueLag(
        queue=queue,
        broker_offset=told.broker_offset,
        consumer_offset=told.consumer_offset,
        consumed_ms=told.last_timestamp,
        pull_offset=told.pull_offset,
    )
