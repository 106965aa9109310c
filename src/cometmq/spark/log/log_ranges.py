"""Ranges of queues cut into pieces that lie together in the log. Decisions only.

All queues of a topic take turns in the log, so a task that reads one of them alone would pass over the others' bytes. A
piece is therefore what all queues have between two places of the log; every task then reads its own stretch of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Protocol

from cometmq.spark.source.ranges import Range

PIECE_BYTES: Final = 128 << 20
"""What one task reads, about, while there are few of them: below half a second."""

FEW_TASKS: Final = 4
LARGE_PIECE_BYTES: Final = 384 << 20
"""The same of many tasks: beginning and ending one costs Spark a tenth of a second."""

_SLACK: Final = 1.1
"""Queues are cut where the longest of them is, so that pieces differ a little; none is to be cut again for that."""

Piece = tuple[Range, ...]


class Places(Protocol):
    """Where the records of queues lie."""

    def of(self, one: Range, offset: int) -> int:
        """Physical offset of the record with an offset within the range."""
        ...

    def find(self, one: Range, physical_offset: int) -> int:
        """The first offset of the range whose record lies at a place of the log or behind; its end when none does."""
        ...


def rows_of(piece: Sequence[Range]) -> int:
    return sum(one.rows for one in piece)


def rows_per_task(
    rows: int, record_bytes: int, min_partitions: int | None, max_records: int | None
) -> int:
    """The most rows that a task may have, at least 1."""
    total_bytes = rows * record_bytes
    tasks = max(min(total_bytes / PIECE_BYTES, FEW_TASKS), total_bytes / LARGE_PIECE_BYTES)
    most = math.ceil(rows / max(math.ceil(tasks), 1) * _SLACK)
    if min_partitions is not None:
        # With at most rows / n each, there are at least n tasks.
        most = min(most, rows // min_partitions)
    if max_records is not None:
        most = min(most, max_records)
    return max(most, 1)


def pieces_of(ranges: Sequence[Range], most: int, places: Places) -> list[Piece]:
    """Pieces of at most so many rows, in the order of the log; every offset is in exactly one."""
    assert most > 0, most
    open_pieces: list[Piece] = [tuple(one for one in ranges if one.rows > 0)]
    done: list[Piece] = []
    while open_pieces:
        piece = open_pieces.pop()
        rows = rows_of(piece)
        if rows <= most:
            if rows:
                done.append(piece)
            continue
        # The last part first: what is put on top is taken next, so that pieces come out in the log's order.
        open_pieces.extend(reversed(_cut(piece, -(-rows // most), places)))
    return done


def _cut(piece: Piece, count: int, places: Places) -> list[Piece]:
    """About ``count`` parts, two at least, each with fewer rows than the whole."""
    longest = max(piece, key=lambda one: one.rows)
    # The longest queue tells how rows lie in the log; the others are cut where it is.
    offsets = {longest.start + longest.rows * number // count for number in range(1, count)}
    offsets.discard(longest.start)
    if not offsets:
        # Every queue has a single row: one part each.
        in_order = sorted(piece, key=lambda one: places.of(one, one.start))
        return [(one,) for one in in_order]
    parts: list[Piece] = []
    rest = piece
    for offset in sorted(offsets):
        physical = places.of(longest, offset)
        part: list[Range] = []
        behind: list[Range] = []
        for one in rest:
            # The longest is cut exactly there, so that every part is smaller than the whole, whatever else is found.
            at = offset if one.queue == longest.queue else places.find(one, physical)
            part.append(Range(one.queue, one.start, at))
            behind.append(Range(one.queue, at, one.end))
        parts.append(tuple(one for one in part if one.rows > 0))
        rest = tuple(one for one in behind if one.rows > 0)
    parts.append(rest)
    return parts
