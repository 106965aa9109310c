"""RECALL_MESSAGE: a producer takes a timed message back that is not yet due.

The recall is itself a message of the timer topic, due at the same time as the one it takes back. Whether that one
exists is not looked up, as in RocketMQ: success means that nothing of this name will be delivered at that time.
"""

from __future__ import annotations

from cometmq.base.errors import UsageError
from cometmq.base.ports import Clock
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.send.store_refusals import refusal_of, refuse_on_slave
from cometmq.broker.timer.timed_messages import TimedMessages
from cometmq.model.flags import is_writable
from cometmq.model.messages.recall_handle import RecallHandle, decode_recall_handle
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import FLAG_ONEWAY, Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.send import RecallMessageHeader
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.store.log.new_messages import Stored
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.topics import TopicTable


class RecallProcessor:
    def __init__(
        self,
        *,
        live: LiveConfig,
        store: MessageStore,
        topics: TopicTable,
        timed: TimedMessages,
        clock: Clock,
    ) -> None:
        self._live = live
        self._store = store
        self._topics = topics
        self._timed = timed
        self._clock = clock

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.RECALL_MESSAGE, self.recall)

    def recall(self, connection: Connection, command: Command) -> Command | None:
        config = self._live.current
        region = {"MSG_REGION": config.identity.region_id}
        try:
            header = decode_fields(RecallMessageHeader, command.ext)
            handle = self._admit(header)
            try:
                stored = self._timed.recall(handle, header.producer_group, connection.peer_host)
            except Exception as error:
                refusal = refusal_of(error, config.store.log.message_bytes_max)
                if refusal is None:
                    raise
                raise refusal from error
        except Refused as refused:
            refused.ext = region
            raise
        self._timed.tally.add(stored.size_bytes)
        reply = command.reply(0, ext={"msgId": handle.unique_key, **region})
        if config.store.flush.is_sync and not command.flag & FLAG_ONEWAY:
            self._hold(connection, reply, stored)
            return None
        return reply

    def _admit(self, header: RecallMessageHeader) -> RecallHandle:
        """The checks, in RocketMQ's order and words. Raises Refused."""
        config = self._live.current
        now_ms = self._clock.wall_ms()
        refuse_on_slave(config.identity)
        if not config.timers.recall or not config.timers.is_enabled:
            raise Refused(ResponseCode.NO_PERMISSION, "recall failed, operation is forbidden")
        if now_ms < config.flow.accept_sends_from_ms or not is_writable(config.topics.permission):
            raise Refused(
                ResponseCode.SERVICE_NOT_AVAILABLE, "recall failed, broker service not available"
            )
        if self._topics.get(header.topic) is None:
            raise Refused(
                ResponseCode.TOPIC_NOT_EXIST,
                f"recall failed, the topic[{header.topic}] not exist",
            )
        try:
            handle = decode_recall_handle(header.recall_handle)
        except UsageError as error:
            raise Refused(ResponseCode.ILLEGAL_OPERATION, str(error)) from None
        if handle.topic != header.topic:
            raise Refused(ResponseCode.ILLEGAL_OPERATION, "recall failed, topic not match")
        if handle.broker_name != config.identity.broker_name:
            raise Refused(
                ResponseCode.ILLEGAL_OPERATION, "recall failed, broker service not available"
            )
        # By any clock that the message may wait for: there are several after the wall clock was set.
        earliest_ms, latest_ms = self._timed.clock_range()
        max_ms = config.timers.delay_seconds_max * 1000
        if not earliest_ms < handle.deliver_ms <= latest_ms + max_ms:
            raise Refused(ResponseCode.ILLEGAL_OPERATION, "recall failed, timestamp invalid")
        return handle

    def _hold(self, connection: Connection, reply: Command, stored: Stored) -> None:
        """Answer when the disk has the recall. Too late is no failure, as in RocketMQ: it is stored."""
        seconds = self._live.current.store.flush.sync_timeout_ms / 1000
        self._store.watermarks.flushed.when(
            stored.end_offset,
            lambda _: connection.send(reply),
            self._clock.monotonic() + seconds,
        )
