"""What became of transactions, for the metrics."""

from __future__ import annotations

from collections import Counter

from cometmq.monitor.family import Histogram

_EDGES = (5.0, 60.0, 600.0, 3600.0, 43_200.0, 86_400.0)
"""Seconds."""
TOPICS_MAX = 20_000
"""What ends in topics beyond that is counted as of the topic "". Deleted topics stay."""


class TransactionCounts:
    """By topic. Owned by the event loop."""

    def __init__(self) -> None:
        self.committed: Counter[str] = Counter()
        self.rolled_back: Counter[str] = Counter()
        self.seconds: dict[str, Histogram] = {}
        """From the birth of a message to its commit or rollback."""

    def ended(self, topic: str, seconds: float, *, is_commit: bool) -> None:
        times = self.seconds.get(topic)
        if times is None:
            if len(self.seconds) >= TOPICS_MAX:
                topic = ""
            times = self.seconds.setdefault(topic, Histogram(_EDGES))
        times.add(max(seconds, 0.0))
        (self.committed if is_commit else self.rolled_back)[topic] += 1
