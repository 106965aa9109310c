"""Reads queues at offsets of the caller's choice, and keeps the group's positions at the broker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Self

from cometmq.base.errors import UsageError
from cometmq.client.aio.instance import ClientInstance
from cometmq.client.config import ClientConfig
from cometmq.client.core.publish_queues import subscribe_queues
from cometmq.model.flags import PullFlag
from cometmq.model.message import ReceivedMessage
from cometmq.model.message_id import parse_offset_id
from cometmq.model.message_queue import MessageQueue
from cometmq.model.names import check_group, check_topic
from cometmq.model.record import decode_record, decode_records
from cometmq.model.subscription import TAG, build_subscription
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import Header, decode_fields, encode_fields
from cometmq.protocol.headers.offsets import (
    GetMaxOffsetHeader,
    GetMinOffsetHeader,
    OffsetReply,
    QueryConsumerOffsetHeader,
    SearchOffsetHeader,
    UpdateConsumerOffsetHeader,
)
from cometmq.protocol.headers.pull import PullMessageHeader, PullMessageReply
from cometmq.protocol.headers.query import QueryMessageHeader, ViewMessageHeader
from cometmq.protocol.reply_errors import error_for

CALL_SECONDS = 3.0


class PullStatus(StrEnum):
    FOUND = "FOUND"
    NO_NEW_MSG = "NO_NEW_MSG"
    NO_MATCHED_MSG = "NO_MATCHED_MSG"
    OFFSET_ILLEGAL = "OFFSET_ILLEGAL"


_STATUS: dict[int, PullStatus] = {
    ResponseCode.SUCCESS: PullStatus.FOUND,
    ResponseCode.PULL_NOT_FOUND: PullStatus.NO_NEW_MSG,
    ResponseCode.PULL_RETRY_IMMEDIATELY: PullStatus.NO_MATCHED_MSG,
    ResponseCode.PULL_OFFSET_MOVED: PullStatus.OFFSET_ILLEGAL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PullResult:
    """``next_offset`` is where to go on, whatever the status."""

    status: PullStatus
    messages: list[ReceivedMessage]
    next_offset: int
    min_offset: int
    max_offset: int


class PullConsumer:
    """``async with PullConsumer("group", name_servers=...) as consumer: await consumer.pull(queue, offset)``."""

    def __init__(self, group: str, *, name_servers: str | Sequence[str]) -> None:
        check_group(group)
        self._group = group
        self._instance = ClientInstance(ClientConfig().with_name_servers(name_servers))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._instance.release()

    async def queues(self, topic: str) -> list[MessageQueue]:
        """All readable queues of a topic, sorted."""
        check_topic(topic)
        return subscribe_queues(topic, await self._instance.route(topic))

    async def pull(
        self,
        queue: MessageQueue,
        offset: int,
        *,
        tags: str = "*",
        count_max: int = 32,
        wait_seconds: float = 0.0,
    ) -> PullResult:
        """Up to ``count_max`` messages from ``offset`` on.

        Args:
            tags: ``*``, or tags joined by ``||``.
            wait_seconds: when nothing is there, let the broker hold the call so long for a first message.
        """
        subscription = build_subscription(queue.topic, tags)
        sys_flag = PullFlag.SUBSCRIPTION | (PullFlag.SUSPEND if wait_seconds > 0 else 0)
        header = PullMessageHeader(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_msg_nums=count_max,
            sys_flag=int(sys_flag),
            commit_offset=0,
            suspend_timeout_millis=int(wait_seconds * 1000),
            subscription=subscription.sub_string,
            sub_version=0,
            expression_type=TAG,
        )
        # A held pull may be answered up to one sweep (5 s) after its time by RocketMQ's own broker.
        reply, address = await self._call(
            queue, RequestCode.PULL_MESSAGE, header, CALL_SECONDS + wait_seconds + 5.0
        )
        status = _STATUS.get(reply.code)
        if status is None:
            raise error_for(reply, address)
        position = decode_fields(PullMessageReply, reply.ext)
        messages = [
            ReceivedMessage.from_record(record, queue.broker_name)
            for record in decode_records(reply.body)
        ]
        # The broker compares hashes; two tags may share one.
        if subscription.tags_set:
            wanted = set(subscription.tags_set)
            messages = [message for message in messages if message.tags in wanted]
        return PullResult(
            status=status,
            messages=messages,
            next_offset=position.next_begin_offset,
            min_offset=position.min_offset,
            max_offset=position.max_offset,
        )

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Everything below ``offset`` is done for this group."""
        if offset < 0:
            raise UsageError(f"cannot commit offset {offset} of {queue}")
        header = UpdateConsumerOffsetHeader(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            commit_offset=offset,
        )
        reply, address = await self._call(queue, RequestCode.UPDATE_CONSUMER_OFFSET, header)
        if reply.code != ResponseCode.SUCCESS:
            raise error_for(reply, address)

    async def committed(self, queue: MessageQueue) -> int | None:
        """The group's position, or None when it has none."""
        header = QueryConsumerOffsetHeader(
            consumer_group=self._group, topic=queue.topic, queue_id=queue.queue_id
        )
        reply, address = await self._call(queue, RequestCode.QUERY_CONSUMER_OFFSET, header)
        if reply.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        return _offset(reply, address)

    async def min_offset(self, queue: MessageQueue) -> int:
        header = GetMinOffsetHeader(topic=queue.topic, queue_id=queue.queue_id)
        return _offset(*await self._call(queue, RequestCode.GET_MIN_OFFSET, header))

    async def max_offset(self, queue: MessageQueue) -> int:
        header = GetMaxOffsetHeader(topic=queue.topic, queue_id=queue.queue_id)
        return _offset(*await self._call(queue, RequestCode.GET_MAX_OFFSET, header))

    async def offset_by_time(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The first offset stored at or after a time."""
        header = SearchOffsetHeader(
            topic=queue.topic, queue_id=queue.queue_id, timestamp=timestamp_ms
        )
        return _offset(*await self._call(queue, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header))

    async def view(self, offset_id: str) -> ReceivedMessage:
        """The message with an offset id, from the broker that the id names."""
        wanted = parse_offset_id(offset_id)
        header = ViewMessageHeader(offset=wanted.physical_offset)
        request = Command(RequestCode.VIEW_MESSAGE_BY_ID, encode_fields(header))
        reply = await self._instance.call(wanted.address, request, CALL_SECONDS)
        if reply.code != ResponseCode.SUCCESS:
            raise error_for(reply, wanted.address)
        return ReceivedMessage.from_record(decode_record(reply.body), broker_name="")

    async def query(
        self,
        topic: str,
        key: str,
        *,
        count_max: int = 32,
        begin_ms: int = 0,
        end_ms: int = 2**63 - 1,
    ) -> list[ReceivedMessage]:
        """Messages of a topic that carry a key, from all of its brokers."""
        found: list[ReceivedMessage] = []
        one_per_broker = {queue.broker_name: queue for queue in await self.queues(topic)}
        header = QueryMessageHeader(
            topic=topic, key=key, max_num=count_max, begin_timestamp=begin_ms, end_timestamp=end_ms
        )
        for broker_name, queue in one_per_broker.items():
            reply, address = await self._call(queue, RequestCode.QUERY_MESSAGE, header)
            if reply.code == ResponseCode.QUERY_NOT_FOUND:
                continue
            if reply.code != ResponseCode.SUCCESS:
                raise error_for(reply, address)
            messages = (
                ReceivedMessage.from_record(record, broker_name)
                for record in decode_records(reply.body)
            )
            # The index knows hashes only.
            found += [
                message
                for message in messages
                if message.topic == topic and (key in message.keys or key == message.message_id)
            ]
        return found

    async def _call(
        self,
        queue: MessageQueue,
        code: RequestCode,
        header: Header,
        timeout: float = CALL_SECONDS,
    ) -> tuple[Command, str]:
        address = await self._instance.find_broker(queue)
        reply = await self._instance.call(address, Command(code, encode_fields(header)), timeout)
        return reply, address


def _offset(reply: Command, address: str) -> int:
    if reply.code != ResponseCode.SUCCESS:
        raise error_for(reply, address)
    return decode_fields(OffsetReply, reply.ext).offset
