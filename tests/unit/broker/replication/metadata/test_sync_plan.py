"""Which failures of a sync are worth a line in the log."""

from __future__ import annotations

from cometmq.base.errors import ConnectFailed, RemoteProtocolError
from cometmq.broker.replication.metadata.sync_plan import ROUND, TIMERS, TOPICS, SyncPlan
from cometmq.protocol.command import Command
from cometmq.protocol.reply_errors import error_for

UNKNOWN_THERE = error_for(Command(3, remark=" request type 60 not supported"), "m:1")


def test_the_order_is_the_one_of_rocketmq_and_our_own_question_is_the_last() -> None:
    assert [question.code for question in ROUND] == [21, 43, 45, 201, 402, 61, 60, 28, 29006, 29007]


def test_a_cause_is_told_once_until_it_was_gone_or_another_came() -> None:
    plan = SyncPlan()
    first, second = RemoteProtocolError("first"), RemoteProtocolError("second")
    assert [plan.failed(TOPICS, first), plan.failed(TOPICS, first)] == ["first", None]
    assert [plan.failed(TOPICS, second), plan.failed(TOPICS, first)] == ["second", "first"]
    plan.succeeded(TOPICS)
    assert plan.failed(TOPICS, first) == "first"
    plan.begin()
    assert plan.failed(TOPICS, first) == "first"


def test_what_an_older_master_does_not_know_is_no_failure() -> None:
    plan = SyncPlan()
    assert plan.failed(TIMERS, UNKNOWN_THERE) is None
    assert plan.failed(TOPICS, UNKNOWN_THERE) is not None
    assert not plan.ends_round(UNKNOWN_THERE)


def test_a_master_that_cannot_be_reached_is_not_asked_for_the_rest() -> None:
    assert SyncPlan().ends_round(ConnectFailed("gone"))
