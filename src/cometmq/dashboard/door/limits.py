"""How often something may be done: tokens that refill with time. No I/O; the clock is passed in."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

KEYS_MAX: Final = 10_000
"""Callers that are remembered; the one seen longest ago is forgotten."""


class Rates:
    """
    Args:
        per_second: tokens that come back.
        burst: tokens there are at most.
    """

    def __init__(self, *, per_second: float, burst: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str, now: float) -> float:
        """Take a token. Returns 0, or the seconds until there is one again."""
        left, at = self._left.pop(key, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._per_second)
        wait = 0.0 if left >= 1 else (1 - left) / self._per_second
        self._left[key] = (left if wait else left - 1, now)
        if len(self._left) > KEYS_MAX:
            self._left.popitem(last=False)
        return wait
