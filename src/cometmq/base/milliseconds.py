"""The monotonic clock in whole milliseconds, rounded so that nothing that waits for a time comes before it."""

from __future__ import annotations

from math import ceil, floor
from typing import Final

from cometmq.base.ports import Clock

_FUZZ_MS: Final = 0.001
"""Seconds times a thousand are not always the number that was meant: 1.001 is 1000.9999999999999."""


def passed_ms(clock: Clock) -> int:
    """Milliseconds that have passed: what is due at this time is due now."""
    return floor(clock.monotonic() * 1000 + _FUZZ_MS)


def begun_ms(clock: Clock) -> int:
    """The same with the one that has begun: what is counted from this time on is not counted from before now."""
    return ceil(clock.monotonic() * 1000 - _FUZZ_MS)
