"""Requests that the broker hands on to one client and whose answer it hands back: 307 and 309."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from cometmq.base.errors import CallTimedOut, RemotingError, UsageError
from cometmq.broker.clients.client_registry import Client, ClientRegistry
from cometmq.model.messages.message_id import parse_offset_id
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.headers.admin import (
    ConsumeMessageDirectlyHeader,
    GetConsumerRunningInfoHeader,
)
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.store.message_store import MessageStore

CALL_SECONDS: Final = 10.0
CLIENT_VERSION_MIN: Final = 62
"""V3_1_8_SNAPSHOT; older clients do not know these requests."""


class ForwardingAdmin:
    def __init__(self, *, broker_name: str, clients: ClientRegistry, store: MessageStore) -> None:
        self._broker_name = broker_name
        self._clients = clients
        self._store = store

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.GET_CONSUMER_RUNNING_INFO, self.running_info)
        dispatcher.add(RequestCode.CONSUME_MESSAGE_DIRECTLY, self.consume_directly)

    def running_info(self, connection: Connection, command: Command) -> Awaitable[Command]:
        header = decode_fields(GetConsumerRunningInfoHeader, command.ext)
        client = self._online(header.consumer_group, header.client_id)
        request = Command(code=command.code, ext=encode_fields(header))
        return _handed_on(command, request, client, header.consumer_group)

    def consume_directly(self, connection: Connection, command: Command) -> Awaitable[Command]:
        header = decode_fields(ConsumeMessageDirectlyHeader, command.ext)
        client = self._online(header.consumer_group, header.client_id or "")
        header.broker_name = self._broker_name
        request = Command(
            code=command.code, ext=encode_fields(header), body=self._record(header.msg_id or "")
        )
        return _handed_on(command, request, client, header.consumer_group)

    def _online(self, group: str, client_id: str) -> Client:
        entry = self._clients.consumer_group(group)
        client = None if entry is None else entry.find(client_id)
        if client is None:
            raise _refused(f"The Consumer <{group}> <{client_id}> not online")
        if client.version < CLIENT_VERSION_MIN:
            raise _refused(
                f"The Consumer <{client_id}> Version <{client.version}> is below "
                f"{CLIENT_VERSION_MIN} and cannot answer this"
            )
        return client

    def _record(self, message_id: str) -> bytes:
        try:
            physical_offset = parse_offset_id(message_id).physical_offset
        except UsageError as error:
            raise _refused(str(error)) from None
        record = self._store.record_at(physical_offset)
        if record is None:
            raise _refused(f"can not find message by the id {message_id}")
        return bytes(record)


async def _handed_on(command: Command, request: Command, client: Client, group: str) -> Command:
    """The client's reply, unchanged but for what ties it to the request."""
    try:
        reply = await client.connection.call(request, CALL_SECONDS)
    except CallTimedOut as error:
        raise Refused(
            ResponseCode.CONSUME_MSG_TIMEOUT,
            f"consumer <{group}> <{client.client_id}> Timeout: {error}",
        ) from None
    except RemotingError as error:
        raise _refused(f"invoke consumer <{group}> <{client.client_id}> failed: {error}") from None
    reply.opaque = command.opaque
    reply.encoding = command.encoding
    return reply


def _refused(text: str) -> Refused:
    return Refused(ResponseCode.SYSTEM_ERROR, text)
