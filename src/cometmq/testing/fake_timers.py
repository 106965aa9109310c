"""Timers of an event loop that fire when a fake clock is moved."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

from cometmq.testing.fake_clock import FakeClock


class FakeTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class FakeTimers:
    """Timers by the monotonic side of a clock, which ``advance`` moves from one timer to the next."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, FakeTimer]] = []
        self._numbers = count()
        self.fired = 0

    @property
    def waiting(self) -> int:
        return sum(not timer.is_cancelled for _, _, timer in self._heap)

    def call_later(self, delay: float, callback: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(callback)
        heapq.heappush(self._heap, (self._clock.monotonic() + delay, next(self._numbers), timer))
        return timer

    def advance(self, seconds: float) -> None:
        """Let time pass, and what becomes due in it happen at its time."""
        end = self._clock.monotonic() + seconds
        while self._heap and self._heap[0][0] <= end:
            at, _, timer = heapq.heappop(self._heap)
            # The clock counts milliseconds; a timer never fires early.
            self._clock.advance(max(at - self._clock.monotonic(), 0))
            if not timer.is_cancelled:
                self.fired += 1
                timer.callback()
        self._clock.advance(max(end - self._clock.monotonic(), 0))
