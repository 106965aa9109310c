"""Looking things up: messages by key and by position, and what offsets a queue has.

QUERY_MESSAGE, VIEW_MESSAGE_BY_ID, SEARCH_OFFSET_BY_TIMESTAMP, GET_MAX_OFFSET, GET_MIN_OFFSET,
GET_EARLIEST_MSG_STORETIME.
"""

from __future__ import annotations

import logging

from cometmq.access.rules.need import SUB_GET
from cometmq.broker.access.may_touch import MayTouch, topic_of
from cometmq.broker.config.live_config import LiveConfig
from cometmq.model.messages.record import BadRecord, decode_record
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Body, Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.offsets import (
    GetEarliestStoreTimeHeader,
    GetMaxOffsetHeader,
    GetMinOffsetHeader,
    SearchOffsetHeader,
)
from cometmq.protocol.headers.query import QueryMessageHeader, ViewMessageHeader
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.store.message_store import MessageStore

log = logging.getLogger("cometmq.broker")


class QueryProcessor:
    """Args: may_touch: checks the topic of a record that is looked up by its place."""

    def __init__(self, store: MessageStore, live: LiveConfig, may_touch: MayTouch) -> None:
        self._store = store
        self._live = live
        self._may_touch = may_touch

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.QUERY_MESSAGE, self.by_key)
        dispatcher.add(RequestCode.VIEW_MESSAGE_BY_ID, self.by_position)
        dispatcher.add(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, self.offset_by_time)
        dispatcher.add(RequestCode.GET_MAX_OFFSET, self.max_offset)
        dispatcher.add(RequestCode.GET_MIN_OFFSET, self.min_offset)
        dispatcher.add(RequestCode.GET_EARLIEST_MSG_STORETIME, self.earliest_store_time)

    def by_key(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(QueryMessageHeader, command.ext)
        config = self._live.current
        count = config.queries.unique_count_max if header.is_unique_key else header.max_num
        count = min(count, config.store.index.query_count_max)
        parts: list[memoryview] = []
        last_update_ms = last_update_offset = 0
        if count > 0 and header.key:
            found = self._store.query(
                header.topic, header.key, count, header.begin_timestamp, header.end_timestamp
            )
            parts = found.parts
            last_update_ms = found.last_update_ms
            last_update_offset = found.last_update_offset
        if not parts:
            raise Refused(
                ResponseCode.QUERY_NOT_FOUND,
                "can not find message, maybe time range not correct",
                ext={"indexLastUpdateTimestamp": "0", "indexLastUpdatePhyoffset": "0"},
            )
        ext = {
            "indexLastUpdateTimestamp": str(last_update_ms),
            "indexLastUpdatePhyoffset": str(last_update_offset),
        }
        return _with_parts(command.reply(ext=ext), parts)

    def by_position(self, connection: Connection, command: Command) -> Command:
        offset = decode_fields(ViewMessageHeader, command.ext).offset
        view = self._store.record_at(offset)
        if view is not None:
            try:
                record = decode_record(view)
            except BadRecord as error:
                log.error("record damaged offset=%d error=%s", offset, error)
            else:
                self._may_touch(connection, command, topic_of(record), SUB_GET)
                return _with_parts(command.reply(), [view])
        raise Refused(ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {offset}")

    def offset_by_time(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(SearchOffsetHeader, command.ext)
        offset = self._store.offset_by_time(
            header.topic,
            header.queue_id,
            header.timestamp,
            upper=(header.boundary_type or "").upper() == "UPPER",
        )
        return command.reply(ext={"offset": str(offset)})

    def max_offset(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(GetMaxOffsetHeader, command.ext)
        offset = self._store.max_offset(header.topic, header.queue_id)
        return command.reply(ext={"offset": str(offset)})

    def min_offset(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(GetMinOffsetHeader, command.ext)
        offset = self._store.min_offset(header.topic, header.queue_id)
        return command.reply(ext={"offset": str(offset)})

    def earliest_store_time(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(GetEarliestStoreTimeHeader, command.ext)
        first = self._store.min_offset(header.topic, header.queue_id)
        timestamp = self._store.store_time(header.topic, header.queue_id, first)
        return command.reply(ext={"timestamp": str(timestamp)})


def _with_parts(reply: Command, parts: list[memoryview]) -> Command:
    body_parts: list[Body] = list(parts)
    reply.body_parts = body_parts
    return reply
