"""Topics and groups that come into being by use: system topics at the start, sends to a new topic, retry topics.

A new topic is marked in its table, which ``table_saver`` writes to disk, and told to whoever listens: ``registration``
passes it on to the name servers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from cometmq.base.ports import Clock
from cometmq.broker.config.config_slices import IdentityConfig, TopicsConfig
from cometmq.broker.creation_limits import CreationLimits
from cometmq.model.flags import READ_WRITE, Perm, TopicFlag, is_inherited
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.names import (
    AUTO_CREATE_TOPIC,
    BENCHMARK_TOPIC,
    DLQ_PREFIX,
    OFFSET_MOVED_TOPIC,
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    SELF_TEST_TOPIC,
    SYSTEM_GROUPS,
    dlq_topic,
    group_fault,
    is_system_topic,
    reply_topic,
    retry_topic,
    topic_fault,
)
from cometmq.model.topic import TopicConfig
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.store.meta.groups import GroupTable
from cometmq.store.meta.topics import TopicTable

log = logging.getLogger("cometmq.broker")

DELAY_LEVEL_COUNT = 18
CLIENT_QUEUE_COUNT = 4
DEAD_LETTER_QUEUE_COUNT = 1
INHERITED = int(Perm.INHERIT)


def system_topics(identity: IdentityConfig, topics: TopicsConfig) -> list[TopicConfig]:
    """What every broker has from its start, as RocketMQ does."""
    found = [
        _topic(SELF_TEST_TOPIC, 1),
        _topic(BENCHMARK_TOPIC, 1024),
        _topic(identity.cluster_name, 16, _named_perm(topics.cluster_topic)),
        _topic(identity.broker_name, 1, _named_perm(topics.broker_topic)),
        _topic(OFFSET_MOVED_TOPIC, 1),
        _topic(SCHEDULE_TOPIC, DELAY_LEVEL_COUNT),
        _topic(reply_topic(identity.cluster_name), 1),
    ]
    if topics.auto_create_topic:
        found.append(_topic(AUTO_CREATE_TOPIC, topics.default_queue_count, READ_WRITE | INHERITED))
    if topics.trace_topic:
        found.append(_topic(topics.trace_topic_name, 1))
    # A broker named like its cluster shares the topic; the first entry, the cluster's, wins.
    return list({config.topic_name: config for config in reversed(found)}.values())


def inherited_topic(
    topic: str, parent: TopicConfig, queue_count: int, sys_flag: int = 0
) -> TopicConfig | None:
    """The config of a topic auto-created after ``parent``, or None when the parent does not allow it."""
    count = min(queue_count, parent.write_queue_nums)
    if not is_inherited(parent.perm) or count <= 0:
        return None
    return TopicConfig(
        topic_name=topic,
        read_queue_nums=count,
        write_queue_nums=count,
        perm=parent.perm & ~INHERITED,
        topic_filter_type=parent.topic_filter_type,
        topic_sys_flag=sys_flag,
    )


class TopicCreation:
    """Creates topics and groups in their tables."""

    def __init__(
        self,
        topics: TopicTable,
        groups: GroupTable,
        config: TopicsConfig,
        *,
        clock: Clock,
    ) -> None:
        self._topics = topics
        self._groups = groups
        self._config = config
        self._limits = CreationLimits(config, clock)
        self.created: list[Callable[[TopicConfig], None]] = []
        """Told of every topic created here, after it is in the table."""
        self.auto_created: list[Callable[[TopicConfig], None]] = []
        """Told of those that a client's send created."""

    def apply(self, config: TopicsConfig) -> None:
        """Settings changed."""
        self._config = config
        self._limits.apply(config)

    def create_system_entries(self, identity: IdentityConfig) -> None:
        """Add the system topics and groups that a loaded table lacks."""
        self._topics.put_many(
            [
                config
                for config in system_topics(identity, self._config)
                if self._topics.get(config.topic_name) is None
            ]
        )
        for name in SYSTEM_GROUPS:
            if self._groups.get(name) is None:
                self._groups.put(SubscriptionGroupConfig(group_name=name))

    def create_lost_entries(self, queue_counts: Mapping[str, int]) -> None:
        """Give every topic that has messages an entry: the last changes of the table can be lost in a crash.

        Args:
            queue_counts: topics in the store, with the number of queues that certainly exist.
        """
        lost = [
            # A client asks for four queues unless told otherwise; more than that is known from the store.
            _topic(topic, max(count, CLIENT_QUEUE_COUNT))
            for topic, count in queue_counts.items()
            if self._topics.get(topic) is None and not is_system_topic(topic)
        ]
        for config in lost:
            log.warning(
                "topic restored topic=%s queues=%d reason=messages without a table entry",
                config.topic_name,
                config.queue_count,
            )
        self._topics.put_many(lost)

    def restore(self, topic: str, queue_count: int) -> None:
        """Make sure that a topic exists to which an accepted message is delivered late, with so many queues at least.

        It was there when the message came. It may have been deleted meanwhile, or its entry was lost in a crash.
        """
        if self._topics.get(topic) is None:
            is_of_group = topic.startswith((RETRY_PREFIX, DLQ_PREFIX))
            least = queue_count if is_of_group else max(queue_count, CLIENT_QUEUE_COUNT)
            self._add(_topic(topic, least))

    def system_topic(self, topic: str) -> None:
        """Make sure that a topic of the system's own exists, which its first use creates."""
        if self._topics.get(topic) is None:
            self._add(_topic(topic, 1))

    def dead_letter_topic(self, group: str) -> TopicConfig:
        """The topic of a group's dead letters, which the first of them creates.

        Raises:
            Refused: the group's name is too long for it.
        """
        name = dlq_topic(group)
        if fault := topic_fault(name):
            raise Refused(ResponseCode.SYSTEM_ERROR, fault)
        return self._topics.get(name) or self._add(_topic(name, DEAD_LETTER_QUEUE_COUNT))

    def for_send(
        self,
        topic: str,
        default_topic: str,
        queue_count: int,
        connection: Connection,
        *,
        is_unit: bool,
    ) -> TopicConfig | None:
        """The config of a topic a client sends to, created if that is allowed; None when it is not.

        Raises:
            Refused: too many are created by use.
        """
        known = self._topics.get(topic)
        if known is not None:
            return known
        sys_flag = int(TopicFlag.UNIT) if is_unit else 0
        if topic.startswith(RETRY_PREFIX):
            self._limits.take_topic(topic, connection, len(self._topics))
            return self._add(_topic(topic, 1, sys_flag=int(TopicFlag.UNIT_SUB) if is_unit else 0))
        parent = self._topics.get(default_topic)
        if parent is None:
            return None
        if default_topic == AUTO_CREATE_TOPIC and not self._config.auto_create_topic:
            return None
        created = inherited_topic(topic, parent, queue_count, sys_flag)
        if created is None:
            return None
        self._limits.take_topic(topic, connection, len(self._topics))
        self._add(created)
        for tell in self.auto_created:
            tell(created)
        return created

    def retry_topic(
        self, group: SubscriptionGroupConfig, *, is_unit: bool = False
    ) -> TopicConfig | None:
        """The retry topic of a group, created if need be; None when the group has no queues for it."""
        name = retry_topic(group.group_name)
        known = self._topics.get(name)
        if known is not None or group.retry_queue_nums <= 0:
            return known
        sys_flag = int(TopicFlag.UNIT_SUB) if is_unit else 0
        return self._add(_topic(name, group.retry_queue_nums, sys_flag=sys_flag))

    def group(self, name: str, connection: Connection) -> SubscriptionGroupConfig | None:
        """A group's config, created if that is allowed; None when it is not.

        Raises:
            Refused: the name is no legal one, and so cannot be created; or too many are created by use.
        """
        known = self._groups.get(name)
        if known is not None or not self._config.auto_create_group:
            return known
        if fault := group_fault(name):
            raise Refused(ResponseCode.SYSTEM_ERROR, fault)
        self._limits.take_group(name, connection, len(self._groups))
        created = SubscriptionGroupConfig(group_name=name)
        self._groups.put(created)
        return created

    def _add(self, config: TopicConfig) -> TopicConfig:
        self._topics.put(config)
        log.info(
            "topic created topic=%s queues=%d perm=%d",
            config.topic_name,
            config.queue_count,
            config.perm,
        )
        for tell in self.created:
            tell(config)
        return config


def _named_perm(is_enabled: bool) -> int:
    return INHERITED | (READ_WRITE if is_enabled else 0)


def _topic(name: str, queues: int, perm: int = READ_WRITE, *, sys_flag: int = 0) -> TopicConfig:
    return TopicConfig(
        topic_name=name,
        read_queue_nums=queues,
        write_queue_nums=queues,
        perm=perm,
        topic_sys_flag=sys_flag,
    )
