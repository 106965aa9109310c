"""Questions and answers over topics: a request waits for the one reply that carries its correlation id.

A request is a message like others with three more properties; whoever consumes it answers with ``reply_to``. The
reply goes to a broker, which hands it to the client that asked (request 326).
"""

from __future__ import annotations

import asyncio
import logging
import uuid

from cometmq.base.errors import CometError, TooManyInFlight
from cometmq.client.core.prepare import REPLY_TYPE
from cometmq.client.errors import ClientClosed, ReplyImpossible, RequestTimedOut
from cometmq.model.address import pack_host, split_address
from cometmq.model.compression import decompress
from cometmq.model.message import Message
from cometmq.model.names import reply_topic
from cometmq.model.properties import (
    CLUSTER,
    CORRELATION_ID,
    MESSAGE_TYPE,
    REPLY_TO_CLIENT,
    TTL,
    parse_properties,
)
from cometmq.model.received_message import ReceivedMessage
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.send import PushReplyMessageHeader

logger = logging.getLogger("cometmq.client")


def reply_to(request: ReceivedMessage, body: bytes) -> Message:
    """The answer to a request, to be sent by any producer.

    Raises:
        ReplyImpossible: the message is no request.
    """
    properties = request.properties
    cluster = properties.get(CLUSTER)
    copied: dict[str, str] = {
        name: properties[name]
        for name in (CORRELATION_ID, REPLY_TO_CLIENT, TTL)
        if name in properties
    }
    if cluster is None or CORRELATION_ID not in copied or REPLY_TO_CLIENT not in copied:
        raise ReplyImpossible(
            f"message {request.message_id} of {request.topic!r} does not say whom to answer"
        )
    return Message(
        topic=reply_topic(cluster),
        body=body,
        internal_properties={MESSAGE_TYPE: REPLY_TYPE, **copied},
    )


class PendingRequests:
    """The requests of one producer that wait for their reply, by correlation id."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._waiting: dict[str, asyncio.Future[ReceivedMessage]] = {}
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self) -> tuple[str, asyncio.Future[ReceivedMessage]]:
        """A new correlation id and the future of its reply. ``forget`` it in the end.

        Raises:
            TooManyInFlight: the bound is reached.
        """
        if len(self._waiting) >= self._count_max:
            raise TooManyInFlight(
                f"{len(self._waiting)} requests wait for their reply, which is the bound"
            )
        correlation_id = str(uuid.uuid4())
        future: asyncio.Future[ReceivedMessage] = asyncio.get_running_loop().create_future()
        self._waiting[correlation_id] = future
        return correlation_id, future

    def forget(self, correlation_id: str) -> None:
        self._waiting.pop(correlation_id, None)

    def arrived(self, request: Command) -> None:
        """Request 326: give a reply to who waits for it. One that comes too late is dropped.

        Raises:
            RemoteProtocolError: it cannot be read.
        """
        header = decode_fields(PushReplyMessageHeader, request.ext)
        properties = parse_properties(header.properties)
        correlation_id = properties.get(CORRELATION_ID, "")
        future = self._waiting.pop(correlation_id, None)
        if future is None:
            logger.debug("reply dropped correlation_id=%s", correlation_id)
            return
        if future.done():
            return
        try:
            future.set_result(_received(request, header, properties))
        except CometError as error:
            # Whoever asked learns it; the broker can do nothing about it.
            future.set_exception(error)

    def close(self) -> None:
        waiting = list(self._waiting.values())
        self._waiting.clear()
        for future in waiting:
            if not future.done():
                future.set_exception(ClientClosed("the producer was closed before the reply came"))


async def wait_for_reply(
    future: asyncio.Future[ReceivedMessage], seconds: float, topic: str, timeout: float
) -> ReceivedMessage:
    """Raises RequestTimedOut after ``seconds``; ``timeout`` is what the user gave."""
    try:
        async with asyncio.timeout(max(seconds, 0)):
            return await future
    except TimeoutError:
        raise RequestTimedOut(f"no reply to a request to {topic!r} within {timeout:g} s") from None


def _received(
    request: Command, header: PushReplyMessageHeader, properties: dict[str, str]
) -> ReceivedMessage:
    return ReceivedMessage(
        topic=header.topic,
        body=decompress(bytes(request.body), header.sys_flag),
        properties=properties,
        queue_id=header.queue_id,
        flag=header.flag,
        sys_flag=header.sys_flag,
        born_timestamp=header.born_timestamp,
        store_timestamp=header.store_timestamp,
        born_host=_host(header.born_host),
        store_host=_host(header.store_host),
        reconsume_times=header.reconsume_times,
    )


def _host(text: str) -> bytes:
    # Java prints a socket address as "/10.0.0.1:10911".
    return pack_host(*split_address(text.removeprefix("/")))
