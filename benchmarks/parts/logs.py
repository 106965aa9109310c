"""Whether the logs of two brokers are the same, from their files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

BLOCK_BYTES: Final = 1 << 20


def first_difference(one: Path, other: Path, start: int, end: int) -> int | None:
    """Where the logs in two stores differ first, to the block; None if they do not between these offsets."""
    for path in sorted((one / "commitlog").iterdir()):
        first = int(path.name)
        begin, stop = max(start, first), min(end, first + path.stat().st_size)
        if begin < stop:
            found = _difference(path, other / "commitlog" / path.name, begin - first, stop - first)
            if found is not None:
                return first + found
    return None


def _difference(one: Path, other: Path, start: int, stop: int) -> int | None:
    with one.open("rb") as left, other.open("rb") as right:
        left.seek(start)
        right.seek(start)
        for position in range(start, stop, BLOCK_BYTES):
            size = min(BLOCK_BYTES, stop - position)
            if left.read(size) != right.read(size):
                return position
    return None
