"""What brokers say about many queues at once. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field

from cometmq.base.errors import CometError
from cometmq.client.core.broker_order import Place
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol.command import Command


@dataclass(frozen=True, slots=True)
class Bounds:
    """A queue holds offsets from ``first`` up to ``end``, which is not included; as who was asked sees it."""

    first: int
    end: int
    is_master: bool = True


@dataclass(slots=True)
class Answers:
    """Replies by queue, with who gave them; and why there is none."""

    replies: dict[MessageQueue, tuple[Command, Place]] = field(default_factory=dict)
    failures: dict[MessageQueue, CometError] = field(default_factory=dict)

    def raise_first(self) -> None:
        for failure in self.failures.values():
            raise failure
