"""Streams over a store's directory, without Spark: where each batch ends."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from tests.spark.log_stores import fill

from cometmq.model.message_queue import MessageQueue
from cometmq.spark.errors import BadOption, DataLost
from cometmq.spark.log.log_options import read_log_options
from cometmq.spark.log.log_planner import LogPlanner
from cometmq.store.message_store import MessageStore
from cometmq.testing.fake_clock import FakeClock


def planner_of(root: Path, **options: Any) -> LogPlanner:
    return LogPlanner(
        read_log_options({"path": str(root), **{k: str(v) for k, v in options.items()}})
    )


def total(offsets: Mapping[MessageQueue, int]) -> int:
    return sum(offsets.values())


def test_a_stream_takes_no_more_than_its_limits(store: MessageStore, root: Path) -> None:
    fill(store, "orders", 100)
    store.flush()
    planner = planner_of(root, topic="orders", startingOffsets="earliest", maxRowsPerTrigger=30)
    at = planner.initial()
    assert total(at) == 0
    ends = []
    for _ in range(5):
        at = planner.next(at, is_limited=True)
        ends.append(total(at))
    assert ends == [30, 60, 90, 100, 100]
    planner = planner_of(root, topic="orders", startingOffsets="earliest", maxBytesPerTrigger=1000)
    at = planner.next(planner.initial(), is_limited=True)
    rows = sum(
        piece.rows for task in planner.stream_pieces(planner.initial(), at) for piece in task
    )
    size = store.entries("orders", 0, 0, 1)[0][1]
    assert rows == 1000 // size


def test_a_stream_waits_for_a_number_of_rows_but_not_for_ever(
    store: MessageStore, root: Path, clock: FakeClock
) -> None:
    fill(store, "orders", 10)
    store.flush()
    options = read_log_options(
        {"path": str(root), "topic": "orders", "minRowsPerTrigger": "5", "maxTriggerDelay": "60s"}
    )
    planner = LogPlanner(options, clock=clock.monotonic)
    at = planner.initial()
    fill(store, "orders", 2, start=10)
    store.flush()
    assert planner.next(at, is_limited=True) == at
    clock.advance(61)
    assert total(planner.next(at, is_limited=True)) == 12
    fill(store, "orders", 5, start=12)
    store.flush()
    assert total(planner.next(at, is_limited=True)) == 17


def test_a_stream_sees_new_messages_queues_and_topics(store: MessageStore, root: Path) -> None:
    fill(store, "orders", 10)
    store.flush()
    planner = planner_of(root, topicPattern="o.*", discoveryInterval="1ms")
    at = planner.initial()
    assert total(at) == 10
    assert planner.next(at, is_limited=False) == at
    fill(store, "orders", 4, start=10)
    fill(store, "others", 2)
    store.flush()
    entered = planner.next(at, is_limited=False)
    assert total(entered) == 14
    end = planner.next(entered, is_limited=False)
    assert total(end) == 16
    assert planner.latest == end


def test_rows_of_a_new_topic_are_waited_for_and_taken_with_the_others(
    store: MessageStore, root: Path
) -> None:
    fill(store, "orders", 10)
    store.flush()
    planner = planner_of(root, topicPattern="o.*", discoveryInterval="1ms", minRowsPerTrigger=10)
    at = planner.initial()
    fill(store, "orders", 3, start=10)
    fill(store, "others", 7)
    store.flush()
    entered = planner.next(at, is_limited=True)
    assert total(entered) == total(at)
    assert total(planner.next(entered, is_limited=True)) == 20


def test_available_now_stops_at_what_was_there(store: MessageStore, root: Path) -> None:
    fill(store, "orders", 10)
    store.flush()
    planner = planner_of(root, topic="orders", startingOffsets="earliest")
    start = planner.initial()
    planner.fix_target()
    fill(store, "orders", 10, start=10)
    store.flush()
    end = planner.next(start, is_limited=False)
    assert total(end) == 10
    assert planner.next(end, is_limited=False) == end


def test_a_topic_deleted_under_a_stream_is_a_loss(store: MessageStore, root: Path) -> None:
    fill(store, "orders", 10)
    store.flush()
    planner = planner_of(root, topic="orders")
    lenient = planner_of(root, topic="orders", failOnDataLoss="false")
    at = planner.initial()
    store.delete_topic("orders")
    with pytest.raises(DataLost, match="orders"):
        planner.next(at, is_limited=False)
    again = lenient.next(at, is_limited=False)
    assert total(again) == 0
    fill(store, "orders", 4)
    store.flush()
    assert total(lenient.next(again, is_limited=False)) == 4


def test_a_checkpoint_of_another_broker_name_is_refused(store: MessageStore, root: Path) -> None:
    fill(store, "orders", 4)
    store.flush()
    at = planner_of(root, topic="orders", brokerName="a").initial()
    with pytest.raises(BadOption, match="expected a"):
        planner_of(root, topic="orders", brokerName="b").next(at, is_limited=False)
