from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cometmq.model.message_queue import MessageQueue
from cometmq.spark.source.byte_limit import fitting

QUEUES = [MessageQueue("broker", queue_id, "orders") for queue_id in range(5)]
A, B = QUEUES[:2]


def test_queues_have_their_parts() -> None:
    sizes = {A: np.full(100, 10), B: np.full(100, 10)}
    assert fitting(sizes, {A: 300, B: 100}, 400) == {A: 30, B: 10}


def test_what_one_leaves_serves_the_other() -> None:
    sizes = {A: np.full(2, 10), B: np.full(100, 10)}
    assert fitting(sizes, {A: 200, B: 200}, 400) == {A: 2, B: 38}


def test_a_large_message_has_its_turn() -> None:
    sizes = {A: np.array([380]), B: np.full(100, 10)}
    parts = {A: 10, B: 390}
    assert fitting(sizes, parts, 400, turn=0) == {A: 1, B: 2}


def test_a_message_above_the_limit_comes_alone() -> None:
    sizes = {A: np.array([900, 10]), B: np.array([800])}
    assert fitting(sizes, {A: 200, B: 200}, 400, turn=0) == {A: 1, B: 0}
    assert fitting(sizes, {A: 200, B: 200}, 400, turn=1) == {A: 0, B: 1}


def test_nothing_fits_into_nothing() -> None:
    assert fitting({}, {}, 400) == {}


@given(
    st.lists(st.lists(st.integers(1, 500), min_size=1, max_size=30), min_size=1, max_size=5),
    st.integers(1, 3000),
    st.integers(0, 20),
)
def test_the_limit_holds(sizes: list[list[int]], limit: int, turn: int) -> None:
    by_queue = {QUEUES[index]: np.array(each) for index, each in enumerate(sizes)}
    rows = sum(map(len, sizes))
    parts = {queue: limit * len(each) // rows for queue, each in by_queue.items()}
    taken = fitting(by_queue, parts, limit, turn=turn)
    used = sum(int(by_queue[queue][:count].sum()) for queue, count in taken.items())
    assert sum(taken.values()) >= 1
    assert used <= limit or sum(taken.values()) == 1
    # No record that is next in a queue from which something was taken would still fit.
    for queue, count in taken.items():
        if count and used <= limit and count < len(by_queue[queue]):
            assert used + int(by_queue[queue][count]) > limit
