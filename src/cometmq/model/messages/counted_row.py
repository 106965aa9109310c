"""A row of counters of stored messages: how many, their bytes, and how many of each size.

It is an array of C integers, so that the compiled twin of sends can add to it without the interpreter.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import Final

SIZE_EDGES: Final = (1024, 4096, 524_288, 1_048_576, 2_097_152, 4_194_304)
"""The sizes that RocketMQ's metrics tell apart."""

MESSAGES: Final = 0
BYTES: Final = 1
SIZES: Final = 2
"""Where the messages no larger than each of ``SIZE_EDGES``, and than the one before, begin; then the others."""


def new_row() -> array[int]:
    return array("q", [0] * (SIZES + len(SIZE_EDGES) + 1))


def count_message(row: array[int], size_bytes: int) -> None:
    row[MESSAGES] += 1
    row[BYTES] += size_bytes
    row[SIZES + bisect_left(SIZE_EDGES, size_bytes)] += 1
