"""The month of a time, in this machine's time zone: message ids count from its start."""

from __future__ import annotations

import time


def month_of(now_ms: int) -> tuple[int, int]:
    """Start and end of the month, in milliseconds since 1970."""
    now = time.localtime(now_ms / 1000)
    year, month = (now.tm_year, now.tm_mon + 1) if now.tm_mon < 12 else (now.tm_year + 1, 1)
    return _first_day(now.tm_year, now.tm_mon), _first_day(year, month)


def _first_day(year: int, month: int) -> int:
    # -1: the system knows whether daylight saving time applies then.
    return int(time.mktime((year, month, 1, 0, 0, 0, 0, 0, -1))) * 1000
