"""The replies to sends: where the message is stored, at once or when it is safe; or why it was not stored.

Before this on a message's way: the store; next: ``remoting.connection``, which sends the reply.
"""

from __future__ import annotations

import struct
from typing import Final

from cometmq.base.ports import Clock
from cometmq.broker.broker_stats import BrokerStats
from cometmq.broker.config.broker_config import BrokerConfig
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.durability import Durability
from cometmq.broker.send.flow_control import FlowControl
from cometmq.broker.send.plain_sends import PlainSends
from cometmq.broker.send.store_refusals import refusal_of
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import FLAG_ONEWAY, Command
from cometmq.protocol.refusal import Refused
from cometmq.protocol.send_reply import SendReplies
from cometmq.remoting.connection import Connection
from cometmq.store.log.new_messages import StoredMessages

_SLOW_SECONDS: Final = 0.001

Held = tuple[Connection, Command, int, int, int]
"""Who waits for a reply, and what it will say: the queue, the physical offset, the offset in the queue."""


class SendAnswers:
    def __init__(
        self,
        *,
        live: LiveConfig,
        durability: Durability,
        stats: BrokerStats,
        flow: FlowControl,
        store_host: bytes,
        clock: Clock,
    ) -> None:
        self.monotonic = clock.monotonic
        self._durability = durability
        self._stats = stats
        self._flow = flow
        self._store_host = store_host
        self._apply(live.current)
        live.on_change(self._apply)

    def is_awaited(self) -> bool:
        """Whether replies have to wait for disk or slaves, for all who want that. Raises Refused as ``is_held``."""
        durability = self._durability
        if not durability.is_awaited:
            return False
        durability.require_replicas()
        if text := self._flow.overload(durability.waiting):
            raise Refused(ResponseCode.SYSTEM_BUSY, text, bound="sendThreadPoolQueueCapacity")
        return True

    def is_held(self, command: Command, *, waits: bool) -> bool:
        """Whether the reply has to wait for disk or slaves. Raises Refused when it cannot be stored safely now."""
        durability = self._durability
        if not durability.is_awaited:
            return False
        durability.require_replicas()
        if not waits or command.flag & FLAG_ONEWAY:
            return False
        if text := self._flow.overload(durability.waiting):
            raise Refused(ResponseCode.SYSTEM_BUSY, text, bound="sendThreadPoolQueueCapacity")
        return True

    def hold(self, held: list[Held], end_offset: int, replies: SendReplies) -> None:
        """Reply when the log is safe up to ``end_offset``, the end of the last of these records, or took too long."""

        def answer(code: int) -> None:
            frame = replies.frame
            for connection, command, queue_id, physical_offset, queue_offset in held:
                connection.send_frame(
                    frame(
                        code,
                        command.opaque,
                        command.encoding,
                        physical_offset,
                        queue_id,
                        queue_offset,
                    )
                )

        request_code = held[0][1].code
        self._durability.when_safe(end_offset, answer, len(held), request_code=request_code)

    def hold_plain(
        self, sends: PlainSends, requests: dict[int, int], end_offset: int, replies: SendReplies
    ) -> None:
        """The same for those of plain sends that wait: ``requests`` of each code."""

        def answer(code: int) -> None:
            for connection, frames in sends.answers(
                replies.encoded_pieces, replies.id_prefix, code, True
            ):
                connection.send_frame(frames)

        count, request_code = sum(requests.values()), next(iter(requests))
        self._durability.when_safe(end_offset, answer, count, request_code=request_code)

    def batch_reply(self, command: Command, queue_id: int, stored: StoredMessages) -> Command:
        """The reply to a batch that was stored."""
        places = stored.physical_offsets
        # Eight bytes each, turned into text all at once: a quarter of the cost of one by one.
        texts = struct.pack(f">{len(places)}q", *places).hex(",", 8).upper()
        prefix = self.replies.id_prefix.decode()
        return command.reply(
            ext={
                "msgId": prefix + texts.replace(",", f",{prefix}"),
                "queueId": str(queue_id),
                "queueOffset": str(stored.queue_offsets[0]),
                **self.ext,
            }
        )

    def hold_batch(
        self, connection: Connection, command: Command, reply: Command, end_offset: int
    ) -> None:
        """The same for a batch, whose reply has been made already."""

        def answer(code: int) -> None:
            reply.code = code
            connection.send(reply)

        self._durability.when_safe(end_offset, answer, request_code=command.code)

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

    def _apply(self, config: BrokerConfig) -> None:
        self._body_bytes_max = config.store.log.message_bytes_max
        # The fields that every reply to a send carries.
        self.ext = {
            "MSG_REGION": config.identity.region_id,
            "TRACE_ON": "true" if config.topics.trace_on else "false",
        }
        self.replies = SendReplies(self._store_host, self.ext)
