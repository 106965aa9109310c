"""Ranges of queues, cut and put together into what one task reads. No I/O.

A task costs Spark some 40 ms before its first row, so ranges that take less than that to read share one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from cometmq.model.message_queue import MessageQueue

SMALL_ROWS: Final = 20_000
"""Ranges are put together until a task has about so many rows."""


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets from ``start`` up to ``end``, which is not included."""

    queue: MessageQueue
    start: int
    end: int

    @property
    def rows(self) -> int:
        return self.end - self.start


def tasks_of(
    ranges: Iterable[Range],
    *,
    min_partitions: int | None = None,
    max_records: int | None = None,
    small_rows: int = SMALL_ROWS,
) -> list[tuple[Range, ...]]:
    """The ranges of each task; every offset is in exactly one of them, those of a queue in order.

    Args:
        min_partitions: cut so that there are so many tasks, if there are so many rows.
        max_records: cut so that no task has more rows.
    """
    wanted = sorted((one for one in ranges if one.rows > 0), key=_order)
    rows = sum(one.rows for one in wanted)
    if not rows:
        return []
    # With at most rows / n each, there are at least n tasks.
    most = rows if min_partitions is None else rows // min(min_partitions, rows)
    if max_records is not None:
        most = min(most, max_records)
    together = min(most, small_rows)
    tasks: list[tuple[Range, ...]] = []
    current: list[Range] = []
    filled = 0
    for one in wanted:
        for piece in _cut(one, most):
            if current and (filled + piece.rows > together or _host(current[-1]) != _host(piece)):
                tasks.append(tuple(current))
                current, filled = [], 0
            current.append(piece)
            filled += piece.rows
    tasks.append(tuple(current))
    return tasks


def _cut(one: Range, most: int) -> list[Range]:
    """Pieces of nearly the same size, none above ``most``."""
    count = -(-one.rows // most)
    edges = [one.start + one.rows * index // count for index in range(count + 1)]
    return [Range(one.queue, start, end) for start, end in pairwise(edges)]


def _host(one: Range) -> str:
    return one.queue.broker_name


def _order(one: Range) -> tuple[str, MessageQueue, int]:
    """Queues of a broker beside each other: a task then needs one connection."""
    return one.queue.broker_name, one.queue, one.start
