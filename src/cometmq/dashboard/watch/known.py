"""What is kept of answers that are about one name: some numbers each, since there are thousands of names."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Self

from cometmq.admin.topics.topic_rows import TopicStatus
from cometmq.protocol.bodies.connection import ConsumerConnection


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """Of a group. ``mismatched`` are topics to which its members subscribe in different ways."""

    clients: tuple[str, ...] = ()
    mode: str = ""
    mismatched: tuple[str, ...] = ()

    @classmethod
    def of(cls, online: ConsumerConnection) -> Self:
        return cls(
            clients=tuple(one.client_id for one in online.connection_set),
            mode=online.message_model or "",
            mismatched=tuple(sorted(one.topic for one in online.subscription_mismatch or [])),
        )

    @property
    def count(self) -> int:
        return len(self.clients)


NOBODY = Members()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """How many messages of a topic each broker has, and when the last one came."""

    by_broker: dict[str, int]
    updated_ms: int

    @classmethod
    def of(cls, status: TopicStatus) -> Self:
        counts: dict[str, int] = {}
        for row in status.queues:
            name = row.queue.broker_name
            counts[name] = counts.get(name, 0) + row.max_offset - row.min_offset
        updated = max((row.updated_ms for row in status.queues), default=0)
        return cls(by_broker=counts, updated_ms=updated)

    @property
    def message_count(self) -> int:
        return sum(self.by_broker.values())

    def completed_by(self, before: Fill | None, missing: Collection[str]) -> Fill:
        """With what was known of brokers that do not answer now: a list must not shrink because of them."""
        if before is None:
            return self
        kept = {name: count for name, count in before.by_broker.items() if name in missing}
        return Fill(
            by_broker=kept | self.by_broker, updated_ms=max(self.updated_ms, before.updated_ms)
        )


EMPTY = Fill(by_broker={}, updated_ms=0)
