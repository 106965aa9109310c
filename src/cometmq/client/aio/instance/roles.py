"""What a client instance needs from its producers and consumers: what to tell brokers, who handles their requests.

Groups and topics are wire names: a role adds its namespace itself, with ``ClientInstance.wrap_group`` and
``wrap_topic``. All methods are called on the instance's event loop; those that are not coroutines must return at once.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from cometmq.client.errors import GroupInUse
from cometmq.model.consumption import ConsumeFromWhere, ConsumeType, MessageModel
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import ReceivedMessage
from cometmq.model.names import AUTO_CREATE_TOPIC
from cometmq.model.subscription import SubscriptionData
from cometmq.protocol.bodies.running import ConsumeDirectlyResult, ConsumerRunningInfo
from cometmq.protocol.command import Command


class ProducerRole(Protocol):
    @property
    def group(self) -> str: ...

    def topics(self) -> Collection[str]:
        """The topics it sends to, whose routes are kept fresh."""
        ...

    async def check_transaction(self, address: str, request: Command) -> None:
        """Request 39: the broker at ``address`` asks for the outcome of a half message."""
        ...

    def reply_arrived(self, request: Command) -> None:
        """Request 326. Every producer of the instance gets it; those that did not ask ignore it."""
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

    @property
    def retries_max(self) -> int | None:
        """How often a message is retried before it becomes a dead letter; None if brokers do not decide this."""
        ...

    def subscriptions(self) -> list[SubscriptionData]:
        """What heartbeats tell the brokers."""
        ...

    def topics(self) -> Collection[str]:
        """The topics it reads, whose routes are kept fresh."""
        ...

    def rebalance_soon(self) -> None:
        """Request 40, or a changed route of one of its topics: rebalance the queues."""
        ...

    async def reset_offsets(self, topic: str, offsets: dict[MessageQueue, int]) -> None:
        """Request 220: continue at these offsets."""
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
        """Request 309: let the listener consume this one message now."""
        ...


class RoleTable:
    """The producers and consumers of one instance, by group."""

    def __init__(self) -> None:
        self.producers: dict[str, ProducerRole] = {}
        self.consumers: dict[str, ConsumerRole] = {}

    def add_producer(self, role: ProducerRole) -> None:
        if role.group in self.producers:
            raise GroupInUse(_in_use("producer", role.group))
        self.producers[role.group] = role

    def add_consumer(self, role: ConsumerRole) -> None:
        if role.group in self.consumers:
            raise GroupInUse(_in_use("consumer", role.group))
        self.consumers[role.group] = role

    def remove_producer(self, role: ProducerRole) -> bool:
        """Whether it was there."""
        if self.producers.get(role.group) is not role:
            return False
        del self.producers[role.group]
        return True

    def remove_consumer(self, role: ConsumerRole) -> bool:
        """Whether it was there."""
        if self.consumers.get(role.group) is not role:
            return False
        del self.consumers[role.group]
        return True

    def is_watched(self, topic: str) -> bool:
        """Whether the route of this topic is kept fresh."""
        return (
            any(topic in role.topics() for role in self.producers.values())
            or any(topic in role.topics() for role in self.consumers.values())
            or (topic == AUTO_CREATE_TOPIC and bool(self.producers))
        )

    def watched(self) -> set[str]:
        """All topics whose routes are kept fresh."""
        topics: set[str] = set()
        for producer in self.producers.values():
            topics.update(producer.topics())
        for consumer in self.consumers.values():
            topics.update(consumer.topics())
        if self.producers:
            # The brokers of this topic know a producer from its start, before it has sent anything.
            topics.add(AUTO_CREATE_TOPIC)
        return topics


def _in_use(kind: str, group: str) -> str:
    return (
        f"{kind} group {group!r} is already in use with this client id; use the {kind} that is there, or give one "
        "of them another instance_name"
    )
