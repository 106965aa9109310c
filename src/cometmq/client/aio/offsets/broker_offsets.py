"""A group's positions, kept at the brokers (14, 15), and where it starts in a new queue (29, 30)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Protocol

from cometmq.base.errors import CometError
from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.aio.instance.queries import call_queue
from cometmq.client.core.consume.consume_from import Ask, At, start_of
from cometmq.model.consumption import ConsumeFromWhere
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.headers.offsets import (
    GetMaxOffsetHeader,
    OffsetReply,
    QueryConsumerOffsetHeader,
    SearchOffsetHeader,
    UpdateConsumerOffsetHeader,
)
from cometmq.protocol.reply_errors import error_for

logger = logging.getLogger("cometmq.client")


class OffsetStore(Protocol):
    """Positions of one group. ``BrokerOffsets`` for clustering, ``LocalOffsets`` for broadcasting."""

    async def read(self, queue: MessageQueue) -> int | None:
        """The stored position; None if there is none. Raises CometError if that cannot be determined."""
        ...

    async def save(self, positions: Mapping[MessageQueue, int]) -> None:
        """Store periodically while consuming; a failure is only logged, and causes repeated messages after a crash."""
        ...

    async def commit(self, positions: Mapping[MessageQueue, int]) -> None:
        """Store for another owner that continues there: on return it is stored, or an error is raised or logged."""
        ...


class BrokerOffsets:
    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._instance = instance
        self._group = group
        self._first_commits: dict[tuple[str, str], asyncio.Event] = {}
        """By broker and topic; set when the first commit there has ended, successfully or not."""

    async def read(self, queue: MessageQueue) -> int | None:
        header = QueryConsumerOffsetHeader(
            consumer_group=self._group, topic=queue.topic, queue_id=queue.queue_id
        )
        reply, address = await call_queue(
            self._instance, queue, RequestCode.QUERY_CONSUMER_OFFSET, header
        )
        if reply.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        return _offset(reply, address)

    async def save(self, positions: Mapping[MessageQueue, int]) -> None:
        for queue, offset in positions.items():
            try:
                address = await self._instance.find_broker(queue)
                command = Command(
                    RequestCode.UPDATE_CONSUMER_OFFSET, encode_fields(self._update(queue, offset))
                )
                await self._instance.oneway(address, command)
            except CometError as error:
                if error.route_is_stale:
                    self._instance.forget_route(queue.topic)
                logger.warning(
                    "position not saved group=%s queue=%s offset=%d reason=%s",
                    self._group,
                    queue,
                    offset,
                    error,
                )

    async def commit(self, positions: Mapping[MessageQueue, int]) -> None:
        failures = await asyncio.gather(
            *(self.commit_one(queue, offset) for queue, offset in positions.items()),
            return_exceptions=True,
        )
        for (queue, offset), failure in zip(positions.items(), failures, strict=True):
            if isinstance(failure, CometError):
                logger.warning(
                    "position not committed group=%s queue=%s offset=%d reason=%s",
                    self._group,
                    queue,
                    offset,
                    failure,
                )
            elif failure is not None:
                raise failure

    async def commit_one(self, queue: MessageQueue, offset: int) -> None:
        """Returns when it is stored. Raises CometError if that is not confirmed."""
        # A RocketMQ broker that does not know group and topic yet may lose one of two simultaneous commits
        # (ConsumerOffsetManager.commitOffset), so the first is sent alone.
        place = (queue.broker_name, queue.topic)
        first = self._first_commits.get(place)
        if first is not None:
            await first.wait()
            await self._commit_now(queue, offset)
            return
        first = self._first_commits[place] = asyncio.Event()
        try:
            await self._commit_now(queue, offset)
        finally:
            first.set()

    async def _commit_now(self, queue: MessageQueue, offset: int) -> None:
        reply, address = await call_queue(
            self._instance,
            queue,
            RequestCode.UPDATE_CONSUMER_OFFSET,
            self._update(queue, offset),
        )
        if reply.code != ResponseCode.SUCCESS:
            raise error_for(reply, address)

    def _update(self, queue: MessageQueue, offset: int) -> UpdateConsumerOffsetHeader:
        return UpdateConsumerOffsetHeader(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            commit_offset=offset,
            broker_name=queue.broker_name,
        )


async def start_offset(
    instance: ClientInstance,
    store: OffsetStore,
    queue: MessageQueue,
    where: ConsumeFromWhere,
    timestamp_ms: int,
) -> int:
    """Where to start in a newly assigned queue. Raises CometError if that cannot be determined now."""
    start = start_of(where, queue.topic, await store.read(queue))
    if isinstance(start, At):
        return start.offset
    if start is Ask.MAX_OFFSET:
        return _offset(
            *await call_queue(
                instance,
                queue,
                RequestCode.GET_MAX_OFFSET,
                GetMaxOffsetHeader(topic=queue.topic, queue_id=queue.queue_id),
            )
        )
    return _offset(
        *await call_queue(
            instance,
            queue,
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
            SearchOffsetHeader(topic=queue.topic, queue_id=queue.queue_id, timestamp=timestamp_ms),
        )
    )


def _offset(reply: Command, address: str) -> int:
    if reply.code != ResponseCode.SUCCESS:
        raise error_for(reply, address)
    return decode_fields(OffsetReply, reply.ext).offset
