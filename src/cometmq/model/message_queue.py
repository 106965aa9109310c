"""A queue of a topic on a broker: the unit of order, of consumption and of offsets."""

from __future__ import annotations

from functools import total_ordering

import msgspec

from cometmq.model.ids import Int32


@total_ordering
class MessageQueue(msgspec.Struct, frozen=True, rename="camel"):
    """A queue of a topic. Sorts by topic, broker name and queue id; the wire keys are in Java's alphabetical order."""

    broker_name: str
    queue_id: Int32
    topic: str

    def __lt__(self, other: MessageQueue) -> bool:
        return self._key() < other._key()

    def _key(self) -> tuple[str, str, int]:
        return self.topic, self.broker_name, self.queue_id

    def __str__(self) -> str:
        """Java's string form; consistent hashing uses it."""
        return (
            f"MessageQueue [topic={self.topic}, brokerName={self.broker_name}, "
            f"queueId={self.queue_id}]"
        )
