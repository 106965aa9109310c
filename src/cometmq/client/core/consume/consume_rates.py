"""Rates of a topic for an operator, from counters that are looked at every few seconds. No I/O."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

WINDOW_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Counters:
    """Totals since the start of the consumer."""

    pulled: int = 0
    consumed: int = 0
    consumed_seconds: float = 0.0
    failed: int = 0

    def plus(self, other: Counters) -> Counters:
        return Counters(
            self.pulled + other.pulled,
            self.consumed + other.consumed,
            self.consumed_seconds + other.consumed_seconds,
            self.failed + other.failed,
        )


@dataclass(frozen=True, slots=True)
class Rates:
    """Per second over the last minute; ``consume_ms`` is the mean time of one message in the listener."""

    pulled: float = 0.0
    consumed: float = 0.0
    failed: float = 0.0
    consume_ms: float = 0.0


class RateWindow:
    """Totals of the last minute, oldest first."""

    __slots__ = ("_samples",)

    def __init__(self) -> None:
        self._samples: deque[tuple[float, Counters]] = deque()

    def sample(self, now: float, totals: Counters) -> None:
        samples = self._samples
        samples.append((now, totals))
        while len(samples) > 2 and samples[1][0] <= now - WINDOW_SECONDS:
            samples.popleft()

    def rates(self) -> Rates:
        if len(self._samples) < 2:
            return Rates()
        (began, first), (ended, last) = self._samples[0], self._samples[-1]
        seconds = ended - began
        if seconds <= 0:
            return Rates()
        consumed = last.consumed - first.consumed
        spent = last.consumed_seconds - first.consumed_seconds
        return Rates(
            pulled=(last.pulled - first.pulled) / seconds,
            consumed=consumed / seconds,
            failed=(last.failed - first.failed) / seconds,
            consume_ms=spent * 1000 / consumed if consumed else 0.0,
        )
