"""Consuming a queue in order: one call after the other, the same messages again after a failure."""

from __future__ import annotations

from typing import Any

import pytest

from cometmq.client.core.consume.member.held_queue import HeldQueue
from cometmq.client.core.consume.member.instructions import ResumePull
from cometmq.client.core.consume.member.orderly_calls import (
    UNLOCKED_SECONDS,
    CallPause,
    CallStep,
    Letter,
    OrderlyCalls,
)
from cometmq.client.core.consume.member.rules import MemberRules
from cometmq.client.core.consume.outcome import DEAD_LETTER_LEVEL, Verdict
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage


def make(count: int = 3, **rules: Any) -> tuple[HeldQueue, OrderlyCalls]:
    settings = MemberRules(is_orderly=True, **rules)
    held = HeldQueue(MessageQueue("b", 0, "T"), 0, rules=settings, now=100.0)
    held.locked_at = 100.0
    messages = [ReceivedMessage(topic="T", body=b"x", queue_offset=at) for at in range(count)]
    held.process.add(messages, count)
    return held, OrderlyCalls(held, settings)


def offsets(messages: list[ReceivedMessage]) -> list[int]:
    return [message.queue_offset for message in messages]


def test_messages_come_from_the_front_until_there_are_none() -> None:
    held, calls = make()
    assert calls.next(100.0) is CallStep.CALL
    taken = calls.take(2)
    assert offsets(taken) == [0, 1]
    assert calls.settle(taken, 2, seconds=0.5, now=101.0) == ()
    assert (held.consumed_count, held.consumed_seconds, held.last_consume) == (2, 0.5, 101.0)
    assert offsets(calls.take(2)) == [2]
    calls.settle([], 1, seconds=0.5, now=102.0)
    assert calls.next(102.0) is CallStep.IDLE
    assert calls.take(2) == []
    assert held.process.commit_offset == 3


def test_one_that_cannot_be_read_is_alone_in_its_call() -> None:
    held, calls = make(0)
    bad = ReceivedMessage(topic="T", body=b"x", queue_offset=1, body_error="cut off")
    good = ReceivedMessage(topic="T", body=b"x", queue_offset=0)
    held.process.add([good, bad], 2)
    assert offsets(calls.take(2)) == [0]


def test_after_a_failure_the_queue_pauses_and_the_rest_comes_again() -> None:
    held, calls = make(suspend_seconds=2.0)
    taken = calls.take(3)
    calls.settle(taken, 1, has_failed=True, seconds=0.0, now=100.0)
    assert (held.failed_count, held.process.commit_offset) == (1, 1)
    assert [message.reconsume_times for message in taken] == [0, 1, 1]
    assert calls.next(100.5) == CallPause(1.5)
    assert calls.next(102.0) is CallStep.CALL
    assert offsets(calls.take(3)) == [1, 2]


def test_a_dead_letter_is_done_and_needs_no_pause() -> None:
    held, calls = make()
    taken = calls.take(2)
    calls.settle(taken, 1, 1, has_failed=True, seconds=0.0, now=100.0)
    assert held.process.commit_offset == 2
    assert calls.next(100.0) is CallStep.CALL


def test_a_stretch_that_was_cut_short_leaves_the_rest_untried() -> None:
    held, calls = make()
    taken = calls.take_stretch(64)
    calls.settle(taken[:1], 1, seconds=0.0, now=100.0)
    assert held.process.commit_offset == 1
    assert calls.next(100.0) is CallStep.CALL
    assert [message.reconsume_times for message in calls.take_stretch(64)] == [0, 0]


@pytest.mark.parametrize(
    ("times", "times_max", "level", "letter"),
    [
        (0, None, 0, None),
        (99, None, 3, None),
        (1, 2, 0, None),
        (2, 2, 0, Letter.COPY),
        (0, None, DEAD_LETTER_LEVEL, Letter.SENT_BACK),
        (2, 2, DEAD_LETTER_LEVEL, Letter.SENT_BACK),
    ],
)
def test_when_a_failed_message_is_a_dead_letter(
    times: int, times_max: int | None, level: int, letter: Letter | None
) -> None:
    _, calls = make(reconsume_times_max=times_max)
    message = ReceivedMessage(topic="T", body=b"x", reconsume_times=times)
    assert calls.letter(message, Verdict(0, level)) is letter


def test_nothing_is_called_without_a_lock_or_when_the_queue_is_dropped() -> None:
    held, calls = make(lock_valid_seconds=30.0)
    assert calls.may_go_on(129.0)
    assert not calls.may_go_on(130.0)
    assert calls.next(130.0) == CallPause(UNLOCKED_SECONDS)
    held.is_dropped = True
    assert not calls.may_go_on(129.0)
    assert calls.next(129.0) is CallStep.END


def test_a_full_queue_is_pulled_again_when_messages_are_done() -> None:
    held, calls = make()
    held.is_full = True
    assert calls.settle(calls.take(1), 1, seconds=0.0, now=100.0) == (ResumePull(held),)
