"""Request and reply over topics: a request waits for the reply with its correlation id.

A request is an ordinary message with three more properties; its consumer answers with ``reply_to``. The reply goes to
a broker, which forwards it to the client that asked (request 326).
"""

from __future__ import annotations

import asyncio
import logging
import uuid

from cometmq.base.errors import CometError, TooManyInFlight
from cometmq.client.core.send.prepare import REPLY_TYPE
from cometmq.client.errors import ClientClosed, ReplyImpossible, RequestTimedOut
from cometmq.model.address import pack_host, split_address
from cometmq.model.messages.compression import decompress
from cometmq.model.messages.message import Message
from cometmq.model.messages.properties import (
    CLUSTER,
    CORRELATION_ID,
    MESSAGE_TYPE,
    REPLY_TO_CLIENT,
    TTL,
    parse_properties,
)
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.names import reply_topic
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.send import PushReplyMessageHeader

logger = logging.getLogger("cometmq.client")


def reply_to(request: ReceivedMessage, body: bytes) -> Message:
    """Create the reply to a request, to be sent by any producer.

    Raises:
        ReplyImpossible: the message is not a request.
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
    """The requests of one producer that wait for a reply, by correlation id."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._waiting: dict[str, asyncio.Future[ReceivedMessage]] = {}
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self) -> tuple[str, asyncio.Future[ReceivedMessage]]:
        """A new correlation id and the future of its reply. Call ``forget`` at the end.

        Raises:
            TooManyInFlight: the limit is reached.
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
        """Request 326: pass a reply to its waiter. A late reply is dropped.

        Raises:
            RemoteProtocolError: it cannot be decoded.
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
            # The caller gets the error; the broker can do nothing about it.
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
    """Raises RequestTimedOut after ``seconds``; ``timeout`` is the user's value, for the message."""
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
