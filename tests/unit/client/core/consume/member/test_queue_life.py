"""The life of a queue, state by state: every way in, every way out, and what comes too late."""

from __future__ import annotations

from typing import Any

import pytest

from cometmq.client.core.consume.flow_limits import FlowLimits
from cometmq.client.core.consume.member.instructions import (
    Again,
    AskOwner,
    Begin,
    Commit,
    Deliver,
    EndPull,
    FindStart,
    Gone,
    Instructions,
    Lock,
    Tell,
    Unlock,
    Wake,
    Withdraw,
)
from cometmq.client.core.consume.member.old_owners import ASK_SECONDS
from cometmq.client.core.consume.member.pulling import END, Pause, Pull
from cometmq.client.core.consume.member.queue_life import (
    BROKER_LOCK_SECONDS,
    LOCK_AGAIN_SECONDS,
    PULL_SETTLE_SECONDS,
    SOON_SECONDS,
    QueueLife,
    State,
)
from cometmq.client.core.consume.member.rules import MemberRules
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage

QUEUE = MessageQueue("b", 0, "T")
LIMITS = FlowLimits(count_max=100, size_mib_max=1, span_max=100)
ANSWER = 60.0


def make(**rules: Any) -> QueueLife:
    return QueueLife(QUEUE, MemberRules(answer_seconds=ANSWER, **rules), lambda life: None)


def held(start: int = 5, now: float = 100.0, **rules: Any) -> QueueLife:
    life = make(**rules)
    life.take((), now)
    life.lock_answered(now, is_ours=True)
    assert life.start_found(start, now) == (Begin(life),)
    return life


def pull(life: QueueLife, now: float) -> Any:
    return life.next_pull(now, limits=LIMITS, is_suspended=False, is_subscribed=True)


def deliver(life: QueueLife, *offsets: int, now: float = 100.0) -> Any:
    """Pull messages; the jobs they are in."""
    found = [ReceivedMessage(topic="T", body=b"x", queue_offset=offset) for offset in offsets]
    (wanted,) = life.pulled(found, offsets[-1] + 1, now)
    assert wanted == Deliver(life.held, found)  # type: ignore[arg-type]
    assert life.held is not None
    return life.held.open_jobs(found, 1)


def kinds(todo: Instructions) -> list[type]:
    return [type(each) for each in todo]


# Taking.


def test_a_queue_that_nobody_had_starts_at_once() -> None:
    life = make()
    assert life.take((), 100.0) == [FindStart(life), Wake(life, 100.0 + ANSWER)]
    assert life.start_found(7, 101.0) == (Begin(life),)
    assert life.is_held
    assert life.held is not None
    assert life.held.process.next_offset == 7


def test_old_owners_are_asked_until_they_have_let_go() -> None:
    life = make()
    assert life.take(["a", "b"], 100.0) == [
        AskOwner(life, "a"),
        AskOwner(life, "b"),
        Wake(life, 110.0 + ANSWER),
    ]
    assert kinds(life.owner_answered("a", 100.0, has_queue=False)) == [Wake]
    assert life.owner_answered("b", 100.0, has_queue=True) == [Wake(life, 100.0 + ASK_SECONDS)]
    assert kinds(life.wake(100.06)) == [AskOwner, Wake]
    assert kinds(life.owner_answered("b", 100.1, has_queue=False)) == [FindStart, Wake]


def test_an_owner_that_keeps_the_queue_is_passed_over_with_a_warning() -> None:
    life = make(handover_seconds=0.2)
    life.take(["a"], 100.0)
    tell, start, _ = life.owner_answered("a", 100.2, has_queue=True)
    assert isinstance(tell, Tell)
    assert tell.is_warning
    assert "owner=a" in tell.text
    assert start == FindStart(life)


def test_an_owner_that_cannot_be_asked_gets_a_moment() -> None:
    life = make()
    life.take(["a"], 100.0)
    assert life.owner_silent("a", 101.0) == [Wake(life, 102.0)]
    assert kinds(life.wake(102.0)) == [FindStart, Wake]


