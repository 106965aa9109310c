"""When a process that died is started again, and when no more. A pure decision: the time is an argument."""

from __future__ import annotations

from typing import Final

LONG_SECONDS: Final = 60.0
"""Who has lived as long did not die of how it was started: whatever was before is forgotten."""
QUICK_DEATHS_MAX: Final = 5
FIRST_PAUSE_SECONDS: Final = 0.5


class Patience:
    def __init__(self) -> None:
        self._quick_deaths = 0

    def pause_after(self, lived_seconds: float) -> float | None:
        """Seconds until the next start; None if there should be none."""
        if lived_seconds >= LONG_SECONDS:
            self._quick_deaths = 0
        self._quick_deaths += 1
        if self._quick_deaths >= QUICK_DEATHS_MAX:
            return None
        return FIRST_PAUSE_SECONDS * float(2 ** (self._quick_deaths - 1))
