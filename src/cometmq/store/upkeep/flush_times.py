"""How long the log's flushes took. One thread at a time adds; any may read, and may see figures a little old."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

EDGES: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)


class FlushTimes:
    __slots__ = ("counts", "seconds")

    def __init__(self) -> None:
        self.counts = [0] * (len(EDGES) + 1)
        """By bucket; the last one has what took longer than all of ``EDGES``."""
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(EDGES, seconds)] += 1
        self.seconds += seconds
