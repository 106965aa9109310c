"""The result of a send."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from cometmq.base.errors import CometError
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.send import SendMessageReply
from cometmq.protocol.reply_errors import error_for
from cometmq.protocol.send_reply import Stored


class SendStatus(StrEnum):
    """All four mean stored; the last three say which guarantee was not confirmed in time."""

    SEND_OK = "SEND_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


_STORED: Final[dict[int, SendStatus]] = {
    int(ResponseCode.SUCCESS): SendStatus.SEND_OK,
    int(ResponseCode.FLUSH_DISK_TIMEOUT): SendStatus.FLUSH_DISK_TIMEOUT,
    int(ResponseCode.FLUSH_SLAVE_TIMEOUT): SendStatus.FLUSH_SLAVE_TIMEOUT,
    int(ResponseCode.SLAVE_NOT_AVAILABLE): SendStatus.SLAVE_NOT_AVAILABLE,
}

STORED_CODES: Final = tuple(_STORED)
"""The codes of replies that mean stored."""


class SendResult(msgspec.Struct, frozen=True, kw_only=True):
    """Where a message is stored. For a batch: ``queue_offset`` of the first, ids joined by commas.

    Attributes:
        message_id: the id created by the producer; consumers see the same.
        offset_id: the id created by the broker: its address and the physical offset.
        transaction_id, recall_handle: set by RocketMQ 5 brokers.
        region_id: the broker's region.
        is_traced: False if the broker does not want this message to be traced.
    """

    status: SendStatus
    message_id: str
    offset_id: str
    queue: MessageQueue
    queue_offset: int
    transaction_id: str | None = None
    recall_handle: str | None = None
    region_id: str | None = None
    is_traced: bool = True


class PartlySent(CometError):
    """``send_all`` stopped at a batch that could not be sent; ``__cause__`` says why.

    Attributes:
        results: the results of the batches before it, which are stored.
        unsent: the messages of that batch, which may or may not be stored, and all later ones, which are not.
    """

    def __init__(self, results: list[SendResult], unsent: list[Message]) -> None:
        super().__init__(f"{len(unsent)} messages were not sent after {len(results)} batches")
        self.results = results
        self.unsent = unsent


def send_result(
    reply: Command | Stored, address: str, queue: MessageQueue, message_id: str
) -> SendResult:
    """The result in a broker's reply.

    Raises:
        BrokerReplyError: the message was not stored.
        RemoteProtocolError: the reply lacks what it must have.
    """
    if isinstance(reply, Stored):
        offset_id, queue_offset, transaction_id, region_id, is_traced = reply
        return SendResult(
            status=SendStatus.SEND_OK,
            message_id=message_id,
            offset_id=offset_id,
            queue=queue,
            queue_offset=queue_offset,
            transaction_id=transaction_id,
            region_id=region_id,
            is_traced=is_traced,
        )
    status = _STORED.get(reply.code)
    if status is None:
        raise error_for(reply, address)
    stored = decode_fields(SendMessageReply, reply.ext)
    return SendResult(
        status=status,
        message_id=message_id,
        offset_id=stored.msg_id,
        queue=queue,
        queue_offset=stored.queue_offset,
        transaction_id=stored.transaction_id,
        recall_handle=stored.recall_handle,
        region_id=stored.msg_region,
        is_traced=stored.trace_on is not False,
    )
