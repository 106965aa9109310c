"""Consumer groups: list, define, change, delete."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from cometmq.admin.calls import Calls
from cometmq.admin.fan_out import ByServer, Listing
from cometmq.admin.groups.group_rows import GroupProgress, GroupRow, GroupSummary
from cometmq.admin.groups.progress import Progress
from cometmq.admin.target import ALL_BROKERS, Target
from cometmq.base.errors import UsageError
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.names import DLQ_PREFIX, RETRY_PREFIX, SYSTEM_GROUPS, check_group, check_topic
from cometmq.protocol.bodies.group import (
    GroupForbidden,
    SubscriptionGroupList,
    SubscriptionGroupTable,
    encode_group_config,
)
from cometmq.protocol.bodies.pop import SetMessageRequestModeBody
from cometmq.protocol.bodies.topic import TopicList
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.headers.admin import (
    DeleteGroupHeader,
    DeleteTopicHeader,
    GroupForbiddenHeader,
    QueryTopicsByConsumerHeader,
)
from cometmq.protocol.headers.namesrv import DeleteTopicInNamesrvHeader
from cometmq.protocol.reply_errors import RequestCodeNotSupported

MANY_SECONDS = 15.0
"""How long a broker may take to define a thousand groups."""


class Groups:
    """``admin.groups``"""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._progress = Progress(calls)

    async def names(
        self, target: Target = ALL_BROKERS, *, with_system: bool = False
    ) -> Listing[str]:
        """The names of all groups that a broker knows; those that RocketMQ keeps for itself only if asked for."""
        rows = await self.rows(target)
        names = [row.name for row in rows if with_system or row.name not in SYSTEM_GROUPS]
        return Listing(names, rows.failed)

    async def check_known(self, group: str, target: Target = ALL_BROKERS) -> None:
        """Nothing, if a broker defines a group, or one does not answer and may. Raises NoSuchName."""
        check_group(group)
        await self._progress.check_known(group, await self._calls.addresses(target))

    async def definitions(
        self, target: Target = ALL_BROKERS
    ) -> ByServer[dict[str, SubscriptionGroupConfig]]:
        """All groups by name, as each broker defines them (201)."""
        return await self._calls.fan_out.each(
            await self._calls.addresses(target), partial(read_groups, self._calls)
        )

    async def rows(self, target: Target = ALL_BROKERS) -> Listing[GroupRow]:
        """All groups with their definitions by broker: one request per broker."""
        chosen = await self._calls.places(target)
        tables = await self._calls.fan_out.each(
            [place.address for place in chosen], partial(read_groups, self._calls)
        )
        by_group: dict[str, dict[str, SubscriptionGroupConfig]] = {}
        for place in chosen:
            for name, config in tables.done.get(place.address, {}).items():
                by_group.setdefault(name, {})[place.broker_name] = config
        rows = [GroupRow(name=name, by_broker=by_group[name]) for name in sorted(by_group)]
        return Listing(rows, tables.failed)

    async def create(
        self, config: SubscriptionGroupConfig, target: Target = ALL_BROKERS
    ) -> ByServer[None]:
        """Define a group at each broker, or change its definition (200).

        Raises:
            UsageError: the name is none, or the target may mean one of several clusters.
        """
        check_group(config.group_name)

        async def ask(address: str) -> None:
            await define_group(self._calls, address, config)

        addresses = await self._calls.addresses(target, is_change=True)
        return await self._calls.fan_out.each(addresses, ask)

    async def create_many(
        self, configs: Sequence[SubscriptionGroupConfig], target: Target = ALL_BROKERS
    ) -> ByServer[None]:
        """Define several groups at each broker: in one request (225), or one by one where the broker knows no 225."""
        for config in configs:
            check_group(config.group_name)

        async def ask(address: str) -> None:
            await define_groups(self._calls, address, configs)

        addresses = await self._calls.addresses(target, is_change=True)
        return await self._calls.fan_out.each(addresses, ask)

    async def delete(
        self,
        group: str,
        target: Target = ALL_BROKERS,
        *,
        remove_offsets: bool = False,
        remove_topics: bool = True,
    ) -> ByServer[None]:
        """Delete a group's definition at each broker (207).

        Args:
            remove_offsets: its positions, too; else a group of the same name goes on where this one stopped.
            remove_topics: its retry topic and dead letters, too (215, 216). Not with the address of a single broker.
        """
        check_group(group)
        chosen = await self._calls.addresses(target, is_change=True)
        header = DeleteGroupHeader(
            group_name=group, clean_offset=remove_offsets, remove_offset=remove_offsets
        )
        topics = (
            [f"{RETRY_PREFIX}{group}", f"{DLQ_PREFIX}{group}"]
            if remove_topics and not target.address
            else []
        )

        async def at_broker(address: str) -> None:
            await self._calls.ask(address, RequestCode.DELETE_SUBSCRIPTIONGROUP, header)
            for topic in topics:
                code = RequestCode.DELETE_TOPIC_IN_BROKER
                await self._calls.ask(address, code, DeleteTopicHeader(topic=topic))

        async def at_name_server(address: str) -> None:
            for topic in topics:
                code = RequestCode.DELETE_TOPIC_IN_NAMESRV
                await self._calls.ask(
                    address,
                    code,
                    DeleteTopicInNamesrvHeader(topic=topic, cluster_name=target.cluster),
                )

        brokers = await self._calls.fan_out.each(chosen, at_broker)
        if brokers.failed or not topics or target.broker:
            return brokers
        servers = await self._calls.fan_out.each(self._calls.name_servers, at_name_server)
        return ByServer({**brokers.done, **servers.done}, servers.failed)

    async def set_consume_mode(
        self,
        group: str,
        topic: str,
        mode: str,
        *,
        pop_share_queues: int = 0,
        target: Target = ALL_BROKERS,
    ) -> ByServer[None]:
        """Have the members of a group pull or pop a topic (401), if brokers share out its queues.

        Args:
            mode: PULL or POP.
            pop_share_queues: with POP, how many other members get each queue, too.

        Raises:
            UsageError: another mode, or a name that is none.
        """
        check_group(group)
        check_topic(topic)
        if mode not in ("PULL", "POP"):
            raise UsageError(f"expected the mode PULL or POP, got {mode!r}")
        body = SetMessageRequestModeBody(
            topic=topic, consumer_group=group, mode=mode, pop_share_queue_num=pop_share_queues
        ).encode()

        async def ask(address: str) -> None:
            await self._calls.ask(address, RequestCode.SET_MESSAGE_REQUEST_MODE, body=body)

        addresses = await self._calls.addresses(target, is_change=True)
        return await self._calls.fan_out.each(addresses, ask)

    async def is_readable(
        self, group: str, topic: str, target: Target = ALL_BROKERS
    ) -> ByServer[bool]:
        """Whether each broker lets a group read a topic (353)."""
        return await self._forbidden(group, topic, None, await self._calls.addresses(target))

    async def set_readable(
        self, group: str, topic: str, readable: bool, target: Target = ALL_BROKERS
    ) -> ByServer[bool]:
        """Let a group read a topic, or forbid it (353). The answers are what counts from now on."""
        addresses = await self._calls.addresses(target, is_change=True)
        return await self._forbidden(group, topic, readable, addresses)

    async def topics(self, group: str, target: Target = ALL_BROKERS) -> Listing[str]:
        """The topics in which a group has positions (343; RocketMQ 4 answers 208 instead)."""
        header = QueryTopicsByConsumerHeader(group=group)

        async def ask(address: str) -> list[str]:
            try:
                code = RequestCode.QUERY_TOPICS_BY_CONSUMER
                return (await self._calls.table(address, code, TopicList, header)).topic_list
            except RequestCodeNotSupported:
                stats = await self._progress.at_broker(address, group)
                return [queue.topic for queue in stats.offset_table]

        answers = await self._calls.fan_out.each(await self._calls.addresses(target), ask)
        return Listing(
            sorted({name for found in answers.values() for name in found}), answers.failed
        )

    async def progress(self, group: str, topics: Sequence[str] = ()) -> GroupProgress:
        """How far a group is in all its topics, or in some (208).

        The brokers of its retry topic are asked; all masters if it has none.

        Raises:
            NoSuchName: no broker knows the group.
        """
        return await self._progress.of_group(group, topics)

    async def summary(self, target: Target = ALL_BROKERS) -> Listing[GroupSummary]:
        """All groups, each in a row: members, rate and lag.

        It takes three requests per broker (21, 201, 317), and one per group that ever was online (203).
        """
        return await self._progress.summary(target)

    async def _forbidden(
        self, group: str, topic: str, readable: bool | None, addresses: Sequence[str]
    ) -> ByServer[bool]:
        check_group(group)
        header = GroupForbiddenHeader(group=group, topic=topic, readable=readable)

        async def ask(address: str) -> bool:
            code = RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN
            told = await self._calls.table(address, code, GroupForbidden, header)
            return told.readable is not False

        return await self._calls.fan_out.each(addresses, ask)


async def read_groups(calls: Calls, address: str) -> dict[str, SubscriptionGroupConfig]:
    """All groups of one broker, by name."""
    code = RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG
    table = await calls.table(address, code, SubscriptionGroupTable)
    return table.subscription_group_table


async def define_groups(
    calls: Calls, address: str, configs: Sequence[SubscriptionGroupConfig]
) -> None:
    """At one broker, in one request if it knows how, which RocketMQ 4 does not."""
    body = SubscriptionGroupList(group_config_list=list(configs)).encode()
    try:
        await calls.ask(
            address,
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
            body=body,
            timeout=MANY_SECONDS,
        )
    except RequestCodeNotSupported:
        for config in configs:
            await define_group(calls, address, config)


async def define_group(calls: Calls, address: str, config: SubscriptionGroupConfig) -> None:
    code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
    await calls.ask(address, code, body=encode_group_config(config))


def new_group(name: str, *, retries: int = 16, is_enabled: bool = True) -> SubscriptionGroupConfig:
    """A definition for ``admin.groups.create``."""
    if retries < -1:
        raise UsageError(f"expected a number of retries, got {retries}")
    return SubscriptionGroupConfig(
        group_name=name, retry_max_times=retries, consume_enable=is_enabled
    )