def test_a_queue_in_order_is_locked_first_and_tried_again_until_it_is() -> None:
    life = make(is_orderly=True)
    assert life.take((), 100.0) == [Lock(life), Wake(life, 100.0 + ANSWER)]
    assert life.lock_answered(101.0, is_ours=False) == (Wake(life, 101.0 + LOCK_AGAIN_SECONDS),)
    assert kinds(life.wake(101.2)) == [Lock, Wake]
    assert kinds(life.lock_answered(102.0, is_ours=True)) == [FindStart, Wake]
    life.start_found(0, 103.0)
    assert life.held is not None
    assert life.held.locked_at == 101.2, "the lock may be as old as the question"


def test_a_lock_that_was_asked_for_twice_is_as_old_as_the_first_question() -> None:
    life = make(is_orderly=True)
    life.take((), 100.0)
    assert kinds(life.wake(100.0 + ANSWER)) == [Lock, Wake]
    life.lock_answered(161.0, is_ours=True)
    life.start_found(0, 161.0)
    assert life.held is not None
    assert life.held.locked_at == 100.0


@pytest.mark.parametrize("is_told", [True, False])
def test_a_start_that_cannot_be_found_is_tried_again_soon(is_told: bool) -> None:
    life = make()
    life.take((), 100.0)
    todo = life.failed(101.0) if is_told else life.wake(100.0 + ANSWER)
    assert todo == [Gone(life), Again(SOON_SECONDS)]
    assert life.start_found(7, 200.0) == ()


def test_and_gives_its_lock_back() -> None:
    life = make(is_orderly=True)
    life.take((), 100.0)
    life.lock_answered(100.0, is_ours=True)
    assert kinds(life.failed(101.0)) == [Unlock, Wake]
    assert life.unlocked() == [Gone(life), Again(SOON_SECONDS)]


def test_a_queue_that_is_dropped_while_it_is_taken_is_gone() -> None:
    life = make()
    life.take(["a"], 100.0)
    assert life.drop(101.0) == [Gone(life), Again(0.0)]
    assert life.owner_answered("a", 102.0, has_queue=False) == ()
    assert life.owner_silent("a", 102.0) == ()
    assert life.wake(103.0) == ()


def test_a_lock_that_may_be_on_its_way_is_given_back() -> None:
    life = make(is_orderly=True)
    life.take((), 100.0)
    assert life.drop(101.0) == [Unlock(life), Wake(life, 101.0 + ANSWER)]
    assert life.drop(101.5) == (), "a second time changes nothing"
    assert life.lock_answered(102.0, is_ours=True) == ()
    assert life.unlocked() == [Gone(life), Again(0.0)]


def test_a_reset_while_it_is_taken_is_stored_and_is_the_start() -> None:
    life = make()
    life.take(["a"], 100.0)
    assert life.reset(3, 100.0) == ()
    life.owner_answered("a", 100.0, has_queue=False)
    assert life.start_found(7, 101.0) == [Commit(life, 3), Wake(life, 101.0 + ANSWER)]
    assert life.reset(4, 101.0) == ()
    assert kinds(life.committed(102.0)) == [Commit, Wake]
    assert life.committed(103.0) == (Begin(life),)
    assert life.position == 4


def test_a_reset_that_cannot_be_stored_is_not_begun_at() -> None:
    life = make()
    life.take((), 100.0)
    life.reset(3, 100.0)
    life.start_found(7, 101.0)
    assert life.failed(102.0) == [Gone(life), Again(SOON_SECONDS)]


# While it is held.


def test_messages_that_were_pulled_are_delivered_once() -> None:
    life = held(5)
    assert pull(life, 100.0) == Pull(5, 5)
    deliver(life, 5, 6)
    assert life.held is not None
    assert life.held.pulled_count == 2
    again = [ReceivedMessage(topic="T", body=b"x", queue_offset=6)]
    assert life.pulled(again, 7, 100.0) == ()
    assert life.pulled([], 9, 100.0) == ()
    assert pull(life, 100.0) == Pull(9, 5)


