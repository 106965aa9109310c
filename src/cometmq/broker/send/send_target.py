"""Where a send may go: the topic's queues and its tally, looked up once and kept while the topic stays as it is."""

from __future__ import annotations

from typing import Final

from cometmq.broker.broker_stats import FIFO, BrokerStats, PutTally
from cometmq.broker.topic_creation import TopicCreation
from cometmq.model.flags import perm_text
from cometmq.model.names import NOT_SENDABLE, RETRY_PREFIX, topic_fault
from cometmq.model.topic import TopicConfig
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.headers.send import SendMessageHeader, SendMessageHeaderV2
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.store.meta.topics import TopicTable

_TARGETS_MAX_EXTRA: Final = 1000


class SendTarget:
    """A topic as sends see it."""

    __slots__ = (
        "checked_at",
        "config",
        "fifo_tally",
        "is_dead_letter",
        "is_retry",
        "queue_count",
        "tally",
        "topic",
        "write_queue_count",
    )

    def __init__(
        self, config: TopicConfig, stats: BrokerStats, *, is_dead_letter: bool = False
    ) -> None:
        self.config = config
        self.checked_at = -1
        """The table's number of changes when this was known to be up to date."""
        self.topic = config.topic_name
        self.tally = stats.topic_put(self.topic)
        self.fifo_tally = stats.topic_put(self.topic, FIFO)
        """Of messages that name an order they belong to."""
        self.is_dead_letter = is_dead_letter
        """The message was meant for a retry topic and goes to the group's dead letters instead."""
        self.queue_count = config.queue_count
        self.write_queue_count = config.write_queue_nums
        self.is_retry = config.topic_name.startswith(RETRY_PREFIX)

    def __str__(self) -> str:
        """The config as RocketMQ prints it in a refusal."""
        config = self.config
        return (
            f"TopicConfig [topicName={config.topic_name}, readQueueNums={config.read_queue_nums}, "
            f"writeQueueNums={config.write_queue_nums}, perm={perm_text(config.perm)}, "
            f"topicFilterType={config.topic_filter_type}, topicSysFlag={config.topic_sys_flag}, "
            f"order={'true' if config.order else 'false'}]"
        )


class SendTargets:
    def __init__(self, topics: TopicTable, creation: TopicCreation, stats: BrokerStats) -> None:
        self._topics = topics
        self._creation = creation
        self._stats = stats
        self._targets: dict[str, SendTarget] = {}

    def find(
        self, header: SendMessageHeader | SendMessageHeaderV2, connection: Connection
    ) -> SendTarget:
        """The target of a send, its topic created if need be.

        Raises:
            Refused: the name is illegal or not for clients, or the topic does not exist and may not be created, at
                all or now.
        """
        topic = header.topic
        target = self._targets.get(topic)
        if target is not None:
            changes = self._topics.change_count
            if target.checked_at == changes:
                return target
            # A changed topic has a new config object, a deleted one has none.
            if target.config is self._topics.get(topic):
                target.checked_at = changes
                return target
        return self._look_up(topic, header, connection)

    @property
    def version(self) -> int:
        """Another number whenever a topic has changed."""
        return self._topics.change_count

    def known(self, topic: str) -> SendTarget | None:
        """The target of a topic that was sent to before and has not changed since."""
        target = self._targets.get(topic)
        if target is None or target.config is not self._topics.get(topic):
            return None
        return target

    def tally(self, topic: str) -> PutTally:
        """What counts the messages of a topic."""
        return self._stats.topic_put(topic)

    def is_ordered(self, topic: str) -> bool:
        config = self._topics.get(topic)
        return config is not None and config.order

    def of_retry(
        self,
        header: SendMessageHeader | SendMessageHeaderV2,
        target: SendTarget,
        connection: Connection,
    ) -> SendTarget:
        """Where a send to a retry topic goes: there, or to the dead letters once it was tried too often.

        Raises:
            Refused: there is no such group.
        """
        name = header.topic.removeprefix(RETRY_PREFIX)
        group = self._creation.group(name, connection)
        if group is None:
            raise Refused(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                f"subscription group not exist, {name}",
            )
        limit = header.max_reconsume_times
        if limit is None:
            limit = group.retry_max_times
        if header.reconsume_times < limit:
            return target
        config = self._creation.dead_letter_topic(name)
        return SendTarget(config, self._stats, is_dead_letter=True)

    def _look_up(
        self,
        topic: str,
        header: SendMessageHeader | SendMessageHeaderV2,
        connection: Connection,
    ) -> SendTarget:
        if fault := topic_fault(topic):
            raise Refused(ResponseCode.SYSTEM_ERROR, fault)
        if topic in NOT_SENDABLE:
            raise Refused(
                ResponseCode.NO_PERMISSION, f"Sending message to topic[{topic}] is forbidden."
            )
        config = self._creation.for_send(
            topic,
            header.default_topic,
            header.default_topic_queue_nums,
            connection,
            is_unit=header.unit_mode,
        )
        if config is None:
            self._targets.pop(topic, None)
            raise Refused(
                ResponseCode.TOPIC_NOT_EXIST,
                f"topic[{topic}] not exist, apply first please!\n"
                "Create it with mqadmin updateTopic, or let the broker do so (autoCreateTopicEnable).",
            )
        if len(self._targets) > len(self._topics) + _TARGETS_MAX_EXTRA:
            # Topics came and went; whatever is still in use is looked up again.
            self._targets.clear()
        target = self._targets[topic] = SendTarget(config, self._stats)
        return target
