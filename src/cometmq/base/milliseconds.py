"""The monotonic clock in whole milliseconds, rounded so that nothing happens before its time."""

from __future__ import annotations

from math import ceil, floor
from typing import Final

from cometmq.base.ports import Clock

_FUZZ_MS: Final = 0.001
"""Seconds times a thousand are not always the intended number: 1.001 becomes 1000.9999999999999."""


def passed_ms(clock: Clock) -> int:
    """Whole milliseconds that have passed, rounded down: what is due at this time is due now."""
    return floor(clock.monotonic() * 1000 + _FUZZ_MS)


def begun_ms(clock: Clock) -> int:
    """The same, rounded up: a delay that starts at this time does not start before now."""
    return ceil(clock.monotonic() * 1000 - _FUZZ_MS)
