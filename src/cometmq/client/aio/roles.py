"""What a client instance wants of its producers and consumers: what to tell brokers, whom to hand their requests.

Groups and topics are the names that travel on the wire: a role wraps its namespace round them itself, with
``ClientInstance.wrap_group`` and ``wrap_topic``. All methods are called on the instance's event loop; those that are
no coroutines must return at once.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from cometmq.model.consumption import ConsumeFromWhere, ConsumeType, MessageModel
from cometmq.model.message import ReceivedMessage
from cometmq.model.message_queue import MessageQueue
from cometmq.model.subscription import SubscriptionData
from cometmq.protocol.bodies.running import ConsumeDirectlyResult, ConsumerRunningInfo
from cometmq.protocol.command import Command


class ProducerRole(Protocol):
    @property
    def group(self) -> str: ...

    def topics(self) -> Collection[str]:
        """The topics it sends to, whose routes are to be kept fresh."""
        ...

    async def check_transaction(self, address: str, request: Command) -> None:
        """Request 39: the broker at ``address`` asks what became of a half message."""
        ...

    def reply_arrived(self, request: Command) -> None:
        """Request 326. Every producer of the instance is shown it; one that did not ask takes no notice."""
        ...


class ConsumerRole(Protocol):
    @property
    def group(self) -> str: ...

    @property
    def consume_type(self) -> ConsumeType: ...

    @property
    def message_model(self) -> MessageModel: ...

    @property
    def consume_from(self) -> ConsumeFromWhere: ...

    def subscriptions(self) -> list[SubscriptionData]:
        """What heartbeats tell the brokers."""
        ...

    def topics(self) -> Collection[str]:
        """The topics it reads, whose routes are to be kept fresh."""
        ...

    def rebalance_soon(self) -> None:
        """Request 40, or a route of one of its topics changed: share the queues out anew."""
        ...

    async def reset_offsets(self, topic: str, offsets: dict[MessageQueue, int]) -> None:
        """Request 220: go on from these offsets."""
        ...

    def positions(self, topic: str) -> dict[MessageQueue, int]:
        """Request 221: how far each of its queues is consumed."""
        ...

    def running_info(self) -> ConsumerRunningInfo:
        """Request 307. The instance adds what it knows itself: name servers, consume type, version."""
        ...

    async def consume_directly(
        self, message: ReceivedMessage, broker_name: str
    ) -> ConsumeDirectlyResult:
        """Request 309: have the listener take this one message now."""
        ...
