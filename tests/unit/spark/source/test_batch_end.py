from __future__ import annotations

from cometmq.client.core.queue_answers import Bounds
from cometmq.model.message_queue import MessageQueue
from cometmq.spark.errors import Loss
from cometmq.spark.source.batch_end import look_ahead, ranges_between
from cometmq.spark.source.ranges import Range

A, B, C = (MessageQueue("broker", queue_id, "orders") for queue_id in range(3))


def test_what_is_there_may_be_taken() -> None:
    outlook = look_ahead({A: 5, B: 7}, {A: Bounds(0, 9), B: Bounds(0, 7)})
    assert outlook.ranges == {A: Range(A, 5, 9)}
    assert outlook.ends({A: 3}) == {A: 8, B: 7}
    assert not outlook.losses


def test_a_new_queue_enters_at_its_first_offset_without_rows() -> None:
    start = {A: 5}
    bounds = {A: Bounds(0, 5), B: Bounds(2, 9)}
    outlook = look_ahead(start, bounds)
    assert outlook.ends({}) == {A: 5, B: 2}
    assert outlook.ranges == {}
    assert ranges_between(start, {A: 5, B: 2}) == []
    # From then on it is a queue like any other.
    assert look_ahead({A: 5, B: 2}, bounds).ranges == {B: Range(B, 2, 9)}


def test_a_queue_of_a_silent_broker_stays_where_it_is() -> None:
    outlook = look_ahead({A: 5, B: 7}, {A: Bounds(0, 9)})
    assert outlook.ends({A: 4}) == {A: 9, B: 7}


def test_expired_messages_are_a_loss_and_can_be_skipped() -> None:
    outlook = look_ahead({A: 5}, {A: Bounds(20, 30)})
    assert outlook.losses == [Loss(A, 5, 30, 20, 30)]
    assert outlook.rows == 10
    assert outlook.ends({A: 4}) == {A: 24}
    # Nothing taken: nothing skipped either.
    assert outlook.ends({A: 0}) == {A: 5}


def test_a_topic_that_was_made_anew_is_a_loss_and_enters_again() -> None:
    outlook = look_ahead({A: 50}, {A: Bounds(0, 3)})
    assert outlook.losses == [Loss(A, 50, 50, 0, 3)]
    assert outlook.ends({}) == {A: 0}
    assert ranges_between({A: 50}, {A: 0}) == []


def test_a_replica_that_lags_is_no_loss() -> None:
    outlook = look_ahead({A: 50}, {A: Bounds(0, 40, is_master=False)})
    assert not outlook.losses
    assert outlook.ends({}) == {A: 50}


def test_nothing_behind_the_target_is_taken() -> None:
    target = {A: 7, B: 3}
    bounds = {A: Bounds(0, 100), B: Bounds(1, 100), C: Bounds(0, 100)}
    outlook = look_ahead({A: 5}, bounds, target)
    assert outlook.ranges == {A: Range(A, 5, 7)}
    assert outlook.ends({A: 2}) == {A: 7, B: 1}
    done = look_ahead({A: 7, B: 3}, bounds, target)
    assert done.rows == 0
    assert done.ends({}) == {A: 7, B: 3}


def test_ranges_of_a_batch() -> None:
    assert ranges_between({A: 1, B: 5}, {A: 4, B: 5, C: 9}) == [Range(A, 1, 4)]
