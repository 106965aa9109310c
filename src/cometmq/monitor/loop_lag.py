"""How late the event loop is: a timer that looks at how much too late it fires."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Final

from cometmq.monitor.family import Family, Histogram, gauge, histogram, single

LOOK_SECONDS: Final = 0.1
STALL_SECONDS: Final = 10.0
"""A loop that was as late does not count as turning for a while."""
_EDGES: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)


class LoopLag:
    """Looks between ``start`` and ``stop``."""

    def __init__(self) -> None:
        self.seconds = 0.0
        """At the last look."""
        self.counts = Histogram(_EDGES)
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def families(self) -> tuple[Family, ...]:
        return (
            gauge(
                "cometmq_event_loop_lag",
                (),
                single(lambda: self.seconds),
                unit="seconds",
                text="How late the event loop was at the last look",
            ),
            histogram(
                "cometmq_event_loop_lag_distribution",
                (),
                lambda: (((), self.counts),),
                unit="seconds",
                text="How late the event loop was, ten looks a second",
            ),
        )

    def start(self) -> None:
        self._due = monotonic() + LOOK_SECONDS
        self._timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def check(self) -> str | None:
        """Why the loop does not count as turning."""
        if self.seconds < STALL_SECONDS:
            return None
        return f"the event loop was {self.seconds:.1f} s late"

    def _look(self) -> None:
        self.seconds = max(monotonic() - self._due, 0.0)
        self.counts.add(self.seconds)
        self.start()
