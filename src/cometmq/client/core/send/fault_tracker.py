"""Which brokers to avoid for a while, based on their response times (sendLatencyFaultEnable). No I/O.

After a slow or failed reply, its broker is avoided for a time that grows with the latency. The two RocketMQ series
differ: 4.9 avoids a broker for up to ten minutes and falls back on the least bad one; 5.x does so for up to half a
minute, and also remembers whether a broker could be reached at all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cometmq.client.core.send.queue_selector import RoundRobin
from cometmq.model.message_queue import MessageQueue


@dataclass(frozen=True, slots=True)
class FaultNumbers:
    """After a reply that took ``latency_ms[i]`` or more, its broker is avoided for ``closed_ms[i]``."""

    latency_ms: tuple[int, ...]
    closed_ms: tuple[int, ...]
    failure_latency_ms: int
    """The latency that a failed send counts as."""
    remembers_reach: bool

    def closed_for(self, latency_ms: float) -> int:
        step = bisect_right(self.latency_ms, latency_ms)
        return self.closed_ms[step - 1] if step else 0


SERIES: Final = {
    "4.9": FaultNumbers(
        (50, 100, 550, 1000, 2000, 3000, 15000),
        (0, 0, 30_000, 60_000, 120_000, 180_000, 600_000),
        30_000,
        remembers_reach=False,
    ),
    "5": FaultNumbers(
        (50, 100, 550, 1800, 3000, 5000, 15000),
        (0, 0, 2_000, 5_000, 6_000, 10_000, 30_000),
        10_000,
        remembers_reach=True,
    ),
}


class _Item:
    __slots__ = ("is_reachable", "latency_ms", "open_from_ms")

    def __init__(self) -> None:
        self.latency_ms = 0.0
        self.open_from_ms = 0.0
        self.is_reachable = True


class FaultTracker:
    """One per producer. Times are milliseconds of one clock."""

    def __init__(self, numbers: FaultNumbers) -> None:
        self._numbers = numbers
        self._items: dict[str, _Item] = {}
        self._rotation = 0

    def answered(self, broker_name: str, latency_ms: float, now_ms: float) -> None:
        self._record(broker_name, latency_ms, latency_ms, now_ms, is_reachable=True)

    def failed(
        self, broker_name: str, latency_ms: float, now_ms: float, *, is_reachable: bool
    ) -> None:
        """A send failed. ``is_reachable``: the broker answered, but with an error."""
        counted = self._numbers.failure_latency_ms
        self._record(broker_name, latency_ms, counted, now_ms, is_reachable=is_reachable)

    def forget(self, broker_name: str) -> None:
        self._items.pop(broker_name, None)

    def is_open(self, broker_name: str, now_ms: float) -> bool:
        item = self._items.get(broker_name)
        return item is None or now_ms >= item.open_from_ms

    def is_reachable(self, broker_name: str) -> bool:
        item = self._items.get(broker_name)
        return item is None or item.is_reachable

    def select(
        self,
        queues: Sequence[MessageQueue],
        robin: RoundRobin,
        now_ms: float,
        failed_broker: str | None = None,
    ) -> MessageQueue:
        """The queue for the next attempt, according to the series."""
        if self._numbers.remembers_reach:
            return (
                robin.select_where(
                    queues,
                    lambda queue: (
                        queue.broker_name != failed_broker
                        and self.is_open(queue.broker_name, now_ms)
                    ),
                )
                or robin.select_where(
                    queues,
                    lambda queue: (
                        queue.broker_name != failed_broker and self.is_reachable(queue.broker_name)
                    ),
                )
                or robin.select(queues, failed_broker)
            )
        found = robin.select_where(queues, lambda queue: self.is_open(queue.broker_name, now_ms))
        if found is not None:
            return found
        least_bad = self._least_bad(now_ms)
        if least_bad is not None:
            found = robin.select_where(queues, lambda queue: queue.broker_name == least_bad)
            if found is not None:
                return found
            # It no longer has a queue of the topic.
            self.forget(least_bad)
        return robin.select(queues)

    def _least_bad(self, now_ms: float) -> str | None:
        """Rotates over the better half of the brokers: available ones first, then by latency, then by time left."""
        if not self._items:
            return None
        ranked = sorted(
            self._items.items(),
            key=lambda entry: (
                now_ms < entry[1].open_from_ms,
                entry[1].latency_ms,
                entry[1].open_from_ms,
            ),
        )
        self._rotation += 1
        return ranked[self._rotation % max(len(ranked) // 2, 1)][0]

    def _record(
        self,
        broker_name: str,
        latency_ms: float,
        counted_ms: float,
        now_ms: float,
        *,
        is_reachable: bool,
    ) -> None:
        item = self._items.get(broker_name)
        if item is None:
            item = self._items[broker_name] = _Item()
        item.latency_ms = latency_ms
        item.is_reachable = is_reachable
        open_from_ms = now_ms + self._numbers.closed_for(counted_ms)
        # In 5.x, a fast reply does not shorten the time set by an earlier slow one.
        if not self._numbers.remembers_reach or open_from_ms > item.open_from_ms:
            item.open_from_ms = open_from_ms
