"""Where CONSUME_FROM_TIMESTAMP starts: the setting that push and lite pull consumers share."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from cometmq.base.errors import ConfigError

_HALF_AN_HOUR_MS: Final = 30 * 60 * 1000


def start_ms(text: str, now_ms: int) -> int:
    """Milliseconds of a local time as yyyyMMddHHmmss; half an hour before now if the text is empty.

    Raises:
        ConfigError: the text is not such a time.
    """
    if not text:
        return now_ms - _HALF_AN_HOUR_MS
    try:
        if len(text) != 14 or not text.isdecimal():
            raise ValueError
        return int(datetime.strptime(text, "%Y%m%d%H%M%S").astimezone().timestamp() * 1000)
    except ValueError:
        raise ConfigError(
            f"consumeTimestamp must be a time like 20260131235959, not {text!r}"
        ) from None
