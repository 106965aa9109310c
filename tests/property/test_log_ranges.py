"""Pieces of a log hold every offset once, none too many, and each lies before the next."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyarrow")

from cometmq.model.message_queue import MessageQueue
from cometmq.spark.log.log_ranges import pieces_of, rows_of, rows_per_task
from cometmq.spark.source.ranges import Range

QUEUES = [MessageQueue("b", number, "orders") for number in range(5)]


class ListedPlaces:
    """A log in which the queues take turns as a list says."""

    def __init__(self, turns: list[int]) -> None:
        self.places: dict[int, list[int]] = {number: [] for number in range(len(QUEUES))}
        for position, number in enumerate(turns):
            self.places[number].append(position * 100)

    def ranges(self) -> list[Range]:
        return [Range(queue, 0, len(self.places[queue.queue_id])) for queue in QUEUES]

    def of(self, one: Range, offset: int) -> int:
        assert one.start <= offset < one.end
        return self.places[one.queue.queue_id][offset]

    def find(self, one: Range, physical_offset: int) -> int:
        places = self.places[one.queue.queue_id]
        return next(
            (at for at in range(one.start, one.end) if places[at] >= physical_offset), one.end
        )


@given(st.lists(st.integers(0, 4), max_size=80), st.integers(1, 30))
def test_pieces_are_small_in_order_and_complete(turns: list[int], most: int) -> None:
    places = ListedPlaces(turns)
    pieces = pieces_of(places.ranges(), most, places)
    assert all(0 < rows_of(piece) <= most for piece in pieces)
    seen = [
        (one.queue.queue_id, offset)
        for piece in pieces
        for one in piece
        for offset in range(one.start, one.end)
    ]
    assert len(set(seen)) == len(seen) == len(turns)
    stretches = [
        [places.places[one.queue.queue_id][at] for one in piece for at in range(one.start, one.end)]
        for piece in pieces
    ]
    for before, after in pairwise(stretches):
        assert max(before) < min(after)


@given(
    st.integers(1, 10**9),
    st.integers(1, 10**6),
    st.one_of(st.none(), st.integers(1, 10**4)),
    st.one_of(st.none(), st.integers(1, 10**6)),
)
def test_tasks_keep_to_their_limits(
    rows: int, record_bytes: int, min_partitions: int | None, max_records: int | None
) -> None:
    most = rows_per_task(rows, record_bytes, min_partitions, max_records)
    assert most >= 1
    assert max_records is None or most <= max_records
    if min_partitions is not None and rows >= min_partitions:
        assert -(-rows // most) >= min_partitions


def test_few_tasks_are_small_and_many_are_large() -> None:
    megabyte = 1 << 20

    def tasks(megabytes: int) -> int:
        return -(-megabytes // rows_per_task(megabytes, megabyte, None, None))

    assert [tasks(size) for size in (1, 100, 200, 500, 1300)] == [1, 1, 2, 4, 4]
    assert 25 <= tasks(10_000) <= 27
