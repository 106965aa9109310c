"""What is told about topics: values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cometmq.base.errors import CometError
from cometmq.model.message_queue import MessageQueue
from cometmq.model.topic import TopicConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRow:
    """A topic as brokers define it. ``by_broker`` has the definitions by broker name."""

    name: str
    by_broker: Mapping[str, TopicConfig]

    @property
    def read_queues(self) -> int:
        return sum(config.read_queue_nums for config in self.by_broker.values())

    @property
    def write_queues(self) -> int:
        return sum(config.write_queue_nums for config in self.by_broker.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicGroups:
    """The groups that consume a topic: those online, and those with positions in it."""

    topic: str
    groups: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    """A queue of a topic holds offsets from ``min_offset`` up to ``max_offset``, which is not included.

    ``updated_ms`` is when its last message was stored; 0 if it has none.
    """

    queue: MessageQueue
    min_offset: int
    max_offset: int
    updated_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStatus:
    """Where the queues of a topic are. RocketMQ 4 does not tell ``put_tps``: None."""

    topic: str
    queues: list[QueueRow]
    put_tps: float | None
    failed: Mapping[str, CometError] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        return not self.failed

    @property
    def message_count(self) -> int:
        """How many messages there are."""
        return sum(row.max_offset - row.min_offset for row in self.queues)