def test_a_pull_that_failed_is_tried_again_after_a_pause() -> None:
    life = held(pull_error_seconds=3.0)
    assert life.pull_failed(100.0) == ()
    assert pull(life, 100.0) == Pause(3.0)
    assert life.pull_failed(100.0, by_flow_control=True) == ()
    assert pull(life, 100.1) == Pull(5, 5)


def test_an_illegal_offset_starts_the_queue_anew_where_the_broker_says() -> None:
    life = held(5)
    tell, withdraw, wake = life.offset_illegal(20, 100.0)
    assert isinstance(tell, Tell)
    assert "offset=5 next=20" in tell.text
    assert (withdraw, wake) == (Withdraw(life), Wake(life, 110.0))
    assert life.withdrawn(0, 100.0)[:2] == [EndPull(life), Commit(life, 20)]


def test_a_lock_is_renewed_from_the_time_it_was_asked_for() -> None:
    life = held(is_orderly=True)
    assert life.lock_renewed(120.0, 121.0, is_ours=True) == ()
    assert life.held is not None
    assert life.held.locked_at == 120.0


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_lock_that_was_lost_ends_the_queue_without_a_commit(is_ours: bool) -> None:
    """After a minute another client may have had it, even if it is ours now."""
    life = held(is_orderly=True)
    asked_at = 100.0 + (BROKER_LOCK_SECONDS if is_ours else 20.0)
    tell, *todo = life.lock_renewed(asked_at, asked_at, is_ours=is_ours)
    assert isinstance(tell, Tell)
    assert tell.is_warning
    assert kinds(todo) == [Withdraw, Wake]
    assert kinds(life.withdrawn(0, asked_at)) == [EndPull, Unlock, Wake]
    assert life.lock_renewed(asked_at, asked_at, is_ours=True) == ()


def test_a_queue_is_stuck_when_nobody_asks_what_to_pull() -> None:
    life = held()
    assert not life.is_stuck(220.0)
    assert life.is_stuck(221.0)
    life.drop(221.0)
    assert not life.is_stuck(500.0)


# Letting go.


def test_listeners_finish_then_the_position_is_committed() -> None:
    life = held(5)
    begun, left = deliver(life, 5, 6)
    assert life.drop(101.0) == [Withdraw(life), Wake(life, 111.0)]
    assert pull(life, 101.0) is END
    assert life.withdrawn(1, 101.0) == ()
    assert life.state is State.DRAINING
    assert life.held is not None
    assert not life.held.is_released
    assert life.held.consumed(begun, 102.0) == [
        EndPull(life),
        Commit(life, 6),
        Wake(life, 102.0 + ANSWER),
    ]
    assert life.held.is_released
    assert life.committed(103.0) == [Gone(life), Again(0.0)]
    assert left.messages[0].queue_offset == 6


def test_a_listener_that_does_not_end_is_not_waited_for_for_ever() -> None:
    life = held(5, handover_seconds=2.0)
    (job,) = deliver(life, 5)
    life.drop(100.0)
    life.withdrawn(0, 100.0)
    assert life.wake(101.0) == (Wake(life, 102.0),), "a timer may be early"
    tell, *todo = life.wake(102.0)
    assert isinstance(tell, Tell)
    assert "jobs=1" in tell.text
    assert kinds(todo) == [EndPull, Commit, Wake]
    assert life.position == 5
    assert life.held is not None
    assert life.held.consumed(job, 103.0) == (), "and its end moves nothing any more"


def test_closing_has_a_time_of_its_own() -> None:
    life = held(handover_seconds=2.0)
    assert life.close(30.0, 100.0) == [Withdraw(life), Wake(life, 130.0)]
    taking = make()
    taking.take(["a"], 100.0)
    assert taking.close(30.0, 100.0) == [Gone(taking), Again(0.0)]


def test_a_pull_with_an_old_position_is_answered_first() -> None:
    life = held(5)
    (job,) = deliver(life, 5)
    assert pull(life, 100.0) == Pull(6, 5)
    life.drop(100.1)
    life.withdrawn(0, 100.1)
    assert life.held is not None
    assert life.held.consumed(job, 100.2) == (Wake(life, 100.2 + PULL_SETTLE_SECONDS),)
    assert kinds(life.pulled([], 6, 100.3)) == [EndPull, Commit, Wake]


