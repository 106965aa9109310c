"""Properties of stored messages with a delivery time; those that a sender sets are in ``properties``."""

from __future__ import annotations

from typing import Final

TIMER_OUT_MS: Final = "TIMER_OUT_MS"
"""In a waiting message: its delivery time, rounded down to RocketMQ's precision. Ours is 1 ms: the time minus 1."""
TIMER_ENQUEUE_MS: Final = "TIMER_ENQUEUE_MS"
TIMER_DEQUEUE_MS: Final = "TIMER_DEQUEUE_MS"
TIMER_ROLL_TIMES: Final = "TIMER_ROLL_TIMES"
TIMER_DELETE_KEY: Final = "TIMER_DEL_UNIQKEY"
"""Makes a waiting message the recall of another one, whose unique key it holds."""

PRECISION_MS: Final = 1
PRECISION_MS_MAX: Final = 1000
"""The precision that a RocketMQ broker rounds to."""
