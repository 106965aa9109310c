"""The delay levels, and what a queue entry of the schedule topic holds: the delivery time, not a tag's hash.

The append and the log follower both use this, so that they create the same entry.
"""

from __future__ import annotations

import re
from typing import Final

from cometmq.base.errors import ConfigError
from cometmq.model.java_hash import java_hash
from cometmq.model.messages.properties import DELAY, TAGS, property_of
from cometmq.model.names import SCHEDULE_TOPIC

_UNIT_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LEVEL = re.compile(r"(\d{1,9})([smhd])")
_UNKNOWN_LEVEL_MS: Final = 1000
"""Java's delay for an unknown level."""


class DelayLevels:
    def __init__(self, text: str) -> None:
        """Parse ``1s 5s 10s …``. Raises ConfigError."""
        self._delays_ms: list[int] = []
        for part in text.split():
            match = _LEVEL.fullmatch(part)
            if match is None:
                raise ConfigError(
                    f"messageDelayLevel: expected a number with s, m, h or d, like 10s, got {part!r}"
                )
            self._delays_ms.append(int(match[1]) * _UNIT_MS[match[2]])
        if not self._delays_ms:
            raise ConfigError("messageDelayLevel: expected delays like 1s 5s 10s, got none")

    @property
    def level_max(self) -> int:
        return len(self._delays_ms)

    def delay_ms(self, level: int) -> int:
        """The delay of a level; levels above the highest get the highest."""
        level = min(level, self.level_max)
        return self._delays_ms[level - 1] if level > 0 else _UNKNOWN_LEVEL_MS

    def tags_code(self, topic: str, properties: str, store_timestamp: int) -> int:
        """What the queue entry of a record holds in addition to its place."""
        if topic == SCHEDULE_TOPIC and (due := self.deliver_ms(properties, store_timestamp)):
            return due
        tag = property_of(properties, TAGS)
        return java_hash(tag) if tag else 0

    def deliver_ms(self, properties: str, store_timestamp: int) -> int | None:
        """When a record of the schedule topic is due; None if it has no level."""
        text = property_of(properties, DELAY)
        if text is None or not text.isdecimal() or int(text) <= 0:
            return None
        return store_timestamp + self.delay_ms(int(text))
