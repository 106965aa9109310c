"""The replies to sends: where the message is stored, at once or when it is on disk; or why it was not stored.

Before this on a message's way: the store; next: ``remoting.connection``, which sends the reply.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cometmq.base.ports import Clock
from cometmq.broker.broker_stats import BrokerStats
from cometmq.broker.config.broker_config import BrokerConfig
from cometmq.broker.config.config_slices import SYNC_MASTER
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.send.flow_control import FlowControl
from cometmq.broker.send.store_refusals import refusal_of
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import FLAG_ONEWAY, Command
from cometmq.protocol.refusal import Refused
from cometmq.protocol.send_reply import SendReplies
from cometmq.remoting.connection import Connection
from cometmq.store.log.new_messages import Stored
from cometmq.store.message_store import MessageStore

_SLOW_SECONDS: Final = 0.001


class SendAnswers:
    def __init__(
        self,
        *,
        live: LiveConfig,
        store: MessageStore,
        stats: BrokerStats,
        flow: FlowControl,
        store_host: bytes,
        clock: Clock,
    ) -> None:
        self.monotonic = clock.monotonic
        self._store = store
        self._stats = stats
        self._flow = flow
        self._store_host = store_host
        self._apply(live.current)
        live.on_change(self._apply)

    def is_held(self, command: Command, *, waits: bool) -> bool:
        """Whether the reply has to wait for the disk. Raises Refused if too many wait already."""
        if not (waits and self._is_sync_flush) or command.flag & FLAG_ONEWAY:
            return False
        if text := self._flow.overload(self._store.watermarks.flushed.waiting):
            raise Refused(ResponseCode.SYSTEM_BUSY, text)
        return True

    def hold(
        self,
        connection: Connection,
        command: Command,
        queue_id: int,
        stored: Stored,
        replies: SendReplies,
    ) -> None:
        """Reply when the record is on disk, or with FLUSH_DISK_TIMEOUT if that takes too long."""
        code = self.stored_code

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

    def hold_batch(self, connection: Connection, reply: Command, end_offset: int) -> None:
        """The same for a batch, whose reply has been made already."""

        def flushed(is_in_time: bool) -> None:
            if not is_in_time:
                reply.code = int(ResponseCode.FLUSH_DISK_TIMEOUT)
            connection.send(reply)

        self._when_flushed(end_offset, flushed)

    def refusal(self, error: Exception) -> Exception:
        """What to answer to a put that failed: a refusal, or the error itself if it was not expected."""
        self._stats.put_failed_count += 1
        refusal = refusal_of(error, self._body_bytes_max)
        if refusal is None:
            return error
        refusal.ext = self.ext
        return refusal

    def put_took(self, seconds: float) -> None:
        """Pass on how long an append took, for statistics and flow control."""
        if seconds > _SLOW_SECONDS:
            milliseconds = seconds * 1000
            self._stats.slow_put(milliseconds)
            self._flow.append_took(milliseconds)

    def with_handle(self, handle: str) -> SendReplies:
        """Replies for messages that can be recalled."""
        return SendReplies(self._store_host, {**self.ext, "recallHandle": handle})

    def _when_flushed(self, end_offset: int, flushed: Callable[[bool], None]) -> None:
        self._store.watermarks.flushed.when(
            end_offset, flushed, self.monotonic() + self._flush_seconds_max
        )

    def _apply(self, config: BrokerConfig) -> None:
        self._is_sync_flush = config.store.flush.is_sync
        self._flush_seconds_max = config.store.flush.sync_timeout_ms / 1000
        self._body_bytes_max = config.store.log.message_bytes_max
        # There is no replication, so a SYNC_MASTER has no slave to wait for.
        self.stored_code = (
            int(ResponseCode.SLAVE_NOT_AVAILABLE) if config.identity.role == SYNC_MASTER else 0
        )
        # The fields that every reply to a send carries.
        self.ext = {
            "MSG_REGION": config.identity.region_id,
            "TRACE_ON": "true" if config.topics.trace_on else "false",
        }
        self.replies = SendReplies(self._store_host, self.ext)
