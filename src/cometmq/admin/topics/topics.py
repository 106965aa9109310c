"""Topics: list, define, change, delete, and where their queues are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import msgspec

from cometmq.admin.calls import Calls, masters
from cometmq.admin.errors import no_such
from cometmq.admin.fan_out import ByServer, Listing
from cometmq.admin.target import ALL_BROKERS, Target
from cometmq.admin.topics.topic_rows import QueueRow, TopicGroups, TopicRow, TopicStatus
from cometmq.admin.topics.traffic import TopicTraffic, traffic
from cometmq.base.errors import UsageError
from cometmq.model.flags import READ_WRITE
from cometmq.model.names import AUTO_CREATE_TOPIC, DLQ_PREFIX, RETRY_PREFIX, check_topic
from cometmq.model.route import TopicRoute
from cometmq.model.topic import TopicConfig
from cometmq.protocol.bodies.group import GroupList
from cometmq.protocol.bodies.stats import TopicStats
from cometmq.protocol.bodies.topic import (
    TopicConfigList,
    TopicConfigTable,
    TopicList,
)
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.headers.admin import (
    CreateTopicHeader,
    DeleteTopicHeader,
    GetTopicStatsHeader,
    QueryTopicConsumeByWhoHeader,
)
from cometmq.protocol.headers.namesrv import DeleteTopicInNamesrvHeader, GetTopicsByClusterHeader
from cometmq.protocol.reply_errors import RequestCodeNotSupported, TopicNotExist

PERM_MAX = 7
"""Read, write, and to be inherited, as the topic is from which others are made."""

MANY_SECONDS = 15.0
"""How long a broker may take to define a thousand topics."""


class Topics:
    """``admin.topics``. Names are those on the wire: with retry topics, dead letters and namespaces."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def names(self, cluster: str | None = None) -> list[str]:
        """The names of all topics that a name server knows, or of those of one cluster (206, 224)."""
        if cluster is None:
            reply = await self._calls.ask_name_server(
                RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER
            )
        else:
            reply = await self._calls.ask_name_server(
                RequestCode.GET_TOPICS_BY_CLUSTER, GetTopicsByClusterHeader(cluster=cluster)
            )
        return sorted(set(TopicList.decode(reply.body).topic_list))

    async def definitions(self, target: Target = ALL_BROKERS) -> ByServer[dict[str, TopicConfig]]:
        """All topics by name, as each broker defines them (21)."""
        return await self._definitions(await self._calls.addresses(target))

    async def rows(self, target: Target = ALL_BROKERS) -> Listing[TopicRow]:
        """All topics with their definitions by broker: one request per broker."""
        chosen = await self._calls.places(target)
        tables = await self._definitions([place.address for place in chosen])
        by_topic: dict[str, dict[str, TopicConfig]] = {}
        for place in chosen:
            for name, config in tables.done.get(place.address, {}).items():
                by_topic.setdefault(name, {})[place.broker_name] = config
        rows = [TopicRow(name=name, by_broker=by_topic[name]) for name in sorted(by_topic)]
        return Listing(rows, tables.failed)

    async def get(self, topic: str) -> TopicRow:
        """A topic as its brokers define it.

        Raises:
            NoRoute: no name server knows it.
            PartialFailure: a broker did not answer.
        """
        addresses = masters(await self.route(topic))
        tables = await self._definitions(addresses.values())
        tables.raise_failed(f"reading topic {topic!r}")
        return TopicRow(
            name=topic,
            by_broker={
                name: tables.done[address][topic]
                for name, address in addresses.items()
                if topic in tables.done[address]
            },
        )

    async def route(self, topic: str) -> TopicRoute:
        """Where a topic is, as a name server says (105).

        Raises:
            NoRoute: it does not know the topic.
        """
        return await self._calls.route(topic)

    async def clusters(self, topic: str) -> list[str]:
        """The clusters that have a topic. Raises NoRoute."""
        route = await self.route(topic)
        return sorted({data.cluster for data in route.broker_datas})

    async def status(self, topic: str) -> TopicStatus:
        """Bounds of a topic's queues, sorted by broker and number (202).

        Raises:
            NoRoute: no name server knows it.
        """
        header = GetTopicStatsHeader(topic=topic)

        async def ask(address: str) -> TopicStats:
            return await self._calls.table(
                address, RequestCode.GET_TOPIC_STATS_INFO, TopicStats, header
            )

        addresses = await self._calls.masters_of(topic)
        answers = await self._calls.fan_out.each(addresses.values(), ask)
        rates = [stats.topic_put_tps for stats in answers.values()]
        rows = [
            QueueRow(
                queue=queue,
                min_offset=told.min_offset,
                max_offset=told.max_offset,
                updated_ms=told.last_update_timestamp,
            )
            for stats in answers.values()
            for queue, told in stats.offset_table.items()
        ]
        return TopicStatus(
            topic=topic,
            queues=sorted(rows, key=lambda row: row.queue),
            put_tps=sum(rate or 0.0 for rate in rates) if set(rates) - {None} else None,
            failed=answers.failed,
        )

    async def groups(self, topic: str) -> Listing[str]:
        """The groups that consume a topic: those online, and those with positions in it (300). Raises NoRoute."""
        header = QueryTopicConsumeByWhoHeader(topic=topic)

        async def ask(address: str) -> list[str]:
            code = RequestCode.QUERY_TOPIC_CONSUME_BY_WHO
            return (await self._calls.table(address, code, GroupList, header)).group_list

        addresses = await self._calls.masters_of(topic)
        answers = await self._calls.fan_out.each(addresses.values(), ask)
        names = {name for group in answers.values() for name in group}
        return Listing(sorted(names), answers.failed)

    async def all_groups(self, target: Target = ALL_BROKERS) -> Listing[TopicGroups]:
        """The groups of all topics but retry topics and dead letters: one request per topic and broker (300)."""
        addresses = await self._calls.addresses(target)
        tables = await self._definitions(addresses)
        wanted = {
            address: [name for name in table if not name.startswith((RETRY_PREFIX, DLQ_PREFIX))]
            for address, table in tables.done.items()
        }

        async def ask(address: str, topic: str) -> list[str]:
            header = QueryTopicConsumeByWhoHeader(topic=topic)
            code = RequestCode.QUERY_TOPIC_CONSUME_BY_WHO
            return (await self._calls.table(address, code, GroupList, header)).group_list

        answers = await self._calls.fan_out.many(wanted, ask)
        found: dict[str, set[str]] = {}
        for table in answers.values():
            for topic, names in table.items():
                found.setdefault(topic, set()).update(names)
        rows = [TopicGroups(topic=name, groups=sorted(found[name])) for name in sorted(found)]
        return Listing(rows, {**tables.failed, **answers.failed})

    async def traffic(
        self, topics: Iterable[str] = (), target: Target = ALL_BROKERS
    ) -> Listing[TopicTraffic]:
        """Rates of topics, and of their groups: of those named, or of all but retry topics and dead letters.

        It takes two requests per broker (21, 43), and one for each topic and each group of a topic there (315).
        """
        return await traffic(self._calls, await self._calls.addresses(target), frozenset(topics))

    async def create(self, config: TopicConfig, target: Target = ALL_BROKERS) -> ByServer[None]:
        """Define a topic at each broker, or change its definition (17).

        Raises:
            UsageError: the name is none, or the target may mean one of several clusters.
        """
        _check(config)

        async def ask(address: str) -> None:
            await define_topic(self._calls, address, config)

        addresses = await self._calls.addresses(target, is_change=True)
        return await self._calls.fan_out.each(addresses, ask)

    async def create_many(
        self, configs: Sequence[TopicConfig], target: Target = ALL_BROKERS
    ) -> ByServer[None]:
        """Define several topics at each broker: in one request (18), or one by one where the broker knows no 18."""
        for config in configs:
            _check(config)

        async def ask(address: str) -> None:
            await define_topics(self._calls, address, configs)

        addresses = await self._calls.addresses(target, is_change=True)
        return await self._calls.fan_out.each(addresses, ask)

    async def set_perm(
        self, topic: str, perm: int, target: Target = ALL_BROKERS
    ) -> ByServer[TopicConfig]:
        """Change who may use a topic, and nothing else of it: 6 read and write, 4 read, 2 write.

        The answers are the definitions as they were before.

        Raises:
            NoRoute: no name server knows the topic.
        """
        if perm not in (2, 4, 6):
            raise UsageError(
                f"expected a permission of 2 (write), 4 (read) or 6 (both), got {perm}"
            )
        addresses = await self._brokers_of(topic, target)

        async def ask(address: str) -> TopicConfig:
            config = (await read_topics(self._calls, address)).get(topic)
            if config is None:
                raise TopicNotExist(ResponseCode.TOPIC_NOT_EXIST, f"no topic {topic}", address)
            changed = msgspec.structs.replace(config, perm=perm, attributes=None)
            await define_topic(self._calls, address, changed)
            return config

        return await self._calls.fan_out.each(addresses, ask)

    async def delete(self, topic: str, cluster: str | None = None) -> ByServer[None]:
        """Delete a topic with all its messages: at every broker of a cluster (215), then at the name servers (216).

        Name servers forget it only if all brokers did, because a broker that still has it would tell of it again.

        Args:
            cluster: needed if there are several.

        Raises:
            NoRoute: no name server knows the topic.
            NoSuchName: the cluster is not there, or does not have the topic.
        """
        check_topic(topic)
        clusters = await self.clusters(topic)
        if cluster is not None and cluster not in clusters:
            await self._calls.places(Target(cluster=cluster))
            raise no_such(f"topic {topic!r} in cluster", cluster, clusters)
        if cluster is None and len(clusters) > 1:
            raise UsageError(
                f"topic {topic!r} is in several clusters: {', '.join(clusters)}; say in which"
            )
        chosen = await self._calls.places(Target(cluster=cluster or clusters[0]))

        async def at_broker(address: str) -> None:
            header = DeleteTopicHeader(topic=topic)
            await self._calls.ask(address, RequestCode.DELETE_TOPIC_IN_BROKER, header)

        async def at_name_server(address: str) -> None:
            header = DeleteTopicInNamesrvHeader(topic=topic, cluster_name=cluster or clusters[0])
            await self._calls.ask(address, RequestCode.DELETE_TOPIC_IN_NAMESRV, header)

        brokers = await self._calls.fan_out.each([place.address for place in chosen], at_broker)
        if brokers.failed:
            return brokers
        servers = await self._calls.fan_out.each(self._calls.name_servers, at_name_server)
        return ByServer({**brokers.done, **servers.done}, servers.failed)

    async def _definitions(self, addresses: Iterable[str]) -> ByServer[dict[str, TopicConfig]]:
        return await self._calls.fan_out.each(addresses, partial(read_topics, self._calls))

    async def _brokers_of(self, topic: str, target: Target) -> list[str]:
        """Those of a topic's masters that a target means. Raises NoRoute, NoSuchName."""
        if target.address:
            return [target.address]
        route = await self.route(topic)
        wanted = [
            data
            for data in route.broker_datas
            if target.cluster in (None, data.cluster) and target.broker in (None, data.broker_name)
        ]
        if not wanted:
            where = sorted({f"{data.cluster}/{data.broker_name}" for data in route.broker_datas})
            raise no_such(f"topic {topic!r} at", target.cluster or target.broker or "", where)
        return list(masters(TopicRoute(broker_datas=wanted)).values())


