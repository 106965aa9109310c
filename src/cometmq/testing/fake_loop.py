"""Callbacks and timers of an event loop that happen when a fake clock is moved."""

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


class FakeLoop:
    """Implements ``base.ports.EventLoop``. Timers go by the monotonic side of a clock, which ``advance`` moves."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, FakeTimer]] = []
        self._numbers = count()
        self.soon: list[Callable[[], None]] = []
        """What is to run in the next turn."""
        self.fired = 0
        """Timers that went off."""

    @property
    def waiting(self) -> int:
        """Timers that are set."""
        return sum(not timer.is_cancelled for _, _, timer in self._heap)

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def call_later(self, delay: float, callback: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(callback)
        heapq.heappush(self._heap, (self._clock.monotonic() + delay, next(self._numbers), timer))
        return timer

    def turn(self) -> None:
        """One turn: run what is to run soon, but not what that adds."""
        ready, self.soon = self.soon, []
        for callback in ready:
            callback()

    def fire(self) -> None:
        """Let every timer go off that is due now."""
        now = self._clock.monotonic()
        while self._heap and self._heap[0][0] <= now:
            self._fire_next()

    def advance(self, seconds: float) -> None:
        """Let time pass, and what becomes due in it happen at its time, turn by turn."""
        end = self._clock.monotonic() + seconds
        self._turn_until_idle()
        while self._heap and self._heap[0][0] <= end:
            # The clock counts milliseconds; a timer never fires early.
            self._clock.advance(max(self._heap[0][0] - self._clock.monotonic(), 0))
            self._fire_next()
            self._turn_until_idle()
        self._clock.advance(max(end - self._clock.monotonic(), 0))

    def _fire_next(self) -> None:
        _, _, timer = heapq.heappop(self._heap)
        if not timer.is_cancelled:
            self.fired += 1
            timer.callback()

    def _turn_until_idle(self) -> None:
        while self.soon:
            self.turn()
