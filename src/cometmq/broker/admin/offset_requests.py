"""Committed offsets, those of delay levels, and who consumes what: requests 43, 45, 300, 308, 314, 343 and 345."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Final

from cometmq.broker.admin.admin_replies import refuse_on_slave
from cometmq.broker.admin.paging import when_rendered
from cometmq.broker.clients.client_registry import ClientRegistry
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.schedule.schedule import Delays
from cometmq.model.topic import TopicConfig
from cometmq.protocol.bodies.group import GroupList, SubscriptionOfGroup
from cometmq.protocol.bodies.offsets import CorrectionOffsets
from cometmq.protocol.bodies.topic import TopicList
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.admin import (
    CloneGroupOffsetHeader,
    QueryCorrectionOffsetHeader,
    QuerySubscriptionByConsumerHeader,
    QueryTopicConsumeByWhoHeader,
    QueryTopicsByConsumerHeader,
)
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.consumer_offsets import OffsetTable
from cometmq.store.meta.topics import TopicTable

log = logging.getLogger("cometmq.broker")

JAVA_LONG_MAX: Final = 2**63 - 1


class OffsetAdmin:
    """Args: address: the advertised ``ip:port`` of this broker."""

    def __init__(
        self,
        *,
        live: LiveConfig,
        address: str,
        offsets: OffsetTable,
        delays: Delays,
        topics: TopicTable,
        clients: ClientRegistry,
        store: MessageStore,
    ) -> None:
        self._live = live
        self._address = address
        self._offsets = offsets
        self._delays = delays
        self._topics = topics
        self._clients = clients
        self._store = store

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.GET_ALL_CONSUMER_OFFSET, self.all)
        dispatcher.add(RequestCode.GET_ALL_DELAY_OFFSET, self.delay_levels)
        dispatcher.add(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, self.groups_of_topic)
        dispatcher.add(RequestCode.QUERY_TOPICS_BY_CONSUMER, self.topics_of_group)
        dispatcher.add(RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER, self.subscription)
        dispatcher.add(RequestCode.QUERY_CORRECTION_OFFSET, self.corrections)
        dispatcher.add(RequestCode.CLONE_GROUP_OFFSET, self.clone)

    def all(self, connection: Connection, command: Command) -> Command | Awaitable[Command]:
        """Everything, as a slave copies it."""
        return when_rendered(self._offsets, lambda: command.reply(body=self._offsets.encode()))

    def delay_levels(self, connection: Connection, command: Command) -> Command:
        """How far each delay level has been delivered, as a slave copies it."""
        return command.reply(body=self._delays.encode())

    def groups_of_topic(self, connection: Connection, command: Command) -> Command:
        topic = decode_fields(QueryTopicConsumeByWhoHeader, command.ext).topic
        groups = set(self._clients.groups_subscribing(topic)) | self._offsets.groups_of(topic)
        return command.reply(body=GroupList(group_list=sorted(groups)).encode())

    def topics_of_group(self, connection: Connection, command: Command) -> Command:
        group = decode_fields(QueryTopicsByConsumerHeader, command.ext).group
        topics = sorted(self._offsets.topics_of(group))
        return command.reply(body=TopicList(topic_list=topics, broker_addr=self._address).encode())

    def subscription(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(QuerySubscriptionByConsumerHeader, command.ext)
        online = self._clients.consumer_group(header.group)
        subscription = online.subscriptions.get(header.topic or "") if online else None
        body = SubscriptionOfGroup(
            group=header.group, topic=header.topic, subscription_data=subscription
        )
        return command.reply(body=body.encode())

    def corrections(self, connection: Connection, command: Command) -> Command:
        """The lowest offset of all groups by queue; "none" where the asking group itself is behind that."""
        header = decode_fields(QueryCorrectionOffsetHeader, command.ext)
        filtered = {name.strip() for name in (header.filter_groups or "").split(",")}
        lowest: dict[int, int] = {}
        for group in self._offsets.groups_of(header.topic) - filtered:
            for queue_id, offset in self._offsets.offsets(group, header.topic).items():
                if offset >= self._store.min_offset(header.topic, queue_id):
                    lowest[queue_id] = min(offset, lowest.get(queue_id, offset))
        for queue_id, own in self._offsets.offsets(header.compare_group, header.topic).items():
            if lowest.get(queue_id, JAVA_LONG_MAX) > own:
                lowest[queue_id] = JAVA_LONG_MAX
        return command.reply(body=CorrectionOffsets(correction_offsets=lowest).encode())

    def clone(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(CloneGroupOffsetHeader, command.ext)
        refuse_on_slave(self._live.current.identity)
        topic = (header.topic or "").strip()
        wanted = {topic} if topic else self._offsets.topics_of(header.src_group)
        for name in sorted(wanted):
            if self._is_cloneable(
                self._topics.get(name), header.src_group, is_offline=header.offline
            ):
                self._offsets.clone(header.src_group, header.dest_group, name)
                log.info(
                    "offsets cloned topic=%s from=%s to=%s by=%s",
                    name,
                    header.src_group,
                    header.dest_group,
                    connection.peer,
                )
        return command.reply()

    def _is_cloneable(self, topic: TopicConfig | None, group: str, *, is_offline: bool) -> bool:
        if topic is None:
            return False
        online = None if is_offline else self._clients.consumer_group(group)
        return online is None or topic.topic_name in online.subscriptions