def new_topic(
    name: str,
    *,
    read_queues: int = 8,
    write_queues: int = 8,
    perm: int = READ_WRITE,
    order: bool = False,
    attributes: Mapping[str, str] | None = None,
) -> TopicConfig:
    """A definition for ``admin.topics.create``."""
    return TopicConfig(
        topic_name=name,
        read_queue_nums=read_queues,
        write_queue_nums=write_queues,
        perm=perm,
        order=order,
        attributes=dict(attributes) if attributes else None,
    )


async def read_topics(calls: Calls, address: str) -> dict[str, TopicConfig]:
    """All topics of one broker, by name."""
    table = await calls.table(address, RequestCode.GET_ALL_TOPIC_CONFIG, TopicConfigTable)
    return table.topic_config_table


async def define_topics(calls: Calls, address: str, configs: Sequence[TopicConfig]) -> None:
    """At one broker, in one request if it knows how, which RocketMQ 4 does not."""
    wired = [
        msgspec.structs.replace(config, attributes=_attribute_changes(config.attributes))
        for config in configs
    ]
    body = TopicConfigList(topic_config_list=wired).encode()
    try:
        await calls.ask(
            address, RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=body, timeout=MANY_SECONDS
        )
    except RequestCodeNotSupported:
        for config in configs:
            await define_topic(calls, address, config)


