"""What is told about consumer groups: values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cometmq.base.errors import CometError
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.message_queue import MessageQueue


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """A group as brokers define it. ``by_broker`` has the definitions by broker name."""

    name: str
    by_broker: Mapping[str, SubscriptionGroupConfig]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLag:
    """How far a group is in a queue.

    Args:
        broker_offset: the end of the queue.
        consumer_offset: the group's position; 0 if it has none.
        consumed_ms: when the last consumed message was stored; 0 if that is not known.
        pull_offset: how far the group has pulled; None if the broker, such as RocketMQ 4, does not tell.
    """

    queue: MessageQueue
    broker_offset: int
    consumer_offset: int
    consumed_ms: int
    pull_offset: int | None = None

    @property
    def lag(self) -> int:
        """Messages that are not consumed yet."""
        return self.broker_offset - self.consumer_offset

    @property
    def in_flight(self) -> int:
        """Messages that are pulled and not consumed yet; 0 if the broker does not tell."""
        if self.pull_offset is None:
            return 0
        return max(self.pull_offset - self.consumer_offset, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupProgress:
    """How far a group is, queue by queue, sorted; ``tps`` is what it consumes per second."""

    group: str
    queues: list[QueueLag]
    tps: float
    failed: Mapping[str, CometError] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        return not self.failed

    @property
    def lag(self) -> int:
        return sum(row.lag for row in self.queues)

    @property
    def in_flight(self) -> int:
        return sum(row.in_flight for row in self.queues)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """A group in one row.

    Args:
        members: how many clients are online; 0: none, and then the next three are empty.
        version: the lowest version among them, as RocketMQ counts them.
        consume_type, message_model: names of the enums in ``model.consumption``.
        lag: messages that are not consumed yet, retries included.
        topics: how many messages are not consumed yet, by topic.
    """

    group: str
    members: int
    version: int | None
    consume_type: str
    message_model: str
    tps: float
    lag: int
    topics: Mapping[str, int]
