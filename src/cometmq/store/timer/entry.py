"""One entry of the timer index: when to look at a record of the timer topic, and where it is.

    at   width  field
    0    8      wake time in ms, times two, plus one unless the record is a recall
    8    8      physical offset of the record

So entries sort by time, and within a millisecond a recall comes before the message it recalls.
"""

from __future__ import annotations

import struct
from typing import Final

ENTRY = struct.Struct(">qq")
ENTRY_BYTES: Final = ENTRY.size

Position = tuple[int, int]
"""Sort key and physical offset: the order of delivery, and its progress."""

START: Final[Position] = (0, 0)


def sort_key(wake_ms: int, *, is_recall: bool) -> int:
    return wake_ms << 1 | (not is_recall)


def wake_of(key: int) -> int:
    return key >> 1


def is_recall(key: int) -> bool:
    return not key & 1
