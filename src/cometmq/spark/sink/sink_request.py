"""What a sink sends at once: messages for one queue."""

from __future__ import annotations

from collections import Counter

from cometmq.client.aio.bulk.broker_link import StartedCall
from cometmq.model.message_queue import MessageQueue


class Request:
    """Messages for one queue, sent as a batch, or a single one that may be delayed."""

    __slots__ = ("elements", "is_batch", "keys", "queue", "reply", "seen_offset", "wire_topic")

    def __init__(self, queue: MessageQueue, wire_topic: str, *, is_batch: bool) -> None:
        self.queue = queue
        self.wire_topic = wire_topic
        self.is_batch = is_batch
        self.keys: list[bytes] = []
        self.elements: list[tuple[int, bytes, bytes]] = []
        """Flag, body and properties of each message."""
        self.reply: StartedCall | None = None
        """What is waited for; None when it was not sent, or the connection it was sent over is closed."""
        self.seen_offset = 0
        """An offset of the log that was reached before this was sent."""

    def leave_out(self, stored: Counter[bytes]) -> None:
        """Drop the messages that are stored already."""
        kept = []
        for key, element in zip(self.keys, self.elements, strict=True):
            if stored[key] > 0:
                stored[key] -= 1
            else:
                kept.append((key, element))
        self.keys = [key for key, _ in kept]
        self.elements = [element for _, element in kept]