async def define_topic(calls: Calls, address: str, config: TopicConfig) -> None:
    changes = _attribute_changes(config.attributes)
    header = CreateTopicHeader(
        topic=config.topic_name,
        default_topic=AUTO_CREATE_TOPIC,
        read_queue_nums=config.read_queue_nums,
        write_queue_nums=config.write_queue_nums,
        perm=config.perm,
        topic_filter_type=config.topic_filter_type,
        topic_sys_flag=config.topic_sys_flag,
        order=config.order,
        attributes=",".join(
            f"{key}={value}" if key.startswith("+") else key for key, value in changes.items()
        )
        or None,
    )
    await calls.ask(address, RequestCode.UPDATE_AND_CREATE_TOPIC, header)


def _attribute_changes(attributes: Mapping[str, str] | None) -> dict[str, str]:
    """As the requests want them: ``+key`` sets one. A name that begins with a sign is left as it is; ``-`` removes."""
    return {
        key if key.startswith(("+", "-")) else f"+{key}": value
        for key, value in (attributes or {}).items()
    }


def _check(config: TopicConfig) -> None:
    check_topic(config.topic_name)
    for name, count in (("read", config.read_queue_nums), ("write", config.write_queue_nums)):
        if count < 1:
            raise UsageError(
                f"topic {config.topic_name!r} needs at least one {name} queue, not {count}"
            )
    if not 0 <= config.perm <= PERM_MAX:
        raise UsageError(
            f"expected a permission of 2 (write), 4 (read) or 6 (both) for topic {config.topic_name!r}, "
            f"got {config.perm}"
        )
