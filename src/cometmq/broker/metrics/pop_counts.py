"""What POP consumption has done, for the metrics: written, taken up again, tried again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

CHECK_POINT: Final = "CK"
ACK: Final = "ACK"
"""Kinds of entries of the revive topic, as RocketMQ's metrics name them."""


class PopCounts:
    """By topic and group first. Owned by the event loop."""

    def __init__(self) -> None:
        self.written: Counter[tuple[str, str, str]] = Counter()
        """Entries of the revive topic; the third is their kind."""
        self.taken_up: Counter[tuple[str, str, str, int]] = Counter()
        """Entries that were dealt with because the time of a message was over; the fourth is the revive queue."""
        self.tried_again: Counter[tuple[str, str]] = Counter()
        """Messages put into the retry topic."""

    def forget_topic(self, topic: str) -> None:
        self._forget(lambda key: key[0] == topic)

    def forget_group(self, group: str) -> None:
        self._forget(lambda key: key[1] == group)

    def _forget(self, is_meant: Callable[[tuple[object, ...]], bool]) -> None:
        for table in (self.written, self.taken_up, self.tried_again):
            for key in [key for key in table if is_meant(key)]:
                del table[key]
