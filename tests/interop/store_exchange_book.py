"""What a store must hold: every message and every position, as last seen and therefore promised.

A broker that is killed leaves sends behind that nobody confirmed. Such a message may be there or not; the next broker
decides, and from then on the book holds everybody to that decision.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from cometmq.client.aio.send.producer import SendResult
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import ReceivedMessage


@dataclass
class Unconfirmed:
    """Sends that were under way when a broker was killed. Bodies tell them apart."""

    bodies: set[bytes] = field(default_factory=set)
    confirmed: dict[bytes, SendResult] = field(default_factory=dict)


@dataclass
class Book:
    """All that was stored so far, in the order of each queue."""

    messages: dict[MessageQueue, list[ReceivedMessage]] = field(default_factory=dict)
    positions: dict[tuple[str, MessageQueue], int] = field(default_factory=dict)
    unconfirmed: Unconfirmed = field(default_factory=Unconfirmed)
    unindexed: set[str] = field(default_factory=set)
    """Ids of messages that RocketMQ's recovery dropped from the index."""

    def topics(self) -> dict[str, int]:
        """Each topic and its number of queues."""
        counts: dict[str, int] = {}
        for queue in self.messages:
            counts[queue.topic] = counts.get(queue.topic, 0) + 1
        return counts

    def settle(self, found: dict[MessageQueue, list[ReceivedMessage]]) -> None:
        """Takes over what a broker has found, or fails where that breaks a promise."""
        assert found.keys() == self.messages.keys()
        added: list[ReceivedMessage] = []
        for queue, promised in self.messages.items():
            there = found[queue]
            for expected, message in zip(promised, there, strict=False):
                assert message == expected, f"{queue} at {expected.queue_offset}"
            assert len(there) >= len(promised), f"{queue}: {len(there)} of {len(promised)} messages"
            added += there[len(promised) :]
            self.messages[queue] = there
        self._settle_unconfirmed(added)
        self.unconfirmed = Unconfirmed()

    def _settle_unconfirmed(self, added: Iterable[ReceivedMessage]) -> None:
        by_body: dict[bytes, ReceivedMessage] = {}
        for message in added:
            assert message.body in self.unconfirmed.bodies, f"nobody sent {message}"
            assert message.body not in by_body, f"twice there: {message}"
            by_body[message.body] = message
        for body, sent in self.unconfirmed.confirmed.items():
            assert body in by_body, f"confirmed and lost: {sent}"
            message = by_body[body]
            assert message.message_id == sent.message_id
            assert message.offset_id == sent.offset_id
            assert message.queue_offset == sent.queue_offset
            assert message.queue_id == sent.queue.queue_id
