"""Settings of messages with a time of delivery."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cometmq.base.settings import setting

DELAY_SECONDS_MAX: Final = 40 * 86_400
DELAY_SECONDS_LIMIT: Final = 10 * 365 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class TimersConfig:
    is_enabled: bool = setting(
        "timerWheelEnable",
        "Accept messages with a delivery time. Those already waiting are delivered in any case.",
        default=True,
        live=True,
    )
    delay_seconds_max: int = setting(
        "timerMaxDelaySec",
        "Maximum number of seconds that a delivery time may be ahead. RocketMQ's default is 3 days.",
        default=DELAY_SECONDS_MAX,
        low=1,
        high=DELAY_SECONDS_LIMIT,
        live=True,
    )
    save_interval_ms: int = setting(
        "timerFlushIntervalMs",
        "Milliseconds between two writes of the timer index and its delivery progress to disk. "
        "RocketMQ's default is 1 s.",
        default=10_000,
        low=100,
        live=True,
    )
    recall: bool = setting(
        "recallMessageEnable",
        "Let producers recall messages that are not yet due. RocketMQ's default is false.",
        default=True,
        live=True,
    )
