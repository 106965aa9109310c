"""Queries that every client can send to brokers about stored messages: by id, by key, by position, by time."""

from __future__ import annotations

import asyncio

from cometmq.base.errors import CometError, UsageError
from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.blocks import AsyncBlock
from cometmq.client.core.message_lookup import (
    INDEX_STEP_MS,
    TIME_MS_MAX,
    lookup,
    with_key,
    with_unique_id,
)
from cometmq.client.core.send.publish_queues import subscribe_queues
from cometmq.client.errors import MessageNotFound, NoRoute
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message_id import OffsetId
from cometmq.model.messages.received_message import ReceivedMessage, decode_messages
from cometmq.model.names import check_topic
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import Header, decode_fields, encode_fields
from cometmq.protocol.headers.offsets import (
    GetEarliestStoreTimeHeader,
    GetMaxOffsetHeader,
    GetMinOffsetHeader,
    OffsetReply,
    SearchOffsetHeader,
    TimestampReply,
)
from cometmq.protocol.headers.query import QueryMessageHeader, ViewMessageHeader
from cometmq.protocol.reply_errors import error_for

QUERY_COUNT_MAX = 64
"""No broker returns more than this for one query."""


class Queries(AsyncBlock):
    """Queries about stored messages, part of every producer and consumer. Names are the user's, without namespace."""

    def _for_queries(self) -> ClientInstance:
        """The instance to use. Raises ClientClosed if the client is not running."""
        raise NotImplementedError

    async def view(self, message_id: str, *, topic: str | None = None) -> ReceivedMessage:
        """The message with an id.

        Args:
            message_id: an offset id, or a unique id (``message_id`` of a received message).
            topic: its topic; required to look up a unique id.

        Raises:
            UsageError: the text is not a message id, or it is a unique id and no topic is given.
            MessageNotFound: no broker has it, or no longer.
        """
        return await view(self._for_queries(), message_id, topic)

    async def query(
        self,
        topic: str,
        key: str,
        *,
        begin_ms: int = 0,
        end_ms: int = TIME_MS_MAX,
        count_max: int = 32,
    ) -> list[ReceivedMessage]:
        """Messages with a key that were stored between two times, newest first.

        All brokers of the topic are asked, each for up to ``count_max`` (at most 64).

        Raises:
            CometError: a broker could not be asked; a partial result is never returned as if it were complete.
        """
        return await query(self._for_queries(), topic, key, begin_ms, end_ms, count_max)

    async def min_offset(self, queue: MessageQueue) -> int:
        """The first offset of a queue that still exists."""
        header = GetMinOffsetHeader(topic="", queue_id=queue.queue_id)
        return await _offset(self._for_queries(), queue, RequestCode.GET_MIN_OFFSET, header)

    async def max_offset(self, queue: MessageQueue) -> int:
        """The offset of the next message of a queue."""
        header = GetMaxOffsetHeader(topic="", queue_id=queue.queue_id)
        return await _offset(self._for_queries(), queue, RequestCode.GET_MAX_OFFSET, header)

    async def offset_by_time(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The first offset stored at or after a time; a RocketMQ 4.9 broker returns the one stored closest to it."""
        header = SearchOffsetHeader(topic="", queue_id=queue.queue_id, timestamp=timestamp_ms)
        return await _offset(
            self._for_queries(), queue, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header
        )

    async def earliest_time(self, queue: MessageQueue) -> int | None:
        """When the first message of a queue was stored, in ms; None for an empty queue."""
        header = GetEarliestStoreTimeHeader(topic="", queue_id=queue.queue_id)
        reply, address = await call_queue(
            self._for_queries(), queue, RequestCode.GET_EARLIEST_MSG_STORETIME, header
        )
        if reply.code != ResponseCode.SUCCESS:
            raise error_for(reply, address)
        timestamp = decode_fields(TimestampReply, reply.ext).timestamp
        return timestamp if timestamp >= 0 else None


def wrap_queue(instance: ClientInstance, queue: MessageQueue) -> MessageQueue:
    """The queue with its wire name: its topic in the client's namespace."""
    topic = instance.wrap_topic(queue.topic)
    return queue if topic == queue.topic else MessageQueue(queue.broker_name, queue.queue_id, topic)


def unwrap_queue(instance: ClientInstance, queue: MessageQueue) -> MessageQueue:
    topic = instance.unwrap_topic(queue.topic)
    return queue if topic == queue.topic else MessageQueue(queue.broker_name, queue.queue_id, topic)


async def call_queue(
    instance: ClientInstance, queue: MessageQueue, code: RequestCode, header: Header
) -> tuple[Command, str]:
    """Call the master of a queue (a slave while there is none). Returns the reply and the address.

    The header's topic and broker name are set here, to their wire names.
    """
    wire = wrap_queue(instance, queue)
    address = await instance.find_broker(wire)
    ext = encode_fields(header)
    ext["topic"] = wire.topic
    ext["bname"] = wire.broker_name
    try:
        reply = await instance.call(address, Command(code, ext), instance.config.call_seconds)
    except CometError as error:
        if error.route_is_stale:
            instance.forget_route(wire.topic)
        raise
    return reply, address


async def readable_queues(instance: ClientInstance, topic: str) -> list[MessageQueue]:
    """All readable queues of a topic, sorted. Raises NoRoute."""
    check_topic(topic)
    wire_topic = instance.wrap_topic(topic)
    return subscribe_queues(topic, await instance.route(wire_topic))


async def view(instance: ClientInstance, message_id: str, topic: str | None) -> ReceivedMessage:
    way = lookup(message_id, topic)
    if way.place is not None:
        try:
            return await _view_at(instance, message_id, way.place)
        except CometError:
            # The address in it may not be a broker's: perhaps it is a unique id after all.
            if way.topic is None:
                raise
    assert way.topic is not None
    messages = await query_unique_id(instance, way.topic, message_id)
    found = with_unique_id(messages, way.topic, message_id)
    if found is None:
        raise MessageNotFound(f"no broker of topic {way.topic!r} has message {message_id}")
    return found


async def query_unique_id(
    instance: ClientInstance, topic: str, message_id: str
) -> list[ReceivedMessage]:
    """What the brokers' indexes have under a unique id: its message, and perhaps others with the same hash."""
    return await _query_all(
        instance,
        topic,
        QueryMessageHeader(
            topic="",
            key=message_id,
            max_num=QUERY_COUNT_MAX,
            begin_timestamp=0,
            end_timestamp=TIME_MS_MAX,
            is_unique_key=True,
        ),
    )


async def query(
    instance: ClientInstance, topic: str, key: str, begin_ms: int, end_ms: int, count_max: int
) -> list[ReceivedMessage]:
    if not key:
        raise UsageError("expected the key of a message, got an empty text")
    if not 0 < count_max <= QUERY_COUNT_MAX:
        raise UsageError(f"count_max must be 1 to {QUERY_COUNT_MAX}, not {count_max}")
    if begin_ms > end_ms:
        raise UsageError(f"begin_ms {begin_ms} is after end_ms {end_ms}")
    messages = await _query_all(
        instance,
        topic,
        QueryMessageHeader(
            topic="",
            key=key,
            max_num=count_max,
            begin_timestamp=max(begin_ms - INDEX_STEP_MS, 0),
            end_timestamp=end_ms,
        ),
    )
    return with_key(messages, topic, key, begin_ms, end_ms)


async def _query_all(
    instance: ClientInstance, topic: str, header: QueryMessageHeader
) -> list[ReceivedMessage]:
    """The results of all brokers of a topic, asked in parallel."""
    queues = await readable_queues(instance, topic)
    if not queues:
        raise NoRoute(f"topic {topic!r} has no readable queue on any broker")
    one_per_broker = {queue.broker_name: queue for queue in queues}
    found = await asyncio.gather(
        *(_query_one(instance, queue, header) for queue in one_per_broker.values())
    )
    return [message for messages in found for message in messages]


async def _query_one(
    instance: ClientInstance, queue: MessageQueue, header: QueryMessageHeader
) -> list[ReceivedMessage]:
    reply, address = await call_queue(instance, queue, RequestCode.QUERY_MESSAGE, header)
    if reply.code == ResponseCode.QUERY_NOT_FOUND:
        return []
    if reply.code != ResponseCode.SUCCESS:
        raise error_for(reply, address)
    return _unwrapped(instance, decode_messages(reply.body, queue.broker_name))


async def _view_at(instance: ClientInstance, message_id: str, place: OffsetId) -> ReceivedMessage:
    header = ViewMessageHeader(offset=place.physical_offset)
    request = Command(RequestCode.VIEW_MESSAGE_BY_ID, encode_fields(header))
    reply = await instance.call(place.address, request, instance.config.call_seconds)
    if reply.code == ResponseCode.SYSTEM_ERROR:
        # The only code that brokers have for "not found"; the remark tells the reason.
        raise MessageNotFound(f"{place.address} has no message {message_id}: {reply.remark}")
    if reply.code != ResponseCode.SUCCESS:
        raise error_for(reply, place.address)
    messages = _unwrapped(instance, decode_messages(reply.body, broker_name=""))
    if not messages:
        raise MessageNotFound(f"{place.address} answered with an empty message {message_id}")
    return messages[0]


def _unwrapped(instance: ClientInstance, messages: list[ReceivedMessage]) -> list[ReceivedMessage]:
    for message in messages:
        message.topic = instance.unwrap_topic(message.topic)
    return messages


async def _offset(
    instance: ClientInstance, queue: MessageQueue, code: RequestCode, header: Header
) -> int:
    reply, address = await call_queue(instance, queue, code, header)
    if reply.code != ResponseCode.SUCCESS:
        raise error_for(reply, address)
    return decode_fields(OffsetReply, reply.ext).offset
