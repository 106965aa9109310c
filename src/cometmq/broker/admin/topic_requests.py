"""Topics: create, change, delete, list. Requests 17, 18, 21, 215, 305 and 351."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from cometmq.broker.admin.admin_replies import (
    NOT_SET,
    Saved,
    is_system,
    refuse_on_slave,
    reply_when_saved,
    system_topic_names,
)
from cometmq.broker.admin.paging import PageRequest, TablePages, when_rendered
from cometmq.broker.admin.topic_attributes import changed_attributes, parse_changes
from cometmq.broker.broker_stats import BrokerStats
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.pop.pop_topics import retry_topic_v1, retry_topic_v2
from cometmq.model.names import topic_fault
from cometmq.model.topic import TopicConfig
from cometmq.protocol.bodies.topic import (
    TopicConfigList,
    TopicList,
    encode_topic_config,
)
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.admin import (
    CreateTopicHeader,
    DeleteTopicHeader,
    GetAllTopicConfigHeader,
    GetTopicConfigHeader,
)
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.consumer_offsets import OffsetTable
from cometmq.store.meta.topics import TopicTable

log = logging.getLogger("cometmq.broker")

PERM_MAX: Final = 15
FILTER_TYPES: Final = ("SINGLE_TAG", "MULTI_TAG")

Announce = Callable[[list[TopicConfig]], Awaitable[None]]


class TopicAdmin:
    """Args: announce: tells the name servers of changed topics and returns when they know, or did not answer."""

    def __init__(
        self,
        *,
        live: LiveConfig,
        topics: TopicTable,
        offsets: OffsetTable,
        store: MessageStore,
        stats: BrokerStats,
        announce: Announce,
        saved: Saved,
    ) -> None:
        self._live = live
        self._topics = topics
        self._pages = TablePages(topics)
        self._offsets = offsets
        self._store = store
        self._stats = stats
        self._announce = announce
        self._saved = saved

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.UPDATE_AND_CREATE_TOPIC, self.update)
        dispatcher.add(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, self.update_many)
        dispatcher.add(RequestCode.DELETE_TOPIC_IN_BROKER, self.delete)
        dispatcher.add(RequestCode.GET_ALL_TOPIC_CONFIG, self.all)
        dispatcher.add(RequestCode.GET_TOPIC_CONFIG, self.one)
        dispatcher.add(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, self.system)

    def update(self, connection: Connection, command: Command) -> Awaitable[Command]:
        header = decode_fields(CreateTopicHeader, command.ext)
        config = TopicConfig(
            topic_name=header.topic,
            read_queue_nums=header.read_queue_nums,
            write_queue_nums=header.write_queue_nums,
            perm=header.perm,
            topic_filter_type=header.topic_filter_type,
            topic_sys_flag=header.topic_sys_flag or 0,
            order=header.order,
            attributes=parse_changes(header.attributes),
        )
        return self._store_all(connection, command, [config])

    def update_many(self, connection: Connection, command: Command) -> Awaitable[Command]:
        return self._store_all(
            connection, command, TopicConfigList.decode(command.body).topic_config_list
        )

    def delete(self, connection: Connection, command: Command) -> Awaitable[Command]:
        topic = decode_fields(DeleteTopicHeader, command.ext).topic
        self._check_name(topic)
        refuse_on_slave(self._live.current.identity)
        # With a topic goes what groups that popped it are to try again.
        for retry_topic in self._pop_retry_topics(topic):
            self._topics.remove(retry_topic)
            self._store.delete_topic(retry_topic)
            self._offsets.remove_topic(retry_topic)
        removed = self._topics.remove(topic)
        self._store.delete_topic(topic)
        self._offsets.remove_topic(topic)
        self._stats.forget_topic(topic)
        log.info("topic deleted topic=%s known=%s by=%s", topic, removed, connection.peer)
        return reply_when_saved(self._saved, command.reply())

    def _pop_retry_topics(self, topic: str) -> list[str]:
        groups = self._offsets.groups_of(topic)
        names = [
            make(group, topic) for group in groups for make in (retry_topic_v1, retry_topic_v2)
        ]
        return [name for name in names if self._topics.get(name) is not None]

    def all(self, connection: Connection, command: Command) -> Command | Awaitable[Command]:
        header = decode_fields(GetAllTopicConfigHeader, command.ext)
        page = PageRequest(header.topic_seq, header.data_version, header.max_topic_num)

        def answer() -> Command:
            body = self._pages.body(page)
            return command.reply(ext={"totalTopicNum": str(len(self._topics))}, body=body)

        return when_rendered(self._topics, answer)

    def one(self, connection: Connection, command: Command) -> Command:
        topic = decode_fields(GetTopicConfigHeader, command.ext).topic
        config = self._topics.get(topic)
        if config is None:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"No topic in this broker. topic: {topic}")
        return command.reply(body=encode_topic_config(config))

    def system(self, connection: Connection, command: Command) -> Command:
        names = sorted(system_topic_names(self._live.current.identity))
        return command.reply(body=TopicList(topic_list=names).encode())

    def _store_all(
        self, connection: Connection, command: Command, wanted: list[TopicConfig]
    ) -> Awaitable[Command]:
        """All of ``wanted`` or, when one of them is refused, none. Set on return; saved and announced when awaited."""
        refuse_on_slave(self._live.current.identity)
        for config in wanted:
            self._check(config)
        configs = [self._with_attributes(config) for config in wanted]
        changed = [config for config in configs if config != self._topics.get(config.topic_name)]
        if changed:
            self._topics.put_many(changed)
        for config in changed:
            log.info(
                "topic set topic=%s read=%d write=%d perm=%d by=%s",
                config.topic_name,
                config.read_queue_nums,
                config.write_queue_nums,
                config.perm,
                connection.peer,
            )
        return self._announced(command, configs)

    async def _announced(self, command: Command, configs: list[TopicConfig]) -> Command:
        reply = await reply_when_saved(self._saved, command.reply(remark=NOT_SET))
        await self._announce(configs)
        return reply

    def _check(self, config: TopicConfig) -> None:
        self._check_name(config.topic_name)
        if fault := config.queues_fault(self._live.current.topics.queues_max):
            raise _refused(f"{fault} (topicQueuesMax)", "topicQueuesMax")
        if not 0 <= config.perm <= PERM_MAX:
            raise _refused(f"perm must be between 0 and {PERM_MAX}, not {config.perm}")
        if config.topic_filter_type not in FILTER_TYPES:
            raise _refused(f"topicFilterType must be one of {', '.join(FILTER_TYPES)}")

    def _check_name(self, topic: str) -> None:
        if fault := topic_fault(topic):
            raise _refused(fault)
        if is_system(topic, self._live.current.identity):
            raise _refused(f"The topic[{topic}] is conflict with system topic.")

    def _with_attributes(self, config: TopicConfig) -> TopicConfig:
        known = self._topics.get(config.topic_name)
        current = None if known is None else known.attributes or {}
        config.attributes = changed_attributes(current, config.attributes or {})
        return config


def _refused(text: str, bound: str = "") -> Refused:
    return Refused(ResponseCode.SYSTEM_ERROR, text, bound=bound)
