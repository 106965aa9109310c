"""What to do about a transaction that is still open. Pure."""

from __future__ import annotations

from enum import Enum
from typing import Final

from cometmq.broker.transaction.open_table import OpenHalf

_SECONDS_DIGITS_MAX: Final = 12


class Verdict(Enum):
    WAIT = "wait"
    CHECK = "check"
    DISCARD = "discard"


def judge(half: OpenHalf, now_ms: int, *, timeout_ms: int, check_max: int, kept_ms: int) -> Verdict:
    """As RocketMQ judges.

    Args:
        timeout_ms: age from which a half message is checked, unless it has an immunity of its own.
        check_max: how often at most.
        kept_ms: age beyond which the log may be deleted at any time.
    """
    # The sender's clock counts. One that is ahead makes a negative age, and then there is no telling how old it is.
    age_ms = now_ms - half.born_ms
    if half.check_count >= check_max or age_ms > kept_ms:
        return Verdict.DISCARD
    immunity_ms = timeout_ms if half.immunity_ms == -1 else half.immunity_ms
    return Verdict.WAIT if 0 <= age_ms < immunity_ms else Verdict.CHECK


def immunity_ms(text: str | None) -> int:
    """A message's own immunity in milliseconds; -1 when it has none, or none that can be read."""
    if text is None or not text.isdecimal() or len(text) > _SECONDS_DIGITS_MAX:
        return -1
    return int(text) * 1000
