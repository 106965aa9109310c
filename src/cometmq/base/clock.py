"""The real clock, on every system. The protocol it meets is ``ports.Clock``."""

from __future__ import annotations

import time


class SystemClock:
    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()
