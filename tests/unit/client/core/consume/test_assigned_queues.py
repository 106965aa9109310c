"""What a lite pull consumer pulls, hands out and commits, decided without a network."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cometmq.base.errors import UsageError
from cometmq.client.core.consume.assigned_queues import AssignedQueues, CacheLimits, NextPull
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage

ONE = MessageQueue(broker_name="b", queue_id=1, topic="T")
TWO = MessageQueue(broker_name="b", queue_id=2, topic="T")


def messages(queue: MessageQueue, *offsets: int, body: bytes = b"x") -> list[ReceivedMessage]:
    return [
        ReceivedMessage(topic="T", body=body, queue_id=queue.queue_id, queue_offset=offset)
        for offset in offsets
    ]


def held(*queues: MessageQueue, limits: CacheLimits | None = None, at: int = 0) -> AssignedQueues:
    assigned = AssignedQueues(limits or CacheLimits())
    for queue in queues:
        assigned.add(queue)
        assigned.begin(queue, at)
    return assigned


def deliver(
    assigned: AssignedQueues, queue: MessageQueue, *offsets: int, next_offset: int | None = None
) -> NextPull:
    pull = assigned.next_pull(queue)
    assert pull is not None
    following = next_offset if next_offset is not None else max(offsets) + 1
    assert assigned.arrived(pull, messages(queue, *offsets), following)
    return pull


def offsets(found: list[ReceivedMessage]) -> list[tuple[int, int]]:
    return [(message.queue_id, message.queue_offset) for message in found]


def test_a_queue_is_pulled_once_its_start_is_known() -> None:
    assigned = AssignedQueues(CacheLimits())
    assert assigned.next_pull(ONE) is None
    assigned.add(ONE)
    assert assigned.next_pull(ONE) is None
    assert assigned.position(ONE) is None
    assert assigned.positions() == {}
    assigned.begin(ONE, 7)
    pull = assigned.next_pull(ONE)
    assert pull is not None
    assert pull.offset == 7
    assert (ONE in assigned, TWO in assigned, assigned.queues) == (True, False, [ONE])


def test_each_pull_goes_on_where_the_last_ended() -> None:
    assigned = held(ONE)
    deliver(assigned, ONE, 0, 1, next_offset=5)
    pull = assigned.next_pull(ONE)
    assert pull is not None
    assert pull.offset == 5


def test_queues_take_turns_and_pulls_stay_together() -> None:
    assigned = held(ONE, TWO)
    deliver(assigned, ONE, 0, 1)
    deliver(assigned, ONE, 2)
    deliver(assigned, TWO, 0)
    assert assigned.cached_count == 4
    assert offsets(assigned.take(10)) == [(1, 0), (1, 1)]
    assert offsets(assigned.take(10)) == [(2, 0)]
    assert offsets(assigned.take(10)) == [(1, 2)]
    assert assigned.take(10) == []
    assert assigned.cached_count == 0


def test_a_pull_may_be_handed_out_in_parts() -> None:
    assigned = held(ONE, TWO)
    deliver(assigned, ONE, 3, 5, 9, next_offset=12)
    deliver(assigned, TWO, 0)
    assert offsets(assigned.take(1)) == [(1, 3)]
    assert assigned.position(ONE) == 5
    assert offsets(assigned.take(1)) == [(1, 5)]
    assert assigned.position(ONE) == 9
    assert offsets(assigned.take(5)) == [(1, 9)]
    assert assigned.position(ONE) == 12
    assert offsets(assigned.take(5)) == [(2, 0)]


def test_what_was_handed_out_is_done_when_more_is_asked_for() -> None:
    assigned = held(ONE, TWO)
    assert assigned.to_commit(handed_is_done=False) == {ONE: 0, TWO: 0}
    for queue in (ONE, TWO):
        assigned.was_committed(queue, 0)
    deliver(assigned, ONE, 0, 1)
    assigned.take(10)
    assert assigned.to_commit(handed_is_done=False) == {}
    assert assigned.to_commit(handed_is_done=True) == {ONE: 2}
    assigned.finish_handed()
    assert assigned.to_commit(handed_is_done=False) == {ONE: 2}
    assigned.was_committed(ONE, 2)
    assert assigned.to_commit(handed_is_done=True) == {}


def test_offsets_without_a_wanted_message_are_passed_over() -> None:
    assigned = held(ONE)
    deliver(assigned, ONE, next_offset=40)
    assert assigned.positions() == {ONE: 40}
    assert assigned.to_commit(handed_is_done=False) == {ONE: 40}
    deliver(assigned, ONE, 40)
    deliver(assigned, ONE, next_offset=80)
    assert assigned.position(ONE) == 40
    assigned.take(10)
    assert assigned.position(ONE) == 80


def test_an_empty_pull_does_not_make_done_what_is_in_the_user_s_hands() -> None:
    assigned = held(ONE)
    deliver(assigned, ONE, 0)
    assigned.take(10)
    deliver(assigned, ONE, next_offset=50)
    assert assigned.to_commit(handed_is_done=False) == {ONE: 0}
    assigned.finish_handed()
    assert assigned.to_commit(handed_is_done=False) == {ONE: 50}


def test_an_answer_from_before_a_seek_is_dropped() -> None:
    assigned = held(ONE)
    deliver(assigned, ONE, 0, 1)
    late = assigned.next_pull(ONE)
    assert late is not None
    assigned.seek(ONE, 2)
    assert assigned.cached_count == 0
    assert assigned.take(10) == []
    assert not assigned.arrived(late, messages(ONE, 2, 3), 4)
    assert assigned.take(10) == []
    assert assigned.positions() == {ONE: 2}
    deliver(assigned, ONE, 2)
    assert offsets(assigned.take(10)) == [(1, 2)]


def test_handing_out_before_a_seek_moves_nothing_after_it() -> None:
    assigned = held(ONE)
    deliver(assigned, ONE, 0, 1)
    assigned.take(1)
    assigned.seek(ONE, 100)
    deliver(assigned, ONE, 100)
    assigned.take(1)
    assigned.seek(ONE, 0)
    assigned.finish_handed()
    assert assigned.to_commit(handed_is_done=False) == {ONE: 0}


def test_a_seek_before_the_start_is_known_wins() -> None:
    assigned = AssignedQueues(CacheLimits())
    assigned.add(ONE)
    assigned.seek(ONE, 30)
    assigned.begin(ONE, 4)
    assert assigned.positions() == {ONE: 30}


def test_a_queue_lost_and_won_again_refuses_answers_for_its_past() -> None:
    assigned = held(ONE)
    late = assigned.next_pull(ONE)
    assert late is not None
    assigned.drop(ONE)
    assert not assigned.arrived(late, messages(ONE, 0), 1)
    assigned.begin(ONE, 0)
    assigned.add(ONE)
    assigned.begin(ONE, 0)
    assert not assigned.arrived(late, messages(ONE, 0), 1)


def test_one_answer_counts_once() -> None:
    assigned = held(ONE)
    pull = deliver(assigned, ONE, 0)
    assert not assigned.arrived(pull, messages(ONE, 0), 1)
    assert assigned.cached_count == 1


def test_what_is_cached_of_a_dropped_queue_is_gone() -> None:
    assigned = held(ONE, TWO)
    deliver(assigned, ONE, 0)
    deliver(assigned, TWO, 0)
    assigned.drop(ONE)
    assert assigned.cached_count == 1
    assert offsets(assigned.take(10)) == [(2, 0)]
    assert assigned.to_commit(handed_is_done=True) == {TWO: 1}
    assigned.was_committed(ONE, 1)


def test_a_paused_queue_is_neither_pulled_nor_handed_out() -> None:
    assigned = held(ONE, TWO)
    deliver(assigned, ONE, 0)
    under_way = assigned.next_pull(ONE)
    assert under_way is not None
    assigned.pause([ONE])
    assert assigned.is_paused(ONE)
    assert assigned.next_pull(ONE) is None
    assert assigned.arrived(under_way, messages(ONE, 1), 2)
    assert assigned.take(10) == []
    assigned.resume([ONE])
    assert offsets(assigned.take(1)) == [(1, 0)]
    assert offsets(assigned.take(1)) == [(1, 1)]
    assert assigned.next_pull(ONE) is not None


def test_a_queue_paused_in_the_middle_of_a_pull_goes_on_there() -> None:
    assigned = held(ONE)
    deliver(assigned, ONE, 0, 1, 2)
    assigned.take(1)
    assigned.pause([ONE])
    assert assigned.take(1) == []
    assigned.resume([ONE])
    assert offsets(assigned.take(10)) == [(1, 1), (1, 2)]


@pytest.mark.parametrize(
    "limits",
    [
        CacheLimits(count_all=2),
        CacheLimits(count_queue=2),
        CacheLimits(bytes_queue=2),
        CacheLimits(span=2),
    ],
)
def test_a_full_cache_stops_pulling_until_something_is_taken(limits: CacheLimits) -> None:
    assigned = held(ONE, limits=limits)
    deliver(assigned, ONE, 0)
    deliver(assigned, ONE, 1, 2, 3)
    assert assigned.next_pull(ONE) is None
    assigned.take(10)
    # Count and bytes are above the limit still: only the first message is gone.
    if limits.span == 2:
        assert assigned.next_pull(ONE) is not None
    else:
        assert assigned.next_pull(ONE) is None
    assigned.take(1)
    assert assigned.next_pull(ONE) is not None


def test_one_full_queue_does_not_stop_another() -> None:
    assigned = held(ONE, TWO, limits=CacheLimits(count_queue=1))
    deliver(assigned, ONE, 0, 1)
    assert assigned.next_pull(ONE) is None
    assert assigned.next_pull(TWO) is not None


def test_a_queue_that_is_not_held_is_named() -> None:
    assigned = held(ONE)
    attempts: list[Callable[[], object]] = [
        lambda: assigned.seek(TWO, 0),
        lambda: assigned.pause([ONE, TWO]),
        lambda: assigned.resume([TWO]),
        lambda: assigned.position(TWO),
    ]
    for attempt in attempts:
        with pytest.raises(UsageError, match=r"queueId=2.*not assigned"):
            attempt()
    assert not assigned.is_paused(ONE)
