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
        "Take messages with a time of delivery. Those that wait are delivered in any case.",
        default=True,
        live=True,
    )
    delay_seconds_max: int = setting(
        "timerMaxDelaySec",
        "How far ahead a time of delivery may lie. RocketMQ's default is 3 days.",
        default=DELAY_SECONDS_MAX,
        low=1,
        high=DELAY_SECONDS_LIMIT,
        live=True,
    )
    save_interval_ms: int = setting(
        "timerFlushIntervalMs",
        "How often the timer index and how far it was delivered are written to disk. RocketMQ's default is 1 s.",
        default=10_000,
        low=100,
        live=True,
    )
    recall: bool = setting(
        "recallMessageEnable",
        "Let producers take back messages that are not yet due. RocketMQ's default is false.",
        default=True,
        live=True,
    )
