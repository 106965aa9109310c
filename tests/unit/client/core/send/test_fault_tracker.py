from __future__ import annotations

import pytest

from cometmq.client.core.send.fault_tracker import SERIES, FaultTracker
from cometmq.client.core.send.queue_selector import RoundRobin
from cometmq.model.message_queue import MessageQueue


def _queues(*brokers: str) -> list[MessageQueue]:
    return [
        MessageQueue(broker_name=broker, queue_id=queue_id, topic="T")
        for broker in brokers
        for queue_id in range(2)
    ]


@pytest.mark.parametrize(
    ("series", "latency_ms", "closed_ms"),
    [
        ("4.9", 0, 0),
        ("4.9", 549, 0),
        ("4.9", 550, 30_000),
        ("4.9", 1000, 60_000),
        ("4.9", 2999.9, 120_000),
        ("4.9", 3000, 180_000),
        ("4.9", 99_999, 600_000),
        ("4.9", 30_000, 600_000),
        ("5", 549, 0),
        ("5", 550, 2_000),
        ("5", 1800, 5_000),
        ("5", 3000, 6_000),
        ("5", 5000, 10_000),
        ("5", 15_000, 30_000),
        ("5", 10_000, 10_000),
    ],
)
def test_latency_closes_a_broker_by_the_table(
    series: str, latency_ms: float, closed_ms: int
) -> None:
    assert SERIES[series].closed_for(latency_ms) == closed_ms


@pytest.mark.parametrize(("series", "closed_ms"), [("4.9", 600_000), ("5", 10_000)])
def test_a_failure_closes_its_broker_for_long(series: str, closed_ms: int) -> None:
    tracker = FaultTracker(SERIES[series])
    tracker.failed("a", 1, 1000, is_reachable=False)
    assert not tracker.is_open("a", 1000 + closed_ms - 1)
    assert tracker.is_open("a", 1000 + closed_ms)
    assert tracker.is_open("never heard of", 1000)


@pytest.mark.parametrize("series", ["4.9", "5"])
def test_a_closed_broker_is_passed_over_until_its_time(series: str) -> None:
    tracker = FaultTracker(SERIES[series])
    robin = RoundRobin()
    tracker.failed("a", 1, 0, is_reachable=True)
    chosen = {tracker.select(_queues("a", "b"), robin, 5000).broker_name for _ in range(8)}
    assert chosen == {"b"}
    later = {tracker.select(_queues("a", "b"), robin, 600_000).broker_name for _ in range(8)}
    assert later == {"a", "b"}


def test_a_quick_answer_opens_a_broker_in_4_9_only() -> None:
    for series, is_open in (("4.9", True), ("5", False)):
        tracker = FaultTracker(SERIES[series])
        tracker.answered("a", 20_000, 0)
        tracker.answered("a", 1, 10)
        assert tracker.is_open("a", 20) is is_open


def test_4_9_falls_back_on_the_better_half() -> None:
    tracker = FaultTracker(SERIES["4.9"])
    for latency_ms, broker in ((1000, "a"), (2000, "b"), (3000, "c"), (4000, "d")):
        tracker.answered(broker, latency_ms, 0)
    robin = RoundRobin()
    chosen = {tracker.select(_queues("a", "b", "c", "d"), robin, 1).broker_name for _ in range(10)}
    assert chosen == {"a", "b"}


def test_4_9_forgets_a_least_bad_broker_without_queues() -> None:
    tracker = FaultTracker(SERIES["4.9"])
    tracker.answered("gone", 1000, 0)
    tracker.failed("a", 5000, 0, is_reachable=True)
    assert tracker.select(_queues("a"), RoundRobin(), 1).broker_name == "a"
    assert tracker.is_open("gone", 1)


def test_5_prefers_a_slow_broker_to_an_unreachable_one() -> None:
    tracker = FaultTracker(SERIES["5"])
    tracker.failed("dead", 1, 0, is_reachable=False)
    tracker.failed("slow", 1, 0, is_reachable=True)
    robin = RoundRobin()
    queues = _queues("dead", "slow")
    assert {tracker.select(queues, robin, 1).broker_name for _ in range(6)} == {"slow"}
    # Nothing but the dead one beside the one that just failed: another broker is still the better try.
    assert tracker.select(queues, robin, 1, "slow").broker_name == "dead"
