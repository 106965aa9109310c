"""The jobs of a held queue: each end has its consequence, and counts once."""

from __future__ import annotations

from typing import Any

from cometmq.client.core.consume.member.held_queue import (
    RESUBMIT_SECONDS,
    TIMED_OUT_LEVEL,
    HeldQueue,
    Job,
    late_jobs,
)
from cometmq.client.core.consume.member.instructions import (
    Again,
    Instructions,
    Resubmit,
    RetryLater,
    Tell,
)
from cometmq.client.core.consume.member.rules import MemberRules
from cometmq.client.core.consume.outcome import Verdict
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage

RESTED: Instructions = (Again(1.5),)
"""Stands for what follows when a dropped queue has come to rest."""


def make(count: int = 3, batch_max: int = 3, **rules: Any) -> tuple[HeldQueue, list[Job]]:
    held = HeldQueue(
        MessageQueue("b", 0, "T"),
        0,
        rules=MemberRules(**rules),
        now=100.0,
        on_rested=lambda now: RESTED,
    )
    messages = [ReceivedMessage(topic="T", body=b"x", queue_offset=at) for at in range(count)]
    jobs = held.open_jobs(held.process.add(messages, count), batch_max)
    for job in jobs:
        job.started = 100.0
    return held, jobs


def test_messages_share_jobs_up_to_the_batch_size() -> None:
    held, jobs = make(5, 2)
    assert [len(job.messages) for job in jobs] == [2, 2, 1]
    assert held.jobs_open == 3
    assert len(make(5, 1)[1]) == 5


def test_what_was_consumed_is_finished_and_counted() -> None:
    held, (job,) = make()
    assert held.consumed(job, 102.0) == ()
    assert (held.jobs_open, held.process.commit_offset) == (0, 3)
    assert (held.consumed_count, held.consumed_seconds, held.last_consume) == (3, 2.0, 102.0)


def test_what_failed_is_sent_back_one_by_one() -> None:
    held, (job,) = make()
    assert held.failed(job, Verdict(1, 4), 102.0) == (RetryLater(held, job.messages[1:], 4),)
    assert (held.consumed_count, held.failed_count, held.process.commit_offset) == (1, 2, 1)
    held.sent_back(job.messages[1])
    assert held.process.commit_offset == 2
    held.sent_back(job.messages[2])
    assert held.jobs_open == 1
    assert held.keep([], 102.0) == ()
    assert (held.jobs_open, held.process.commit_offset) == (0, 3)


def test_what_cannot_be_sent_back_is_delivered_again_here() -> None:
    held, (job,) = make()
    held.failed(job, Verdict(0), 102.0)
    for message in job.messages[1:]:
        held.sent_back(message)
    assert held.keep(job.messages[:1], 103.0) == [
        Resubmit(held, job.messages[:1], RESUBMIT_SECONDS)
    ]
    assert job.messages[0].reconsume_times == 1
    assert (held.jobs_open, held.process.commit_offset) == (0, 0)


def test_broadcasting_passes_failed_messages_over() -> None:
    held, (job,) = make(is_broadcast=True)
    todo = held.failed(job, Verdict(1), 102.0)
    assert [isinstance(each, Tell) and each.is_warning for each in todo] == [True, True]
    assert (held.jobs_open, held.process.commit_offset) == (0, 3)


def test_a_released_queue_leaves_failed_messages_to_its_next_owner() -> None:
    held, (job,) = make()
    held.is_dropped = held.is_released = True
    assert held.failed(job, Verdict(0), 102.0) == RESTED
    assert held.process.commit_offset == 0


def test_the_last_job_of_a_dropped_queue_brings_it_to_rest() -> None:
    held, jobs = make(3, 1)
    held.is_dropped = True
    assert held.consumed(jobs[1], 101.0) == ()
    assert held.close_jobs(1, 101.0) == ()
    assert held.consumed(jobs[0], 101.0) == RESTED
    assert held.close_jobs(0, 101.0) == RESTED


def test_a_job_kept_for_too_long_is_sent_back_and_its_end_counts_no_more() -> None:
    held, (first, second, third) = make(3, 1)
    first.started, second.started, third.started = 10.0, 90.0, 0.0
    assert late_jobs([first, second, None, third], 50.0) == [first]
    tell, retry = held.abandon(first, 100.0)
    assert isinstance(tell, Tell)
    assert retry == RetryLater(held, first.messages, TIMED_OUT_LEVEL)
    assert late_jobs([first, second], 50.0) == []
    assert late_jobs([second], 95.0) == [second]
    second.returned = Verdict(0)
    assert late_jobs([second], 95.0) == []
    assert held.consumed(first, 101.0) == held.failed(first, Verdict(0), 101.0) == ()
    assert held.jobs_open == 3
    held.sent_back(first.messages[0])
    held.keep([], 101.0)
    assert (held.jobs_open, held.process.commit_offset) == (2, 1)


def test_a_lock_is_trusted_for_a_while() -> None:
    held, _ = make(is_orderly=True, lock_valid_seconds=30.0)
    assert not held.is_locked(100.0)
    held.locked_at = 100.0
    assert held.is_locked(129.9)
    assert not held.is_locked(130.0)
    for rules in ({"is_orderly": True, "is_broadcast": True}, {}):
        assert make(**rules)[0].is_locked(1e9)
