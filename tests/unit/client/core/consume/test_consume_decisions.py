"""Small decisions of a push consumer: outcomes, where to start, when to pause."""

from __future__ import annotations

import pytest

from cometmq.base.errors import UsageError
from cometmq.client.core.consume.consume_from import Ask, At, start_of
from cometmq.client.core.consume.flow_limits import FlowLimits, limits_of_queue
from cometmq.client.core.consume.outcome import BadOutcome, Outcome, Verdict, judge
from cometmq.client.core.consume.process_queue import ProcessQueue
from cometmq.model.consumption import ConsumeFromWhere
from cometmq.model.messages.received_message import ReceivedMessage


@pytest.mark.parametrize(
    ("returned", "verdict"),
    [
        (None, Verdict(3)),
        (Outcome.consumed, Verdict(3)),
        (Outcome.later(), Verdict(0, 0)),
        (Outcome.later(delay_level=4), Verdict(0, 4)),
        (Outcome.to_dlq(), Verdict(0, -1)),
        (Outcome.consumed_through(-1), Verdict(0)),
        (Outcome.consumed_through(1), Verdict(2)),
        (Outcome.consumed_through(2), Verdict(3)),
    ],
)
def test_an_outcome_says_how_many_are_done_and_when_the_others_come_again(
    returned: Outcome | None, verdict: Verdict
) -> None:
    assert judge(returned, 3) == verdict


@pytest.mark.parametrize("returned", [True, False, 0, "CONSUME_SUCCESS", Outcome, object()])
def test_anything_else_is_an_error_that_names_what_was_expected(returned: object) -> None:
    with pytest.raises(BadOutcome, match=r"expected None or an Outcome"):
        judge(returned, 1)


def test_an_index_beyond_the_batch_is_an_error() -> None:
    with pytest.raises(BadOutcome, match="last index is 2"):
        judge(Outcome.consumed_through(3), 3)


@pytest.mark.parametrize("level", [-2, 1.5, "3", True])
def test_a_delay_level_is_a_number(level: int) -> None:
    with pytest.raises(UsageError, match="delay level"):
        Outcome.later(level)


_FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
_LAST = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
_TIME = ConsumeFromWhere.CONSUME_FROM_TIMESTAMP


@pytest.mark.parametrize(
    ("where", "topic", "start"),
    [
        (_LAST, "T", Ask.MAX_OFFSET),
        (_LAST, "%RETRY%g", At(0)),
        (_FIRST, "T", At(0)),
        (_FIRST, "%RETRY%g", At(0)),
        (_TIME, "T", Ask.OFFSET_BY_TIME),
        (_TIME, "%RETRY%g", Ask.MAX_OFFSET),
        (ConsumeFromWhere.CONSUME_FROM_MAX_OFFSET, "T", Ask.MAX_OFFSET),
    ],
)
def test_a_group_without_a_position_starts_by_its_setting(
    where: ConsumeFromWhere, topic: str, start: At | Ask
) -> None:
    assert start_of(where, topic, None) == start
    assert start_of(where, topic, -1) == start
    assert start_of(where, topic, 7) == At(7)
    assert start_of(where, topic, 0) == At(0)


def _queue(*offsets: int, size: int = 1) -> ProcessQueue:
    queue = ProcessQueue(0)
    messages = [
        ReceivedMessage(topic="T", body=b"x" * size, queue_offset=offset) for offset in offsets
    ]
    queue.add(messages, (offsets[-1] if offsets else -1) + 1)
    return queue


def test_pulling_pauses_above_each_limit_and_not_at_it() -> None:
    limits = FlowLimits(count_max=2, size_mib_max=1, span_max=10)
    assert limits.exceeded(_queue()) is None
    assert limits.exceeded(_queue(0, 10)) is None
    assert "3 messages" in str(limits.exceeded(_queue(0, 1, 2)))
    assert "span of 11" in str(limits.exceeded(_queue(0, 11)))
    assert limits.exceeded(_queue(0, size=1 << 20)) is None
    assert "MiB" in str(limits.exceeded(_queue(0, size=(1 << 20) + 1)))


def test_orderly_consumption_has_no_span() -> None:
    limits = FlowLimits(count_max=2, size_mib_max=1, span_max=None)
    assert limits.exceeded(_queue(0, 5000)) is None


def test_limits_of_a_topic_are_shared_by_the_queues_that_are_held() -> None:
    queue_limits = FlowLimits(count_max=1000, size_mib_max=100, span_max=2000)
    assert limits_of_queue(queue_limits, queue_count=4) == queue_limits
    shared = limits_of_queue(
        queue_limits, topic_count_max=1001, topic_size_mib_max=3, queue_count=4
    )
    assert shared == FlowLimits(count_max=250, size_mib_max=1, span_max=2000)
    assert limits_of_queue(queue_limits, topic_count_max=10, queue_count=0).count_max == 10
