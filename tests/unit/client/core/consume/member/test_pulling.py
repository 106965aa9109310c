"""When a held queue is pulled, and when not."""

from __future__ import annotations

from typing import Any

from cometmq.client.core.consume.flow_limits import FlowLimits
from cometmq.client.core.consume.member.held_queue import HeldQueue
from cometmq.client.core.consume.member.instructions import ResumePull
from cometmq.client.core.consume.member.pulling import (
    END,
    LIMIT_SECONDS,
    LOGGED_PAUSES,
    SUSPENDED,
    Hold,
    Pause,
    Pull,
    Pulling,
    PullStep,
)
from cometmq.client.core.consume.member.rules import MemberRules
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage

LIMITS = FlowLimits(count_max=1, size_mib_max=1, span_max=10)


def make(**rules: Any) -> tuple[HeldQueue, Pulling]:
    settings = MemberRules(**rules)
    held = HeldQueue(MessageQueue("b", 0, "T"), 5, rules=settings, now=100.0)
    return held, Pulling(held, settings)


def ask(pulling: Pulling, now: float = 100.0, **more: bool) -> PullStep:
    return pulling.next(
        now, limits=LIMITS, **{"is_suspended": False, "is_subscribed": True, **more}
    )


def messages(*offsets: int) -> list[ReceivedMessage]:
    return [ReceivedMessage(topic="T", body=b"x", queue_offset=offset) for offset in offsets]


def test_it_goes_on_where_it_is_and_tells_the_position() -> None:
    held, pulling = make()
    assert ask(pulling) == Pull(5, 5)
    held.process.add(messages(5), 6)
    assert ask(pulling, 101.0) == Pull(6, 5)
    assert held.last_pull == 101.0


def test_no_position_is_sent_when_broadcasting_or_at_the_very_start() -> None:
    _, pulling = make(is_broadcast=True)
    assert ask(pulling) == Pull(5, None)
    rules = MemberRules()
    held = HeldQueue(MessageQueue("b", 0, "T"), 0, rules=rules, now=0.0)
    assert ask(Pulling(held, rules)) == Pull(0, None)


def test_a_full_queue_holds_until_messages_are_finished() -> None:
    held, pulling = make()
    jobs = held.open_jobs(held.process.add(messages(5, 6), 7), 1)
    step = ask(pulling)
    assert isinstance(step, Hold)
    assert (step.seconds, step.is_to_log) == (LIMIT_SECONDS, True)
    assert held.consumed(jobs[0], 100.0) == (ResumePull(held),)
    assert held.consumed(jobs[1], 100.0) == ()
    assert ask(pulling) == Pull(7, 7)


def test_one_in_many_pauses_is_logged() -> None:
    held, pulling = make()
    held.process.add(messages(5, 6), 7)
    steps = [ask(pulling) for _ in range(LOGGED_PAUSES + 1)]
    assert [isinstance(step, Hold) and step.is_to_log for step in steps].count(True) == 2


def test_the_user_suspends_it_and_an_unsubscribed_topic_ends_it() -> None:
    _, pulling = make()
    assert ask(pulling, is_suspended=True) is SUSPENDED
    assert ask(pulling, is_subscribed=False) is END


def test_a_dropped_queue_is_not_pulled_and_does_not_count_as_alive() -> None:
    held, pulling = make()
    held.is_dropped = True
    assert ask(pulling, 150.0) is END
    assert held.last_pull == 100.0


def test_without_a_valid_lock_it_waits() -> None:
    held, pulling = make(is_orderly=True, lock_valid_seconds=30.0, pull_error_seconds=2.0)
    assert ask(pulling) == Pause(2.0)
    held.locked_at = 100.0
    assert ask(pulling, 129.0) == Pull(5, 5)
    assert ask(pulling, 130.0) == Pause(2.0)


def test_pauses_after_answers_and_errors() -> None:
    _, pulling = make(pull_interval_seconds=0.5, pull_error_seconds=2.0)
    pulling.ended(100.0)
    assert ask(pulling, 100.25) == Pause(0.25)
    pulling.failed(101.0, by_flow_control=False)
    assert ask(pulling, 102.0) == Pause(1.0)
    pulling.failed(110.0, by_flow_control=True)
    assert ask(pulling, 110.03) == Pull(5, 5)


def test_a_pull_just_sent_with_another_position_may_set_the_last_one_back() -> None:
    _, pulling = make()
    assert not pulling.may_set_back(6, 100.0)
    ask(pulling, 100.0)
    assert pulling.may_set_back(6, 100.9)
    assert not pulling.may_set_back(5, 100.9)
    assert not pulling.may_set_back(6, 101.0)
    pulling.ended(100.5)
    assert not pulling.may_set_back(6, 100.5)


def test_a_puller_that_asks_no_more_is_stuck() -> None:
    _, pulling = make()
    assert not pulling.is_stuck(220.0)
    assert pulling.is_stuck(220.1)
    ask(pulling, 230.0, is_suspended=True)
    assert not pulling.is_stuck(350.0)
