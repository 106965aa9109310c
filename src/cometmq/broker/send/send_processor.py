"""Sends: SEND_MESSAGE, its short form V2, and batches. The hottest path of the broker.

A request is checked in RocketMQ's order, its property text is brought into its stored form (``send_properties``), and
the store appends it: a plain message together with the others of this turn of the loop (``send_group``).
``send_answers`` makes the replies.

Before this on a message's way: ``remoting.dispatcher``; next: ``send_group``, then ``store.message_store``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from random import randrange
from typing import Final, cast

from cometmq.base.ports import Clock
from cometmq.broker.broker_stats import BrokerStats
from cometmq.broker.config.broker_config import BrokerConfig
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.durability import Durability
from cometmq.broker.schedule.schedule import Schedule
from cometmq.broker.send.flow_control import FlowControl
from cometmq.broker.send.plain_sends import KnownSends, PreparedRun, cut_run
from cometmq.broker.send.send_answers import SendAnswers
from cometmq.broker.send.send_group import Batch, Finishing, Handle, SendGroup
from cometmq.broker.send.send_properties import (
    SendProperties,
    is_wait,
    prepare,
    prepare_batch,
    undelayed,
)
from cometmq.broker.send.send_target import SendTarget, SendTargets
from cometmq.broker.send.store_refusals import refuse_on_slave, too_large
from cometmq.broker.send.stored_form import form_of
from cometmq.broker.sink.sink_record import SinkRecord
from cometmq.broker.timer.timed_messages import TimedMessages
from cometmq.broker.topic_creation import TopicCreation
from cometmq.broker.transaction.transactions import Transactions
from cometmq.model.flags import is_writable
from cometmq.model.messages.batch import TooManyElements, decode_columns
from cometmq.model.messages.properties import DELAY, TRANSACTION_PREPARED
from cometmq.model.names import DLQ_PREFIX, RETRY_PREFIX
from cometmq.native.send_run import RUN, SendRun
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.frame import decode_bytes
from cometmq.protocol.headers.send import SendMessageHeader, SendMessageHeaderV2
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.store.log.new_messages import NewMessage, NewMessages
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.topics import TopicTable

log = logging.getLogger("cometmq.broker")

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
        self._stats = stats
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
        self._apply(live.current)
        live.on_change(self._apply)

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.SEND_MESSAGE, self.send)
        dispatcher.add(RequestCode.SEND_MESSAGE_V2, self.send_v2)
        dispatcher.add(RequestCode.SEND_BATCH_MESSAGE, self.send_batch)
        dispatcher.gather(
            (
                RequestCode.SEND_MESSAGE,
                RequestCode.SEND_MESSAGE_V2,
                RequestCode.SEND_BATCH_MESSAGE,
                RUN,
            ),
            partial(
                self._group.finish,
                Finishing(dispatcher.dispatch_admitted, dispatcher.answer_error, dispatcher.times),
            ),
        )
        if cut_run is not None:
            dispatcher.take_runs(cut_run, partial(self._take_run, dispatcher.dispatch_admitted))

    def _take_run(
        self, handle: Handle, connection: Connection, run: SendRun, start: int, stop: int
    ) -> None:
        """Gather the plain sends of a run; the others are handled one by one."""
        is_awaited = self._is_awaited()
        while start < stop:
            end = start
            if is_awaited is not None:
                end = self._known.prepare(cast(PreparedRun, run), start, stop)
            if end > start:
                self._group.add_plain(connection, run, start, end, is_awaited is True)
            if end < stop:
                handle(connection, decode_bytes(run.frame(end)))
                end = run.after(end)
            start = end

    def _is_awaited(self) -> bool | None:
        """Whether replies wait until the messages are safe; None if sends are refused, each with its own words."""
        if self._is_gated:
            return None
        try:
            return self._answers.is_awaited()
        except Refused:
            return None

    def send(self, connection: Connection, command: Command) -> bytes | None:
        header = decode_fields(SendMessageHeader, command.ext)
        if header.batch:
            self._send_batch(connection, command, header)
            return None
        return self._send(connection, command, header)

    def send_v2(self, connection: Connection, command: Command) -> bytes | None:
        header = decode_fields(SendMessageHeaderV2, command.ext)
        if header.batch:
            self._send_batch(connection, command, header)
            return None
        return self._send(connection, command, header)

    def send_batch(self, connection: Connection, command: Command) -> None:
        self._send_batch(connection, command, decode_fields(SendMessageHeaderV2, command.ext))

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
            if not (is_half or properties.delay_level or properties.timer or target.is_dead_letter):
                self._group.add(
                    connection,
                    command,
                    header,
                    properties,
                    target.topic,
                    queue_id,
                    sys_flag,
                    target.fifo_tally if properties.is_ordered else target.tally,
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
            return self._send_special(
                connection,
                command,
                message,
                properties,
                is_half,
                is_held,
                is_dead_letter=target.is_dead_letter,
            )
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
        *,
        is_dead_letter: bool,
    ) -> bytes | None:
        """Store a message that is not delivered at once: delayed, timed, half of a transaction, or given up."""
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
        tally.add(stored.size_bytes)
        if is_dead_letter:
            group = message.topic.removeprefix(DLQ_PREFIX)
            self._stats.dead_letter(RETRY_PREFIX + group, group)
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
    ) -> None:
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
            new = self._batch(connection, command, header, queue_id)
        except Refused as refusal:
            refusal.ext = self.reply_ext
            raise
        self._group.add_batch(Batch(connection, command, new, target.tally, is_held))

    def _batch(
        self,
        connection: Connection,
        command: Command,
        header: SendMessageHeader | SendMessageHeaderV2,
        queue_id: int,
    ) -> NewMessages:
        body = bytes(command.body)
        if len(body) > self._body_bytes_max:
            raise too_large(self._body_bytes_max)
        try:
            flags, bodies, texts = decode_columns(body, self._batch_count_max)
        except TooManyElements as error:
            raise Refused(
                ResponseCode.MESSAGE_ILLEGAL,
                f"{error} (batchMessagesMax)",
                bound="batchMessagesMax",
            ) from None
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
        if cut_run is not None:
            self._known = KnownSends(
                self._targets,
                self._form,
                config.store.log.message_bytes_max,
                config.flow.batch_count_max,
            )
        self._body_bytes_max = config.store.log.message_bytes_max
        self._batch_count_max = config.flow.batch_count_max
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
