"""Sends: SEND_MESSAGE, its short form V2, and batches. The hottest path of the broker.

A request is checked in RocketMQ's order, its property text gets its stored form (``send_properties``), the store
appends it. The reply leaves at once, or when the flushed watermark has passed the record (SYNC_FLUSH).
Before this on a message's way: ``remoting.dispatcher``; next: ``store.message_store``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from random import randrange
from typing import Final, NoReturn

from cometmq.base.ports import Clock
from cometmq.broker.config import BrokerConfig
from cometmq.broker.config_slices import SYNC_MASTER
from cometmq.broker.flow_control import FlowControl
from cometmq.broker.live_config import LiveConfig
from cometmq.broker.processors.put_failure import illegal_text, refusal_of
from cometmq.broker.processors.send_target import SendTarget, SendTargets
from cometmq.broker.schedule.schedule import Schedule
from cometmq.broker.send_properties import (
    BatchProperties,
    SendProperties,
    cluster_pair,
    is_wait,
    prepare,
    undelayed,
)
from cometmq.broker.sink_record import SinkRecord
from cometmq.broker.stats import BrokerStats
from cometmq.broker.timer.timed_messages import TimedMessages
from cometmq.broker.topic_creation import TopicCreation
from cometmq.broker.transaction.transactions import Transactions
from cometmq.model.batch import decode_batch
from cometmq.model.flags import is_writable
from cometmq.model.properties import DELAY, TRANSACTION_PREPARED
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import FLAG_ONEWAY, Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.send import SendMessageHeader, SendMessageHeaderV2
from cometmq.protocol.refusal import Refused
from cometmq.protocol.send_reply import SendReplies
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.topics import TopicTable
from cometmq.store.put import NewMessage, Stored

log = logging.getLogger("cometmq.broker")

BATCH_COUNT_MAX: Final = 32_768
"""Messages in one batch; they are appended in one go, and everybody else waits meanwhile."""

_HOST_BITS: Final = 16 | 32
_TRANSACTION_BITS: Final = 12
_FOREIGN_BITS: Final = _HOST_BITS | _TRANSACTION_BITS
"""What the broker itself knows: the hosts, and whether a message is half of a transaction."""
_SLOW_SECONDS: Final = 0.001


class SendProcessor:
    def __init__(
        self,
        *,
        live: LiveConfig,
        store: MessageStore,
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
        self._stats = stats
        self._flow = flow
        self._sinks = sinks
        self._sink_used = sink_used
        self._clock = clock
        self._monotonic = clock.monotonic
        self._store_host = store_host
        self._id_prefix = store_host.hex().upper()
        self._cluster = cluster_pair(live.current.identity.cluster_name)
        self._apply(live.current)
        live.on_change(self._apply)

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.SEND_MESSAGE, self.send)
        dispatcher.add(RequestCode.SEND_MESSAGE_V2, self.send_v2)
        dispatcher.add(RequestCode.SEND_BATCH_MESSAGE, self.send_batch)

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
            properties = prepare(header.properties, self._cluster)
            is_half = False
            if properties.is_half:
                is_half = self._is_half(header, properties)
            elif header.sys_flag & _TRANSACTION_BITS:
                raise _transaction_refusal()
            waits = properties.is_wait
            is_held = waits and self._is_sync_flush and not command.flag & FLAG_ONEWAY
            if is_held:
                self._check_overload()
            queue_id = header.queue_id
            if target.is_retry:
                target = self._targets.of_retry(header, target)
                if target.is_dead_letter:
                    queue_id = 0
                    properties = undelayed(properties)
            if queue_id < 0:
                queue_id = randrange(target.write_queue_count)
            message = NewMessage(
                topic=target.topic,
                queue_id=queue_id,
                body=bytes(command.body),  # no copy: what came off the wire is bytes
                properties=properties.stored,
                tags_code=properties.tags_code,
                keys=properties.keys,
                flag=header.flag,
                sys_flag=header.sys_flag & ~_FOREIGN_BITS,
                born_timestamp=header.born_timestamp,
                born_host=connection.peer_host,
                reconsume_times=header.reconsume_times,
            )
            tally = target.tally
            replies = self._replies
            deliver_ms = self._timed.deliver_ms(properties.timer) if properties.timer else 0
            started = self._monotonic()
            try:
                if properties.delay_level:
                    tally = self._schedule.tally
                    stored = self._schedule.put(message, properties.delay_level)
                elif is_half:
                    tally = self._transactions.tally
                    stored = self._transactions.put_half(message, is_wait=waits)
                elif deliver_ms:
                    tally = self._timed.tally
                    stored = self._timed.put(message, deliver_ms)
                    replies = self._timed_replies(message, deliver_ms)
                else:
                    stored = self._store.put(message)
            except Exception as error:  # noqa: BLE001 - mapped, or raised again
                self._put_failed(error)
        except Refused as refusal:
            refusal.ext = self.reply_ext
            raise
        took = self._monotonic() - started
        if took > _SLOW_SECONDS:
            self._slow_put(took)
        tally.count += 1
        tally.size_bytes += stored.size_bytes
        code = self._stored_code if waits else 0
        if is_held:
            self._hold(connection, command, code, queue_id, stored, replies)
            return None
        return replies.frame(
            code,
            command.opaque,
            command.encoding,
            stored.physical_offset,
            queue_id,
            stored.queue_offset,
        )

    def _send_batch(
        self,
        connection: Connection,
        command: Command,
        header: SendMessageHeader | SendMessageHeaderV2,
    ) -> Command | None:
        try:
            if header.sink is not None:
                self._admit_sink(header.sink)
            target = self.admit(connection, header)
            if target.is_retry:
                raise Refused(
                    ResponseCode.MESSAGE_ILLEGAL,
                    f"batch request does not support retry group {header.topic}",
                )
            waits = is_wait(header.properties)
            is_held = waits and self._is_sync_flush and not command.flag & FLAG_ONEWAY
            if is_held:
                self._check_overload()
            queue_id = header.queue_id
            if queue_id < 0:
                queue_id = randrange(target.write_queue_count)
            messages = self._batch_messages(connection, command, header, queue_id)
            started = self._monotonic()
            try:
                stored = self._store.put_batch(messages)
            except Exception as error:  # noqa: BLE001 - mapped, or raised again
                self._put_failed(error)
        except Refused as refusal:
            refusal.ext = self.reply_ext
            raise
        took = self._monotonic() - started
        if took > _SLOW_SECONDS:
            self._slow_put(took)
        target.tally.count += len(stored)
        target.tally.size_bytes += sum(one.size_bytes for one in stored)
        reply = command.reply(
            self._stored_code if waits else 0, ext=self._batch_ext(queue_id, stored)
        )
        if is_held:
            self._hold_batch(connection, reply, stored[-1].end_offset)
            return None
        return reply

    def _batch_messages(
        self,
        connection: Connection,
        command: Command,
        header: SendMessageHeader | SendMessageHeaderV2,
        queue_id: int,
    ) -> list[NewMessage]:
        body = bytes(command.body)
        if len(body) > self._body_bytes_max:
            raise Refused(ResponseCode.MESSAGE_ILLEGAL, illegal_text(self._body_bytes_max))
        messages: list[NewMessage] = []
        topic, born_timestamp = header.topic, header.born_timestamp
        sys_flag, reconsume_times = header.sys_flag & ~_HOST_BITS, header.reconsume_times
        born_host = connection.peer_host
        prepare_properties = BatchProperties(self._cluster).prepare
        for flag, element_body, sent in decode_batch(body):
            if len(messages) == BATCH_COUNT_MAX:
                raise Refused(
                    ResponseCode.MESSAGE_ILLEGAL,
                    f"a batch holds at most {BATCH_COUNT_MAX} messages",
                )
            stored, tags_code, keys = prepare_properties(sent)
            messages.append(
                NewMessage(
                    topic=topic,
                    queue_id=queue_id,
                    body=element_body,
                    properties=stored,
                    tags_code=tags_code,
                    keys=keys,
                    flag=flag,
                    sys_flag=sys_flag,
                    born_timestamp=born_timestamp,
                    born_host=born_host,
                    reconsume_times=reconsume_times,
                )
            )
        if not messages:
            raise Refused(ResponseCode.MESSAGE_ILLEGAL, "a batch without messages")
        return messages

    def _batch_ext(self, queue_id: int, stored: list[Stored]) -> dict[str, str]:
        prefix = self._id_prefix
        return {
            "msgId": ",".join([f"{prefix}{one.physical_offset:016X}" for one in stored]),
            "queueId": str(queue_id),
            "queueOffset": str(stored[0].queue_offset),
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
        target = self._targets.find(header)
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
        """Whether a message that says so is half of a transaction. Raises Refused."""
        if properties.delay_level:
            if header.reconsume_times > 0:
                # One that was committed, could not be processed, and is sent to be tried again.
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
        if self._is_slave:
            raise Refused(
                ResponseCode.SERVICE_NOT_AVAILABLE,
                "service not available now: this broker is a slave",
            )
        if self._clock.wall_ms() < self._accept_from_ms:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"broker unable to service, until {self._accept_from_ms} (startAcceptSendRequestTimeStamp)",
            )
        if not self._is_writable and self._targets.is_ordered(topic):
            raise Refused(ResponseCode.NO_PERMISSION, "the broker sending message is forbidden")

    def _check_overload(self) -> None:
        if text := self._flow.overload(self._store.watermarks.flushed.waiting):
            raise Refused(ResponseCode.SYSTEM_BUSY, text)

    def _put_failed(self, error: Exception) -> NoReturn:
        self._stats.put_failed_count += 1
        refusal = refusal_of(error, self._body_bytes_max)
        if refusal is None:
            raise error
        raise refusal from error

    def _timed_replies(self, message: NewMessage, deliver_ms: int) -> SendReplies:
        handle = self._timed.handle(message, deliver_ms)
        if handle is None:
            return self._replies
        return SendReplies(self._store_host, {**self.reply_ext, "recallHandle": handle})

    def _hold(
        self,
        connection: Connection,
        command: Command,
        code: int,
        queue_id: int,
        stored: Stored,
        replies: SendReplies,
    ) -> None:
        """Answer when the disk has the record, or with FLUSH_DISK_TIMEOUT when that takes too long."""

        def flushed(is_in_time: bool) -> None:
            connection.send_frame(
                replies.frame(
                    code if is_in_time else ResponseCode.FLUSH_DISK_TIMEOUT,
                    command.opaque,
                    command.encoding,
                    stored.physical_offset,
                    queue_id,
                    stored.queue_offset,
                )
            )

        self._when_flushed(stored.end_offset, flushed)

    def _hold_batch(self, connection: Connection, reply: Command, end_offset: int) -> None:
        def flushed(is_in_time: bool) -> None:
            if not is_in_time:
                reply.code = int(ResponseCode.FLUSH_DISK_TIMEOUT)
            connection.send(reply)

        self._when_flushed(end_offset, flushed)

    def _when_flushed(self, end_offset: int, flushed: Callable[[bool], None]) -> None:
        self._store.watermarks.flushed.when(
            end_offset, flushed, self._monotonic() + self._flush_seconds_max
        )

    def _slow_put(self, seconds: float) -> None:
        milliseconds = seconds * 1000
        self._stats.slow_put(milliseconds)
        self._flow.append_took(milliseconds)

    def _apply(self, config: BrokerConfig) -> None:
        self._is_sync_flush = config.store.flush.is_sync
        self._flush_seconds_max = config.store.flush.sync_timeout_ms / 1000
        self._body_bytes_max = config.store.log.message_bytes_max
        # Without replication there is no slave whose copy a SYNC_MASTER could wait for.
        self._stored_code = (
            int(ResponseCode.SLAVE_NOT_AVAILABLE) if config.identity.role == SYNC_MASTER else 0
        )
        self._is_slave = config.identity.is_slave
        self._rejects_transactions = config.transactions.is_rejected
        self._ip = config.identity.ip1
        self._accept_from_ms = config.flow.accept_sends_from_ms
        self._is_writable = is_writable(config.topics.permission)
        self._is_gated = (
            self._is_slave or not self._is_writable or self._clock.wall_ms() < self._accept_from_ms
        )
        # What every answer to a send carries.
        self.reply_ext = {
            "MSG_REGION": config.identity.region_id,
            "TRACE_ON": "true" if config.topics.trace_on else "false",
        }
        self._replies = SendReplies(self._store_host, self.reply_ext)


def _transaction_refusal() -> Refused:
    return Refused(
        ResponseCode.MESSAGE_ILLEGAL,
        f"a message of a transaction must be sent alone, with {TRANSACTION_PREPARED}=true; it was not stored",
    )
