"""What timers have taken and given, for the metrics."""

from __future__ import annotations

from collections import Counter

from cometmq.monitor.family import Histogram

_EDGES = (60.0, 600.0, 3600.0, 43_200.0, 86_400.0, 259_200.0)
"""Seconds."""
TOPICS_MAX = 20_000
"""What goes to topics beyond that is counted as of the topic "". Deleted topics stay."""


class TimerCounts:
    """By the topic that messages go to. Owned by the event loop."""

    def __init__(self) -> None:
        self.taken: Counter[str] = Counter()
        self.given: Counter[str] = Counter()
        self.delays: dict[str, Histogram] = {}
        """How long they were to wait."""

    def take(self, topic: str, delay_seconds: float) -> None:
        delays = self.delays.get(topic)
        if delays is None:
            topic = self._bounded(topic)
            delays = self.delays.setdefault(topic, Histogram(_EDGES))
        delays.add(max(delay_seconds, 0.0))
        self.taken[topic] += 1

    def give(self, topic: str) -> None:
        self.given[topic if topic in self.given else self._bounded(topic)] += 1

    def _bounded(self, topic: str) -> str:
        return topic if max(len(self.delays), len(self.given)) < TOPICS_MAX else ""
