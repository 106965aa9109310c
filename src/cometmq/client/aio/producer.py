"""Sends messages: choose a queue, pack the request, read the answer, try another broker where that is safe."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Self

from cometmq.base.errors import CallTimedOut, CometError, UsageError
from cometmq.base.ports import Clock
from cometmq.client.aio.instance import ClientInstance
from cometmq.client.aio.local_month import month_of
from cometmq.client.config import ClientConfig
from cometmq.client.core.prepare import property_text
from cometmq.client.core.publish_queues import publish_queues
from cometmq.client.core.queue_selector import RoundRobin
from cometmq.client.errors import NoRoute
from cometmq.model.batch import BatchElement, encode_batch
from cometmq.model.compression import compress
from cometmq.model.message import Message
from cometmq.model.message_queue import MessageQueue
from cometmq.model.names import AUTO_CREATE_TOPIC, check_group, check_topic
from cometmq.model.properties import WAIT, render_properties
from cometmq.model.unique_key import UniqueKeys
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.headers.send import SendMessageHeaderV2, SendMessageReply
from cometmq.protocol.reply_errors import error_for

BODY_BYTES_MAX = 4 * 1024 * 1024
COMPRESS_FROM_BYTES = 4096
ATTEMPTS_MAX = 3


class SendStatus(StrEnum):
    """All four mean stored; the last three say which promise was not confirmed in time."""

    SEND_OK = "SEND_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


_STORED = {
    ResponseCode.SUCCESS: SendStatus.SEND_OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    """Where a message lies. Of a batch: ``queue_offset`` of the first, ids joined by commas."""

    status: SendStatus
    message_id: str
    offset_id: str
    queue: MessageQueue
    queue_offset: int


class Producer:
    """``async with Producer("orders", name_servers="127.0.0.1:9876") as producer: await producer.send(message)``."""

    def __init__(
        self, group: str, *, name_servers: str | Sequence[str], clock: Clock | None = None
    ) -> None:
        check_group(group)
        self._group = group
        self._instance = ClientInstance(ClientConfig().with_name_servers(name_servers), clock=clock)
        self._selector = RoundRobin(random.randrange(1 << 16))
        self._keys = UniqueKeys(
            address=bytes((127, 0, 0, 1)),
            process_id=os.getpid(),
            # Tells the producers of one process apart, as Java's class loader hash does.
            instance_hash=random.getrandbits(32),
            month_of=month_of,
        )

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
        """The queues the topic can be sent to.

        Raises:
            NoRoute: none.
        """
        queues = publish_queues(topic, await self._instance.publish_route(topic))
        if not queues:
            raise NoRoute(f"topic {topic!r} has no writable queue on any master")
        return queues

    async def send(
        self, message: Message, *, queue: MessageQueue | None = None, timeout: float = 3.0
    ) -> SendResult:
        """Send and wait until the broker has stored the message.

        Args:
            queue: this queue and no other; the send is then tried once.
            timeout: seconds for the whole call, all attempts together.

        Raises:
            UsageError: the message can never be sent as it is.
            CometError: not confirmed; ``retryable`` says whether the same send may be tried again.
        """
        request, message_id = self._single(message)
        return await self._send(message.topic, request, [message_id], queue, timeout)

    async def send_batch(
        self,
        messages: Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        timeout: float = 3.0,
    ) -> SendResult:
        """Several messages of one topic in one request: stored together, in order, in one queue."""
        if not messages:
            raise UsageError("a batch needs at least one message")
        topics = {message.topic for message in messages}
        if len(topics) > 1:
            raise UsageError(f"a batch goes to one topic, not to {sorted(topics)}")
        ids: list[str] = []
        elements: list[BatchElement] = []
        for message in messages:
            text, message_id = self._properties(message)
            ids.append(message_id)
            elements.append(BatchElement(message.flag, message.body, text.encode()))
        header = self._header(messages[0].topic, 0, 0, render_properties({WAIT: "true"}))
        header.batch = True
        body = encode_batch(elements)
        if len(body) > BODY_BYTES_MAX:
            raise UsageError(f"batch of {len(body)} bytes, at most {BODY_BYTES_MAX}; split it")
        request = _Request(RequestCode.SEND_BATCH_MESSAGE, header, body)
        return await self._send(messages[0].topic, request, ids, queue, timeout)

    async def send_oneway(self, message: Message, *, queue: MessageQueue | None = None) -> None:
        """Send without waiting for an answer: fast, and nobody learns of a failure."""
        request, _ = self._single(message)
        target = queue or self._selector.select(await self.queues(message.topic))
        await self._instance.oneway(await self._instance.find_broker(target), request.to(target))

    async def _send(
        self,
        topic: str,
        request: _Request,
        ids: list[str],
        queue: MessageQueue | None,
        timeout: float,
    ) -> SendResult:
        deadline = self._instance.clock.monotonic() + timeout
        failed_broker: str | None = None
        for attempt in range(1, ATTEMPTS_MAX + 1):
            remaining = deadline - self._instance.clock.monotonic()
            if remaining <= 0:
                raise CallTimedOut(f"no broker took the message within {timeout} s", sent=True)
            target = queue or self._selector.select(await self.queues(topic), failed_broker)
            try:
                return await self._send_once(target, request, ids, remaining)
            except CometError as error:
                if error.route_is_stale:
                    self._instance.forget_route(topic)
                if queue is not None or not error.retryable or attempt == ATTEMPTS_MAX:
                    raise
                failed_broker = target.broker_name
        raise AssertionError("the last attempt returns or raises")

    async def _send_once(
        self, target: MessageQueue, request: _Request, ids: list[str], timeout: float
    ) -> SendResult:
        address = await self._instance.find_broker(target)
        reply = await self._instance.call(address, request.to(target), timeout)
        status = _STORED.get(reply.code)  # type: ignore[call-overload]
        if status is None:
            raise error_for(reply, address)
        stored = decode_fields(SendMessageReply, reply.ext)
        return SendResult(
            status=status,
            message_id=",".join(ids),
            offset_id=stored.msg_id,
            queue=target,
            queue_offset=stored.queue_offset,
        )

    def _single(self, message: Message) -> tuple[_Request, str]:
        text, message_id = self._properties(message)
        body, sys_flag = message.body, 0
        if len(body) >= COMPRESS_FROM_BYTES:
            packed, bits = compress(body)
            # Random or already packed data grows; then the plain body is the better one.
            if len(packed) < len(body):
                body, sys_flag = packed, bits
        header = self._header(message.topic, message.flag, sys_flag, text)
        return _Request(RequestCode.SEND_MESSAGE_V2, header, body), message_id

    def _properties(self, message: Message) -> tuple[str, str]:
        check_topic(message.topic)
        if not message.body:
            raise UsageError(f"message to {message.topic!r} has an empty body")
        if len(message.body) > BODY_BYTES_MAX:
            raise UsageError(f"body of {len(message.body)} bytes, at most {BODY_BYTES_MAX}")
        message_id = self._keys.next(self._instance.clock.wall_ms())
        return property_text(message, message_id), message_id

    def _header(self, topic: str, flag: int, sys_flag: int, properties: str) -> SendMessageHeaderV2:
        return SendMessageHeaderV2(
            producer_group=self._group,
            topic=topic,
            default_topic=AUTO_CREATE_TOPIC,
            default_topic_queue_nums=4,
            queue_id=0,
            sys_flag=sys_flag,
            born_timestamp=self._instance.clock.wall_ms(),
            flag=flag,
            properties=properties,
            reconsume_times=0,
            unit_mode=False,
            batch=False,
        )


class _Request:
    """A send that is ready but for its queue."""

    __slots__ = ("_body", "_code", "_header")

    def __init__(self, code: RequestCode, header: SendMessageHeaderV2, body: bytes) -> None:
        self._code = code
        self._header = header
        self._body = body

    def to(self, queue: MessageQueue) -> Command:
        self._header.queue_id = queue.queue_id
        self._header.broker_name = queue.broker_name
        return Command(self._code, encode_fields(self._header), self._body)