@pytest.mark.parametrize("ending", ["fails", "illegal", "never"])
def test_or_its_time_is_over(ending: str) -> None:
    life = held(5)
    (job,) = deliver(life, 5)
    pull(life, 100.0)
    life.drop(100.1)
    life.withdrawn(0, 100.1)
    assert life.held is not None
    life.held.consumed(job, 100.2)
    if ending == "fails":
        todo = life.pull_failed(100.3)
    elif ending == "illegal":
        todo = life.offset_illegal(99, 100.3)
    else:
        todo = life.wake(100.4)
    assert kinds(todo) == [EndPull, Commit, Wake]
    assert life.position == 6


def test_what_is_pulled_after_the_drop_is_left_to_the_next_owner() -> None:
    life = held(5)
    (job,) = deliver(life, 5)
    life.drop(100.0)
    life.withdrawn(0, 100.0)
    late = [ReceivedMessage(topic="T", body=b"x", queue_offset=6)]
    assert life.pulled(late, 7, 100.0) == ()
    assert life.held is not None
    life.held.consumed(job, 100.0)
    assert life.position == 6


def test_a_reset_ends_what_is_in_work_and_forgets_the_rest() -> None:
    life = held(5)
    deliver(life, 5, 6)
    assert life.reset(2, 100.0) == [Withdraw(life), Wake(life, 110.0)]
    assert life.withdrawn(2, 100.0)[:2] == [EndPull(life), Commit(life, 2)]


def test_a_pull_with_the_position_from_before_does_not_undo_a_reset() -> None:
    life = held(5)
    assert pull(life, 100.0) == Pull(5, 5)
    life.reset(2, 100.1)
    assert life.withdrawn(0, 100.1) == (Wake(life, 100.1 + PULL_SETTLE_SECONDS),)
    assert life.pulled([], 5, 100.2)[:2] == [EndPull(life), Commit(life, 2)]


def test_a_reset_while_it_is_let_go_of_is_the_last_position() -> None:
    life = held(5)
    deliver(life, 5)
    life.drop(100.0)
    life.reset(1, 100.0)
    assert life.withdrawn(1, 100.0)[:2] == [EndPull(life), Commit(life, 1)]
    life.reset(2, 100.0)
    assert life.committed(100.0)[:2] == [EndPull(life), Commit(life, 2)]
    assert life.committed(100.0) == [Gone(life), Again(0.0)]
    assert life.reset(3, 100.0) == ()
    assert life.position == 2


@pytest.mark.parametrize("ending", ["failed", "never"])
def test_a_commit_that_fails_does_not_keep_the_queue(ending: str) -> None:
    life = held(is_orderly=True)
    life.drop(100.0)
    assert kinds(life.withdrawn(0, 100.0)) == [EndPull, Commit, Wake]
    todo = life.failed(101.0) if ending == "failed" else life.wake(100.0 + ANSWER)
    assert kinds(todo) == [Unlock, Wake]
    todo = life.failed(102.0) if ending == "failed" else life.wake(300.0)
    assert todo == [Gone(life), Again(0.0)]


def test_what_comes_too_late_changes_nothing() -> None:
    life = held(5)
    pull(life, 100.0)
    life.drop(100.0)
    life.withdrawn(0, 102.0)
    life.committed(102.0)
    assert life.state is State.GONE
    assert life.committed(103.0) == ()
    assert life.failed(103.0) == ()
    assert life.unlocked() == ()
    assert life.wake(200.0) == ()
    assert life.pulled([], 9, 103.0) == ()
    assert life.pull_failed(103.0) == ()
    assert life.offset_illegal(0, 103.0) == ()
    assert life.withdrawn(0, 103.0) == ()
    assert life.drop(103.0) == life.close(1.0, 103.0) == ()
    assert life.lock_answered(103.0, is_ours=True) == ()
    assert repr(life) == f"<QueueLife {QUEUE} gone>"
