"""After work, look for more for some microseconds before the event loop goes to sleep.

A core that sleeps takes tens of microseconds to wake up, longer than the broker needs for a pull. Measured with one
consumer that pulls 32 messages at a time: 1.4 times the messages, with no more CPU time for each. A peer that waits for
each of its replies needs longer until it asks again: while requests come that close it is waited for, too. With one
blocking sender: 1.4 times the sends. The time of the first look belongs to whoever has a use for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Final

STEADY_TIMES: Final = 8
"""So much longer it looks while less than that lies between one piece of work and the next."""


class BusyPoll:
    """Keeps the running event loop awake.

    Args:
        micros: for so long after work that came alone; 0 means not at all.
        in_spare_time: called once after work, when the loop has looked at its sockets again.
    """

    __slots__ = (
        "_has_worked",
        "_in_spare_time",
        "_is_awake",
        "_seconds",
        "_steady_seconds",
        "_until",
        "_worked_at",
    )

    def __init__(self, micros: int, in_spare_time: Callable[[], None]) -> None:
        self._in_spare_time = in_spare_time
        self._has_worked = False
        self._seconds = micros / 1_000_000
        self._steady_seconds = STEADY_TIMES * self._seconds
        self._worked_at = 0.0
        self._until = 0.0
        self._is_awake = False

    def worked(self) -> None:
        """Something was done: more may follow soon."""
        if self._seconds:
            # Not the loop's own time: uvloop's has no more than milliseconds.
            now = monotonic()
            is_steady = now - self._worked_at < self._steady_seconds
            self._worked_at = now
            self._has_worked = True
            self._until = now + (self._steady_seconds if is_steady else self._seconds)
            if not self._is_awake:
                self._is_awake = True
                asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        # A callback that is ready makes the loop look at its sockets without waiting for them.
        if monotonic() < self._until:
            asyncio.get_running_loop().call_soon(self._look)
        else:
            self._is_awake = False
        if self._has_worked:
            self._has_worked = False
            self._in_spare_time()
