"""CONSUMER_SEND_MSG_BACK: a consumer gives a message back that it could not process.

The message goes through the delay levels to the retry topic of the group, or to its dead letters. The answer means that
the message is stored again: the consumer forgets it. So in SYNC_FLUSH it waits for the disk, as a send does.

Each consumer says how often a message may be tried again. In RocketMQ that counts for what it gives back itself; its
documents promise that the consumer which was started last decides for its group, and so it is here.
"""

from __future__ import annotations

import logging
from random import randrange
from typing import Final

from cometmq.access.rules.need import SUB
from cometmq.broker.access.may_touch import MayTouch, topic_of
from cometmq.broker.broker_stats import BrokerStats
from cometmq.broker.clients.client_registry import ClientRegistry
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.durability import Durability
from cometmq.broker.schedule.schedule import Schedule
from cometmq.broker.send.redelivery import retry_level, sent_back_form
from cometmq.broker.send.store_refusals import refusal_of, refuse_on_slave
from cometmq.broker.topic_creation import TopicCreation
from cometmq.model.flags import is_writable
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.messages.properties import RETRY_TOPIC
from cometmq.model.messages.record import BadRecord, Record, decode_record
from cometmq.model.names import topic_fault
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.send import ConsumerSendMsgBackHeader
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.store.log.new_messages import NewMessage, Stored
from cometmq.store.message_store import MessageStore

log = logging.getLogger("cometmq.broker")

LIMIT_VERSION_MIN: Final = 121
"""V3_4_9; older clients send no limit of their own that could be trusted."""


class SendBackProcessor:
    def __init__(
        self,
        *,
        live: LiveConfig,
        store: MessageStore,
        schedule: Schedule,
        clients: ClientRegistry,
        creation: TopicCreation,
        stats: BrokerStats,
        durability: Durability,
        may_touch: MayTouch,
    ) -> None:
        self._may_touch = may_touch
        self._live = live
        self._store = store
        self._schedule = schedule
        self._clients = clients
        self._creation = creation
        self._stats = stats
        self._durability = durability

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.CONSUMER_SEND_MSG_BACK, self.send_back)

    def send_back(self, connection: Connection, command: Command) -> Command | None:
        header = decode_fields(ConsumerSendMsgBackHeader, command.ext)
        group = self._group(header.group, connection)
        retry_topic = self._creation.retry_topic(group, is_unit=header.unit_mode)
        if retry_topic is None or group.retry_queue_nums <= 0:
            # Such a group does not try again; RocketMQ drops the message, too.
            return command.reply()
        if fault := topic_fault(retry_topic.topic_name):
            raise Refused(ResponseCode.SYSTEM_ERROR, fault)
        if not is_writable(retry_topic.perm):
            raise Refused(
                ResponseCode.NO_PERMISSION,
                f"the topic[{retry_topic.topic_name}] sending message is forbidden",
            )
        record = self._record(header.offset)
        self._may_touch(connection, command, topic_of(record), SUB)
        times_max = group.retry_max_times
        if header.max_reconsume_times is not None and command.version >= LIMIT_VERSION_MIN:
            times_max = self._limit(connection, header.group, header.max_reconsume_times)
        level = retry_level(record, header.delay_level, times_max)
        if level is None:
            stored = self._bury(record, group)
        else:
            queue_id = randrange(group.retry_queue_nums)
            message = sent_back_form(record, retry_topic.topic_name, queue_id, level)
            stored = self._put(message, level)
        self._stats.sent_back(record.properties.get(RETRY_TOPIC, record.topic), group.group_name)
        return self._durability.reply(connection, command, stored.end_offset)

    def _limit(self, connection: Connection, group: str, said: int) -> int:
        online = self._clients.consumer_group(group)
        return said if online is None else online.retries_max(connection, said)

    def _group(self, name: str, connection: Connection) -> SubscriptionGroupConfig:
        config = self._live.current
        refuse_on_slave(config.identity)
        group = self._creation.group(name, connection)
        if group is None:
            raise Refused(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"subscription group not exist, {name}"
            )
        if not is_writable(config.topics.permission):
            raise Refused(
                ResponseCode.NO_PERMISSION,
                f"the broker[{config.identity.ip1}] sending message is forbidden",
            )
        return group

    def _record(self, physical_offset: int) -> Record:
        view = self._store.record_at(physical_offset)
        try:
            if view is not None:
                return decode_record(view)
        except BadRecord as error:
            log.error("record damaged offset=%d error=%s", physical_offset, error)
        raise Refused(
            ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {physical_offset}"
        )

    def _bury(self, record: Record, group: SubscriptionGroupConfig) -> Stored:
        topic = self._creation.dead_letter_topic(group.group_name).topic_name
        stored = self._put(sent_back_form(record, topic, 0, 0), 0)
        origin = record.properties.get(RETRY_TOPIC, record.topic)
        self._stats.dead_letter(origin, group.group_name)
        log.info(
            "dead letter group=%s topic=%s queue_offset=%d reconsume_times=%d",
            group.group_name,
            origin,
            stored.queue_offset,
            record.reconsume_times,
        )
        return stored

    def _put(self, message: NewMessage, level: int) -> Stored:
        try:
            if level:
                stored = self._schedule.put(message, level)
                tally = self._schedule.tally
            else:
                stored = self._store.put(message)
                tally = self._stats.topic_put(message.topic)
        except Exception as error:
            self._stats.put_failed_count += 1
            refusal = refusal_of(error, self._live.current.store.log.message_bytes_max)
            if refusal is None:
                raise
            raise refusal from error
        tally.add(stored.size_bytes)
        return stored
