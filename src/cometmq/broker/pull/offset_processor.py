"""Positions of consumer groups: QUERY_CONSUMER_OFFSET and UPDATE_CONSUMER_OFFSET."""

from __future__ import annotations

from typing import Final

from cometmq.broker.topic_creation import TopicCreation
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.offsets import QueryConsumerOffsetHeader, UpdateConsumerOffsetHeader
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.consumer_offsets import OffsetTable
from cometmq.store.meta.topics import TopicTable

QUEUE_ID_MAX: Final = 65_535


class OffsetProcessor:
    def __init__(
        self,
        *,
        offsets: OffsetTable,
        topics: TopicTable,
        creation: TopicCreation,
        store: MessageStore,
    ) -> None:
        self._offsets = offsets
        self._topics = topics
        self._creation = creation
        self._store = store

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.QUERY_CONSUMER_OFFSET, self.query)
        dispatcher.add(RequestCode.UPDATE_CONSUMER_OFFSET, self.update)

    def query(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(QueryConsumerOffsetHeader, command.ext)
        offset = self._offsets.query(header.consumer_group, header.topic, header.queue_id)
        if offset < 0:
            if header.set_zero_if_not_found is False:
                raise Refused(
                    ResponseCode.QUERY_NOT_FOUND,
                    "Not found, do not set to zero, maybe this group boot first",
                )
            if not self._is_young(header.topic, header.queue_id):
                raise Refused(
                    ResponseCode.QUERY_NOT_FOUND,
                    "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first",
                )
            offset = 0
        return command.reply(ext={"offset": str(offset)})

    def update(self, connection: Connection, command: Command) -> Command:
        """Stricter than RocketMQ 4.9, which keeps whatever it is told: a client must not fill the table with names."""
        header = decode_fields(UpdateConsumerOffsetHeader, command.ext)
        if self._topics.get(header.topic) is None:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"Topic {header.topic} not exist!")
        if self._creation.group(header.consumer_group, connection) is None:
            raise Refused(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                f"Group {header.consumer_group} not exist!",
            )
        if header.commit_offset < 0 or not 0 <= header.queue_id <= QUEUE_ID_MAX:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"offset {header.commit_offset} of queue {header.queue_id} is illegal",
            )
        if self._offsets.is_reset(
            header.consumer_group, header.topic, header.queue_id, connection.peer
        ):
            # Said by one that does not know of the reset yet.
            return command.reply(remark="Offset has been previously reset", ext={})
        self._offsets.commit(
            header.consumer_group, header.topic, header.queue_id, header.commit_offset
        )
        return command.reply(ext={})

    def _is_young(self, topic: str, queue_id: int) -> bool:
        """Whether a new group should read the queue from its beginning: its first message is still in memory, or
        the queue is empty."""
        if self._store.min_offset(topic, queue_id) > 0:
            return False
        first = self._store.entries(topic, queue_id, 0, 1)
        return not first or self._store.is_in_memory(first[0][0])
