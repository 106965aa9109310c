"""One timer of the event loop for work that falls due at times of the wall clock."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from cometmq.base.ports import EventLoop, Timer

log = logging.getLogger("cometmq.broker")

RETRY_SECONDS: Final = 1.0
"""When the store takes nothing, for example because the disk is full."""
_SECONDS_MIN: Final = 0.001


class DueTimer:
    """Runs turns of the work between ``start`` and ``stop``. Owned by the event loop.

    Args:
        what: who waits when a turn fails, for the log.
        turn: does what is due, up to a bound. Seconds until the next turn; None when nothing waits.
        now_ms: the clock that the times are from.
        look_seconds_max: a timer does not see the wall clock being set, so nobody sleeps longer than this without a
            look at it.
    """

    def __init__(
        self,
        what: str,
        turn: Callable[[], float | None],
        *,
        now_ms: Callable[[], int],
        loop: EventLoop,
        look_seconds_max: float,
    ) -> None:
        self._what = what
        self._turn = turn
        self._now_ms = now_ms
        self._loop = loop
        self._look_seconds_max = look_seconds_max
        self._is_running = False
        self._timer: Timer | None = None
        self._timer_at_ms = 0
        self._is_failing = False

    def start(self) -> None:
        self._is_running = True
        self._arm(0.0)

    def stop(self) -> None:
        self._is_running = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def added(self, due_ms: int) -> None:
        """Something new is due at this time."""
        # Most is due later than what the timer is set for, and nothing is to do.
        if self._is_running and (self._timer is None or due_ms < self._timer_at_ms):
            self._arm((due_ms - self._now_ms()) / 1000)

    def _arm(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        seconds = min(max(seconds, 0.0), self._look_seconds_max)
        self._timer_at_ms = self._now_ms() + int(seconds * 1000)
        self._timer = self._loop.call_later(seconds, self._run)

    def _run(self) -> None:
        self._timer = None
        try:
            seconds = self._turn()
        except Exception as error:  # noqa: BLE001 - a timer's root: the work must go on
            if not self._is_failing:
                self._is_failing = True
                log.error("%s wait reason=%r; they will be tried again", self._what, error)
            seconds = RETRY_SECONDS
        else:
            self._is_failing = False
        if seconds is not None and self._is_running:
            self._arm(seconds)


def seconds_until(due_ms: int, now_ms: int) -> float:
    """Never 0, which would mean that more is due now."""
    return max((due_ms - now_ms) / 1000, _SECONDS_MIN)
