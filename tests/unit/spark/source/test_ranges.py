from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cometmq.model.message_queue import MessageQueue
from cometmq.spark.source.ranges import Range, tasks_of


def queue(queue_id: int, broker: str = "a") -> MessageQueue:
    return MessageQueue(broker, queue_id, "orders")


def test_small_queues_share_a_task() -> None:
    ranges = [Range(queue(i), 10, 110) for i in range(8)]
    assert tasks_of(ranges) == [tuple(ranges)]


def test_large_queues_have_a_task_each() -> None:
    ranges = [Range(queue(i), 0, 50_000) for i in range(3)]
    assert tasks_of(ranges) == [(one,) for one in ranges]


def test_queues_of_two_brokers_do_not_share_a_task() -> None:
    ranges = [Range(queue(0, "b"), 0, 5), Range(queue(0, "a"), 0, 5), Range(queue(1, "b"), 0, 5)]
    assert tasks_of(ranges) == [(ranges[1],), (ranges[0], ranges[2])]


def test_a_large_queue_is_cut_by_the_most_records() -> None:
    tasks = tasks_of([Range(queue(0), 5, 105)], max_records=40)
    assert tasks == [
        (Range(queue(0), 5, 38),),
        (Range(queue(0), 38, 71),),
        (Range(queue(0), 71, 105),),
    ]


def test_a_least_number_of_tasks_cuts_queues() -> None:
    tasks = tasks_of([Range(queue(0), 0, 100), Range(queue(1), 0, 20)], min_partitions=4)
    assert len(tasks) >= 4
    assert max(sum(one.rows for one in task) for task in tasks) <= 30


def test_no_more_tasks_than_rows() -> None:
    assert len(tasks_of([Range(queue(0), 0, 3)], min_partitions=50)) == 3


def test_the_least_number_of_tasks_holds_when_it_does_not_divide_the_rows() -> None:
    assert len(tasks_of([Range(queue(0), 0, 10)], min_partitions=6)) >= 6


def test_empty_and_backward_ranges_need_no_task() -> None:
    assert tasks_of([Range(queue(0), 7, 7), Range(queue(1), 9, 3)]) == []


@given(
    st.dictionaries(
        st.integers(0, 20), st.tuples(st.integers(0, 1000), st.integers(0, 100_000)), max_size=8
    ),
    st.none() | st.integers(1, 40),
    st.none() | st.integers(1000, 90_000),
)
def test_every_offset_is_in_exactly_one_task(
    sizes: dict[int, tuple[int, int]], min_partitions: int | None, max_records: int | None
) -> None:
    ranges = [Range(queue(i), start, start + rows) for i, (start, rows) in sizes.items()]
    tasks = tasks_of(ranges, min_partitions=min_partitions, max_records=max_records)
    by_queue: dict[MessageQueue, list[Range]] = {}
    for task in tasks:
        assert task
        for one in task:
            assert one.rows > 0
            by_queue.setdefault(one.queue, []).append(one)
        if max_records is not None:
            assert sum(one.rows for one in task) <= max_records
    for one in ranges:
        pieces = by_queue.pop(one.queue, [])
        at = one.start
        for piece in pieces:
            assert piece.start == at
            at = piece.end
        assert at == one.end
    assert not by_queue
    rows = sum(one.rows for one in ranges)
    if min_partitions is not None:
        assert len(tasks) >= min(min_partitions, rows)
