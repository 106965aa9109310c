"""Sends: SEND_MESSAGE, its short form V2, and batches. The hottest path of the broker.

A request is checked in RocketMQ's order, its property text is brought into its stored form (``send_properties``), and
the store appends it: a plain message together with the others of this turn of the loop (``send_group``).
``send_answers`` makes the replies.

Before this on a message's way: ``remoting.dispatcher``; next: ``send_group``, then ``store.message_store``.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable
from functools import partial
from random import randrange
from typing import Final

from cometmq.base.ports import Clock
from cometmq.broker.broker_stats import BrokerStats
from cometmq.broker.config.broker_config import BrokerConfig
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.durability import Durability
from cometmq.broker.schedule.schedule import Schedule
from cometmq.broker.send.flow_control import FlowControl
from cometmq.broker.send.send_answers import SendAnswers
from cometmq.broker.send.send_group import SendGroup
from cometmq.broker.send.send_properties import (
    SendProperties,
    is_wait,
    prepare,
    prepare_batch,
    undelayed,
)
from cometmq.broker.send.send_target import SendTarget, SendTargets
from cometmq.broker.send.store_refusals import illegal_text, refuse_on_slave
from cometmq.broker.send.stored_form import form_of
from cometmq.broker.sink.sink_record import SinkRecord
from cometmq.broker.timer.timed_messages import TimedMessages
from cometmq.broker.topic_creation import TopicCreation
from cometmq.broker.transaction.transactions import Transactions
from cometmq.model.flags import is_writable
from cometmq.model.messages.batch import TooManyElements, decode_columns
from cometmq.model.messages.properties import DELAY, TRANSACTION_PREPARED
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.send import SendMessageHeader, SendMessageHeaderV2
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.store.log.new_messages import NewMessage, NewMessages, StoredMessages
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.topics import TopicTable

log = logging.getLogger("cometmq.broker")

BATCH_COUNT_MAX: Final = 32_768
"""Messages in one batch. They are appended in one go, and everybody else waits meanwhile."""

_HOST_BITS: Final = 16 | 32
_TRANSACTION_BITS: Final = 12
_FOREIGN_BITS: Final = _HOST_BITS | _TRANSACTION_BITS
"""What the broker sets itself: the form of the hosts, and whether a message is half of a transaction."""


class SendProcessor:
    def __init__(
        self,
        *,
        live: LiveConfig,
        store: MessageStore,
        durability: Durability,
        schedule: Schedule,
        transactions: Transactions,
        timed: TimedMessages,
        store_host: bytes,
        topics: TopicTable,
        creation: TopicCreation,
        stats: BrokerStats,
        flow: FlowControl,
        clock: Clock,
        sinks: SinkRecord,
        sink_used: Callable[[], None],
    ) -> None:
        self._store = store
        self._schedule = schedule
        self._transactions = transactions
        self._timed = timed
        self._targets = SendTargets(topics, creation, stats)
        self._answers = SendAnswers(
            live=live,
            durability=durability,
            stats=stats,
            flow=flow,
            store_host=store_host,
            clock=clock,
        )
        self._group = SendGroup(store, self._answers)
        self._sinks = sinks
        self._sink_used = sink_used
        self._clock = clock
        self._id_prefix = store_host.hex().upper()
        self._apply(live.current)
        live.on_change(self._apply)

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.SEND_MESSAGE, self.send)
        dispatcher.add(RequestCode.SEND_MESSAGE_V2, self.send_v2)
        dispatcher.add(RequestCode.SEND_BATCH_MESSAGE, self.send_batch)
        dispatcher.gather(
            (RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2),
            partial(self._group.finish, dispatcher.answer_error),
        )

    def send(self, connection: Connection, command: Command) -> Command | bytes | None:
        header = decode_fields(SendMessageHeader, command.ext)
        if header.batch:
            return self._send_batch(connection, command, header)
        return self._send(connection, command, header)

    def send_v2(self, connection: Connection, command: Command) -> Command | bytes | None:
        header = decode_fields(SendMessageHeaderV2, command.ext)
        if header.batch:
            return self._send_batch(connection, command, header)
        return self._send(connection, command, header)

    def send_batch(self, connection: Connection, command: Command) -> Command | None:
        return self._send_batch(
            connection, command, decode_fields(SendMessageHeaderV2, command.ext)
        )

    def _send(
        self,
        connection: Connection,
        command: Command,
        header: SendMessageHeader | SendMessageHeaderV2,
    ) -> bytes | None:
        try:
            if header.sink is not None:
                self._admit_sink(header.sink)
            target = self._target(connection, header)
            properties = prepare(header.properties, self._form)
            is_half = False
            if properties.is_half:
                is_half = self._is_half(header, properties)
            elif header.sys_flag & _TRANSACTION_BITS:
                raise _transaction_refusal()
            is_held = self._answers.is_held(command, waits=properties.is_wait)
            queue_id = header.queue_id
            if target.is_retry:
                target = self._targets.of_retry(header, target, connection)
                if target.is_dead_letter:
                    queue_id = 0
                    properties = undelayed(properties)
            if queue_id < 0:
                queue_id = randrange(target.write_queue_count)
            sys_flag = header.sys_flag & ~_FOREIGN_BITS
            if not (is_half or properties.delay_level or properties.timer):
                self._group.add(
                    connection,
                    command,
                    header,
                    properties,
                    target.topic,
                    queue_id,
                    sys_flag,
                    target.tally,
                    is_held,
                )
                return None
            message = NewMessage(
                topic=target.topic,
                queue_id=queue_id,
                body=bytes(command.body),  # no copy: what came off the wire is bytes
                properties=properties.stored,
                tags_code=properties.tags_code,
                keys=properties.keys,
                flag=header.flag,
                sys_flag=sys_flag,
                born_timestamp=header.born_timestamp,
                born_host=connection.peer_host,
                reconsume_times=header.reconsume_times,
            )
            return self._send_special(connection, command, message, properties, is_half, is_held)
        except Refused as refusal:
            refusal.ext = self.reply_ext
            raise

    def _send_special(
        self,
        connection: Connection,
        command: Command,
        message: NewMessage,
        properties: SendProperties,
        is_half: bool,
        is_held: bool,
    ) -> bytes | None:
        """Store a message that is not delivered at once: delayed, timed, or half of a transaction."""
        answers = self._answers
        replies, tally = answers.replies, self._schedule.tally
        deliver_ms = self._timed.deliver_ms(properties.timer) if properties.timer else 0
        started = answers.monotonic()
        try:
            if properties.delay_level:
                stored = self._schedule.put(message, properties.delay_level)
            elif is_half:
                tally = self._transactions.tally
                stored = self._transactions.put_half(message, is_wait=properties.is_wait)
            elif deliver_ms:
                tally = self._timed.tally
                stored = self._timed.put(message, deliver_ms)
                handle = self._timed.handle(message, deliver_ms)
                replies = replies if handle is None else answers.with_handle(handle)
            else:
                tally = self._targets.tally(message.topic)
                stored = self._store.put(message)
        except Exception as error:  # noqa: BLE001 - mapped, or raised again
            raise answers.refusal(error) from None
        answers.put_took(answers.monotonic() - started)
        tally.count += 1
        tally.size_bytes += stored.size_bytes
        if is_held:
            held = (
                connection,
                command,
                message.queue_id,
                stored.physical_offset,
                stored.queue_offset,
            )
            answers.hold([held], stored.end_offset, replies)
            return None
        return replies.frame(
            0,
            command.opaque,
            command.encoding,
            stored.physical_offset,
            message.queue_id,
            stored.queue_offset,
        )

    def _send_batch(
        self,
        connection: Connection,
        command: Command,
        header: SendMessageHeader | SendMessageHeaderV2,
    ) -> Command | None:
        answers = self._answers
        try:
            if header.sink is not None:
                self._admit_sink(header.sink)
            target = self.admit(connection, header)
            if target.is_retry:
                raise Refused(
                    ResponseCode.MESSAGE_ILLEGAL,
                    f"batch request does not support retry group {header.topic}",
                )
            is_held = self._answers.is_held(command, waits=is_wait(header.properties))
            queue_id = header.queue_id
            if queue_id < 0:
                queue_id = randrange(target.write_queue_count)
            batch = self._batch(connection, command, header, queue_id)
            started = answers.monotonic()
            try:
                stored = self._store.append(batch)
            except Exception as error:  # noqa: BLE001 - mapped, or raised again
                raise answers.refusal(error) from None
        except Refused as refusal:
            refusal.ext = self.reply_ext
            raise
        answers.put_took(answers.monotonic() - started)
        target.tally.count += len(stored.physical_offsets)
        target.tally.size_bytes += sum(stored.sizes)
        reply = command.reply(ext=self._batch_ext(queue_id, stored))
        if is_held:
            answers.hold_batch(connection, reply, stored.end_offset)
            return None
        return reply

    def _batch(
        self,
        connection: Connection,
        command: Command,
        header: SendMessageHeader | SendMessageHeaderV2,
        queue_id: int,
    ) -> NewMessages:
        body = bytes(command.body)
        if len(body) > self._body_bytes_max:
            raise Refused(ResponseCode.MESSAGE_ILLEGAL, illegal_text(self._body_bytes_max))
        try:
            flags, bodies, texts = decode_columns(body, BATCH_COUNT_MAX)
        except TooManyElements as error:
            raise Refused(ResponseCode.MESSAGE_ILLEGAL, str(error)) from None
        if not bodies:
            raise Refused(ResponseCode.MESSAGE_ILLEGAL, "a batch without messages")
        properties = prepare_batch(texts, self._form)
        count = len(bodies)
        return NewMessages(
            topics=[header.topic] * count,
            queue_ids=[queue_id] * count,
            bodies=bodies,
            properties=properties.stored,
            tags_codes=properties.tags_codes,
            keys=properties.keys,
            key_counts=properties.key_counts,
            flags=flags,
            sys_flags=[header.sys_flag & ~_HOST_BITS] * count,
            born_timestamps=[header.born_timestamp] * count,
            born_hosts=[connection.peer_host] * count,
            reconsume_times=[header.reconsume_times] * count,
            prepared_transaction_offsets=[0] * count,
        )

    def _batch_ext(self, queue_id: int, stored: StoredMessages) -> dict[str, str]:
        places = stored.physical_offsets
        # Eight bytes each, turned into text all at once: a quarter of the cost of one by one.
        texts = struct.pack(f">{len(places)}q", *places).hex(",", 8).upper()
        return {
            "msgId": self._id_prefix + texts.replace(",", f",{self._id_prefix}"),
            "queueId": str(queue_id),
            "queueOffset": str(stored.queue_offsets[0]),
            **self.reply_ext,
        }

    def admit(
        self, connection: Connection, header: SendMessageHeader | SendMessageHeaderV2
    ) -> SendTarget:
        """The checks before anything is stored, in RocketMQ's order. Raises Refused."""
        target = self._target(connection, header)
        if header.sys_flag & _TRANSACTION_BITS:
            raise _transaction_refusal()
        return target

    def _admit_sink(self, writer: str) -> None:
        self._sinks.admit(writer)
        self._sink_used()

    def _target(
        self, connection: Connection, header: SendMessageHeader | SendMessageHeaderV2
    ) -> SendTarget:
        if self._is_gated:
            self._check_gate(header.topic)
        target = self._targets.find(header, connection)
        if header.queue_id >= target.queue_count or target.write_queue_count == 0:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"request queueId[{header.queue_id}] is illegal, {target} "
                f"Producer: {connection.peer}",
            )
        return target

    def _is_half(
        self, header: SendMessageHeader | SendMessageHeaderV2, properties: SendProperties
    ) -> bool:
        """Whether a message that claims to be half of a transaction is one. Raises Refused."""
        if properties.delay_level:
            if header.reconsume_times > 0:
                # Committed before; its consumer failed and sends it back to try again later.
                return False
            raise Refused(
                ResponseCode.MESSAGE_ILLEGAL,
                f"a message of a transaction cannot be delayed ({DELAY}={properties.delay_level})",
            )
        if properties.timer is not None:
            raise Refused(
                ResponseCode.MESSAGE_ILLEGAL,
                f"a message of a transaction cannot be timed ({properties.timer[0]})",
            )
        if self._rejects_transactions:
            raise Refused(
                ResponseCode.NO_PERMISSION,
                f"the broker[{self._ip}] sending transaction message is forbidden",
            )
        return True

    def _check_gate(self, topic: str) -> None:
        refuse_on_slave(self._identity)
        if self._clock.wall_ms() < self._accept_from_ms:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"broker unable to service, until {self._accept_from_ms} (startAcceptSendRequestTimeStamp)",
            )
        if not self._is_writable and self._targets.is_ordered(topic):
            raise Refused(ResponseCode.NO_PERMISSION, "the broker sending message is forbidden")

    @property
    def reply_ext(self) -> dict[str, str]:
        """The fields that every reply to a send carries."""
        return self._answers.ext

    def _apply(self, config: BrokerConfig) -> None:
        self._form = form_of(config)
        self._body_bytes_max = config.store.log.message_bytes_max
        self._identity = config.identity
        self._rejects_transactions = config.transactions.is_rejected
        self._ip = config.identity.ip1
        self._accept_from_ms = config.flow.accept_sends_from_ms
        self._is_writable = is_writable(config.topics.permission)
        self._is_gated = (
            config.identity.is_slave
            or not self._is_writable
            or self._clock.wall_ms() < self._accept_from_ms
        )


def _transaction_refusal() -> Refused:
    return Refused(
        ResponseCode.MESSAGE_ILLEGAL,
        f"a message of a transaction must be sent alone, with {TRANSACTION_PREPARED}=true; it was not stored",
    )
