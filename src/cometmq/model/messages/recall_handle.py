"""The handle with which a producer recalls a timed message: it says where the message waits, and until when.

URL-safe Base64 of ``v1 <topic> <broker name> <deliver time in ms> <unique key>``, separated by blanks.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final, NamedTuple

from cometmq.base.errors import UsageError

VERSION: Final = "v1"
HANDLE_CHARACTERS_MAX: Final = 4096
_TIME_DIGITS_MAX: Final = 18


class RecallHandle(NamedTuple):
    topic: str
    broker_name: str
    deliver_ms: int
    unique_key: str

    def encode(self) -> str:
        text = " ".join(
            (VERSION, self.topic, self.broker_name, str(self.deliver_ms), self.unique_key)
        )
        return base64.urlsafe_b64encode(text.encode()).decode()


def decode_recall_handle(text: str) -> RecallHandle:
    """Raises UsageError."""
    if not text or len(text) > HANDLE_CHARACTERS_MAX:
        raise UsageError(f"recall handle is invalid: {len(text)} characters")
    try:
        # Java accepts a handle with and without padding.
        decoded = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (binascii.Error, UnicodeError, ValueError):
        raise UsageError("recall handle is invalid: no Base64 of a text") from None
    parts = decoded.split(" ")
    if parts[0] != VERSION or len(parts) != 5:
        raise UsageError(f"recall handle is invalid: expected {VERSION} and four parts")
    _, topic, broker_name, time, unique_key = parts
    if not time.isdecimal() or len(time) > _TIME_DIGITS_MAX:
        raise UsageError(f"recall handle is invalid: {time[:50]!r} is no time")
    return RecallHandle(topic, broker_name, int(time), unique_key)
