"""SEND_REPLY_MESSAGE: the answer to a request message, pushed straight to the client that asked.

A request is a plain message that names its sender in REPLY_TO_CLIENT. Whoever answers sends a message with the same
property to any broker, which hands it to that client (PUSH_REPLY_MESSAGE_TO_CLIENT), and also stores it if so set.
"""

from __future__ import annotations

import logging
from random import randrange
from typing import Final

from cometmq.base.errors import CometError, RemotingError
from cometmq.base.ports import Clock
from cometmq.broker.clients.client_registry import ClientRegistry
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.send.send_processor import SendProcessor
from cometmq.broker.send.send_properties import prepare
from cometmq.broker.send.send_target import SendTarget
from cometmq.broker.send.stored_form import form_of
from cometmq.model.address import host_text
from cometmq.model.messages.message_id import offset_id_text
from cometmq.model.messages.properties import (
    DELAY,
    NAME_SEPARATOR,
    PAIR_SEPARATOR,
    PUSH_REPLY_TIME,
    REPLY_TO_CLIENT,
    property_of,
)
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.headers.send import (
    PushReplyMessageHeader,
    SendMessageHeader,
    SendMessageHeaderV2,
)
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.store.log.new_messages import NewMessage
from cometmq.store.message_store import MessageStore

log = logging.getLogger("cometmq.broker")

PUSH_SECONDS: Final = 10.0
_HOST_BITS: Final = 16 | 32

_Header = SendMessageHeader | SendMessageHeaderV2


class ReplyProcessor:
    """Args: sends: knows what a message may be sent to."""

    def __init__(
        self,
        *,
        live: LiveConfig,
        sends: SendProcessor,
        store: MessageStore,
        store_host: bytes,
        clients: ClientRegistry,
        clock: Clock,
    ) -> None:
        self._live = live
        self._sends = sends
        self._store = store
        self._store_host = store_host
        self._clients = clients
        self._clock = clock

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.SEND_REPLY_MESSAGE, self.reply)
        dispatcher.add(RequestCode.SEND_REPLY_MESSAGE_V2, self.reply_v2)

    async def reply(self, connection: Connection, command: Command) -> Command:
        return await self._reply(connection, command, decode_fields(SendMessageHeader, command.ext))

    async def reply_v2(self, connection: Connection, command: Command) -> Command:
        return await self._reply(
            connection, command, decode_fields(SendMessageHeaderV2, command.ext)
        )

    async def _reply(self, connection: Connection, command: Command, header: _Header) -> Command:
        try:
            target = self._sends.admit(connection, header)
            message = self._message(connection, command, header, target)
        except Refused as refusal:
            refusal.ext = self._sends.reply_ext
            raise
        fault = await self._push(connection, command, header, message.queue_id)
        place = {} if fault else _place("0", message.queue_id, 0)
        if self._live.current.replies.is_stored:
            place = self._stored(message, target) or place
        return command.reply(
            ResponseCode.SYSTEM_ERROR if fault else ResponseCode.SUCCESS,
            fault or None,
            ext={**place, **self._sends.reply_ext},
        )

    def _message(
        self, connection: Connection, command: Command, header: _Header, target: SendTarget
    ) -> NewMessage:
        properties = prepare(header.properties, form_of(self._live.current))
        if properties.delay_level:
            raise Refused(ResponseCode.MESSAGE_ILLEGAL, f"a reply cannot be delayed ({DELAY})")
        if properties.timer is not None:
            raise Refused(
                ResponseCode.MESSAGE_ILLEGAL, f"a reply cannot be timed ({properties.timer[0]})"
            )
        if properties.is_half:
            raise Refused(ResponseCode.MESSAGE_ILLEGAL, "a reply cannot belong to a transaction")
        queue_id = header.queue_id
        return NewMessage(
            topic=target.topic,
            queue_id=randrange(target.write_queue_count) if queue_id < 0 else queue_id,
            body=bytes(command.body),
            properties=properties.stored,
            tags_code=properties.tags_code,
            keys=properties.keys,
            flag=header.flag,
            sys_flag=header.sys_flag & ~_HOST_BITS,
            born_timestamp=header.born_timestamp,
            born_host=connection.peer_host,
            reconsume_times=header.reconsume_times,
        )

    async def _push(
        self, connection: Connection, command: Command, header: _Header, queue_id: int
    ) -> str:
        """What went wrong, in RocketMQ's words; empty when the client has the reply."""
        client_id = property_of(header.properties, REPLY_TO_CLIENT)
        if client_id is None:
            return f"reply message properties[{REPLY_TO_CLIENT}] is null"
        client = self._clients.find_producer(client_id)
        if client is None:
            return f"push reply message fail, channel of <{client_id}> not found."
        now_ms = self._clock.wall_ms()
        request = Command(
            code=RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT,
            ext=encode_fields(
                PushReplyMessageHeader(
                    producer_group=header.producer_group,
                    topic=header.topic,
                    default_topic=header.default_topic,
                    default_topic_queue_nums=header.default_topic_queue_nums,
                    queue_id=queue_id,
                    sys_flag=header.sys_flag,
                    born_timestamp=header.born_timestamp,
                    flag=header.flag,
                    properties=f"{PUSH_REPLY_TIME}{NAME_SEPARATOR}{now_ms}{PAIR_SEPARATOR}{header.properties}",
                    reconsume_times=header.reconsume_times,
                    unit_mode=header.unit_mode,
                    born_host=connection.peer,
                    store_host=host_text(self._store_host),
                    store_timestamp=now_ms,
                )
            ),
            body=command.body,
        )
        try:
            answer = await client.connection.call(request, PUSH_SECONDS)
        except RemotingError as error:
            log.warning("reply not pushed client=%s error=%s", client_id, error)
            return f"push reply message to {client_id} fail."
        if answer.code != ResponseCode.SUCCESS:
            log.warning("reply refused client=%s code=%d", client_id, answer.code)
            return f"push reply message to {client_id} fail."
        return ""

    def _stored(self, message: NewMessage, target: SendTarget) -> dict[str, str]:
        """Where the reply is kept; nothing when the store did not take it, which does not concern who asked."""
        try:
            stored = self._store.put(message)
        except (CometError, OSError) as error:
            log.warning("reply not stored topic=%s error=%s", message.topic, error)
            return {}
        target.tally.add(stored.size_bytes)
        return _place(
            offset_id_text(self._store_host, stored.physical_offset),
            message.queue_id,
            stored.queue_offset,
        )


def _place(message_id: str, queue_id: int, queue_offset: int) -> dict[str, str]:
    return {"msgId": message_id, "queueId": str(queue_id), "queueOffset": str(queue_offset)}
