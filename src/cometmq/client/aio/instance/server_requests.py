"""Requests that brokers send to clients: 39, 40, 220, 221, 307, 309, 326. Each is passed to the right role.

The dispatcher answers with an error code what cannot be decoded.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable
from typing import Final

from cometmq.base.errors import RemoteProtocolError
from cometmq.client.aio.instance.roles import ConsumerRole, RoleTable
from cometmq.client.core.namespace import unwrap
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import ReceivedMessage
from cometmq.model.messages.properties import PRODUCER_GROUP
from cometmq.model.messages.record import BadRecord, Record, decode_record
from cometmq.protocol.bodies.offsets import ConsumerStatus, ResetOffsets, ResetOffsetsForC
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import VERSION_NAME, Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.admin import (
    ConsumeMessageDirectlyHeader,
    GetConsumerRunningInfoHeader,
    GetConsumerStatusHeader,
    ResetOffsetHeader,
)
from cometmq.protocol.headers.heartbeat import NotifyConsumerIdsChangedHeader
from cometmq.protocol.headers.send import PushReplyMessageHeader
from cometmq.protocol.headers.transaction import CheckTransactionStateHeader
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher

logger = logging.getLogger("cometmq.client")

STACKS_CHARS_MAX: Final = 256 * 1024


class ServerRequests:
    """Args:
    name_servers: the addresses in use, for operators who ask.
    """

    def __init__(
        self, roles: RoleTable, *, namespace: str, name_servers: Callable[[], list[str]]
    ) -> None:
        self._roles = roles
        self._namespace = namespace
        self._name_servers = name_servers

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.CHECK_TRANSACTION_STATE, self.check_transaction)
        dispatcher.add(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, self.members_changed)
        dispatcher.add(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, self.reset_offsets)
        dispatcher.add(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, self.positions)
        dispatcher.add(RequestCode.GET_CONSUMER_RUNNING_INFO, self.running_info)
        dispatcher.add(RequestCode.CONSUME_MESSAGE_DIRECTLY, self.consume_directly)
        dispatcher.add(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, self.reply_arrived)

    def check_transaction(self, connection: Connection, command: Command) -> Awaitable[Command]:
        decode_fields(CheckTransactionStateHeader, command.ext)
        group = _record(command).properties.get(PRODUCER_GROUP)
        producer = self._roles.producers.get(group or "")
        if producer is None:
            logger.warning(
                "transaction check for an unknown group group=%s broker=%s", group, connection.peer
            )
            raise _refused(f"The Producer Group <{group}> not exist in this client")

        async def check() -> Command:
            await producer.check_transaction(connection.peer, command)
            return command.reply()

        return check()

    def members_changed(self, connection: Connection, command: Command) -> Command:
        group = decode_fields(NotifyConsumerIdsChangedHeader, command.ext).consumer_group
        logger.info("group members changed group=%s broker=%s", group, connection.peer)
        # A consumer that closes may be notified of its own departure, so an unknown group is normal.
        if (consumer := self._roles.consumers.get(group)) is not None:
            consumer.rebalance_soon()
        return command.reply()

    def reset_offsets(self, connection: Connection, command: Command) -> Awaitable[Command]:
        header = decode_fields(ResetOffsetHeader, command.ext)
        offsets = _offset_table(command)
        consumer = self._consumer(header.group)
        logger.info(
            "offsets reset by an operator group=%s topic=%s queues=%d timestamp=%d",
            header.group,
            header.topic,
            len(offsets),
            header.timestamp,
        )

        async def reset() -> Command:
            await consumer.reset_offsets(header.topic, offsets)
            return command.reply()

        return reset()

    def positions(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(GetConsumerStatusHeader, command.ext)
        consumer = self._roles.consumers.get(header.group)
        table = {} if consumer is None else consumer.positions(header.topic)
        return command.reply(body=ConsumerStatus(message_queue_table=table).encode())

    def running_info(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(GetConsumerRunningInfoHeader, command.ext)
        consumer = self._consumer(header.consumer_group)
        info = consumer.running_info()
        info.properties.setdefault("PROP_NAMESERVER_ADDR", ";".join(self._name_servers()))
        info.properties.setdefault("PROP_CONSUME_TYPE", consumer.consume_type.value)
        info.properties.setdefault("PROP_CLIENT_VERSION", VERSION_NAME)
        if header.jstack_enable:
            info.jstack = _stacks()
        return command.reply(body=info.encode())

    def consume_directly(self, connection: Connection, command: Command) -> Awaitable[Command]:
        header = decode_fields(ConsumeMessageDirectlyHeader, command.ext)
        consumer = self._consumer(header.consumer_group)
        broker_name = header.broker_name or ""
        message = ReceivedMessage.from_record(_record(command), broker_name)
        message.topic = unwrap(self._namespace, message.topic)

        async def consume() -> Command:
            result = await consumer.consume_directly(message, broker_name)
            return command.reply(body=result.encode())

        return consume()

    def reply_arrived(self, connection: Connection, command: Command) -> Command:
        decode_fields(PushReplyMessageHeader, command.ext)
        for producer in list(self._roles.producers.values()):
            producer.reply_arrived(command)
        return command.reply()

    def _consumer(self, group: str) -> ConsumerRole:
        consumer = self._roles.consumers.get(group)
        if consumer is None:
            raise _refused(f"The Consumer Group <{group}> not exist in this consumer")
        return consumer


def _record(command: Command) -> Record:
    try:
        return decode_record(command.body)
    except BadRecord as error:
        raise _refused(f"the body of request {command.code} is no message: {error}") from error


def _offset_table(command: Command) -> dict[MessageQueue, int]:
    try:
        return dict(ResetOffsets.decode(command.body).offset_table)
    except RemoteProtocolError as first:
        # The form for clients that cannot read maps keyed by objects.
        try:
            listed = ResetOffsetsForC.decode(command.body).offset_table
        except RemoteProtocolError:
            raise first from None
    return {
        MessageQueue(broker_name=each.broker_name, queue_id=each.queue_id, topic=each.topic): (
            each.offset
        )
        for each in listed
    }


def _stacks() -> str:
    """What each thread is doing, for an operator who wonders why a consumer is stuck."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = []
    for ident, frame in sys._current_frames().items():
        parts.append(f"{names.get(ident, ident)}\n{''.join(traceback.format_stack(frame))}")
    return "\n".join(parts)[:STACKS_CHARS_MAX]


def _refused(text: str) -> Refused:
    return Refused(ResponseCode.SYSTEM_ERROR, text)
