"""What every client can ask brokers about stored messages: by id, by key, by place, by time."""

from __future__ import annotations

import asyncio

from cometmq.base.errors import CometError, UsageError
from cometmq.client.aio.instance import ClientInstance
from cometmq.client.core.message_lookup import (
    INDEX_STEP_MS,
    TIME_MS_MAX,
    lookup,
    with_key,
    with_unique_id,
)
from cometmq.client.core.publish_queues import subscribe_queues
from cometmq.client.errors import MessageNotFound, NoRoute
from cometmq.model.message_id import OffsetId
from cometmq.model.message_queue import MessageQueue
from cometmq.model.names import check_topic
from cometmq.model.received_message import ReceivedMessage, decode_messages
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
"""More than this no broker returns to one query."""


class Queries:
    """Mixed into producers and consumers. Topics and queues are named as the user knows them, without namespace."""

    def _for_queries(self) -> ClientInstance:
        """The instance to ask through. Raises ClientClosed when the client does not run."""
        raise NotImplementedError

    async def view(self, message_id: str, *, topic: str | None = None) -> ReceivedMessage:
        """The message with an id.

        Args:
            message_id: an offset id, or a unique id (``message_id`` of a received message).
            topic: its topic; a unique id cannot be looked up without.

        Raises:
            UsageError: the text is no message id, or it is a unique id and no topic is given.
            MessageNotFound: no broker has it (any more).
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
        """Messages that carry a key and were stored between two times, newest first.

        All brokers of the topic are asked, each for at most ``count_max`` (64 at most).

        Raises:
            CometError: a broker could not be asked; what the others found is not returned as if it were all.
        """
        return await query(self._for_queries(), topic, key, begin_ms, end_ms, count_max)

    async def min_offset(self, queue: MessageQueue) -> int:
        """The first offset of a queue that is still there."""
        header = GetMinOffsetHeader(topic="", queue_id=queue.queue_id)
        return await _offset(self._for_queries(), queue, RequestCode.GET_MIN_OFFSET, header)

    async def max_offset(self, queue: MessageQueue) -> int:
        """The offset that the next message of a queue will get."""
        header = GetMaxOffsetHeader(topic="", queue_id=queue.queue_id)
        return await _offset(self._for_queries(), queue, RequestCode.GET_MAX_OFFSET, header)

    async def offset_by_time(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The first offset stored at or after a time; a RocketMQ 4.9 broker gives the one stored nearest to it."""
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
    """The queue as the wire knows it, its topic in the client's namespace."""
    topic = instance.wrap_topic(queue.topic)
    return queue if topic == queue.topic else MessageQueue(queue.broker_name, queue.queue_id, topic)


def unwrap_queue(instance: ClientInstance, queue: MessageQueue) -> MessageQueue:
    topic = instance.unwrap_topic(queue.topic)
    return queue if topic == queue.topic else MessageQueue(queue.broker_name, queue.queue_id, topic)


async def call_queue(
    instance: ClientInstance, queue: MessageQueue, code: RequestCode, header: Header
) -> tuple[Command, str]:
    """Ask the master of a queue (a slave while there is none); the reply and who gave it.

    The header's topic and broker name are set here, to what they are on the wire.
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
            # The address in it may be none of a broker: perhaps it is a unique id after all.
            if way.topic is None:
                raise
    assert way.topic is not None
    messages = await _query_all(
        instance,
        way.topic,
        QueryMessageHeader(
            topic="",
            key=message_id,
            max_num=QUERY_COUNT_MAX,
            begin_timestamp=0,
            end_timestamp=TIME_MS_MAX,
            is_unique_key=True,
        ),
    )
    found = with_unique_id(messages, way.topic, message_id)
    if found is None:
        raise MessageNotFound(f"no broker of topic {way.topic!r} has message {message_id}")
    return found


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
    """What the brokers of a topic find, asked all at once."""
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
        # The only code brokers have for "nothing is there"; the remark tells which kind of nothing.
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
