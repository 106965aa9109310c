"""How far groups are behind: online, offline, popping, and with positions that cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from cometmq.broker.metrics import lag as lag_module
from cometmq.broker.metrics.lag import ConsumerLag
from cometmq.broker.pop.pops import PopRequest
from cometmq.model.topic import TopicConfig
from cometmq.monitor.family import Histogram
from cometmq.store.log.new_messages import NewMessage
from cometmq.testing.memory_broker import MemoryBroker


@pytest.fixture
def rig() -> MemoryBroker:
    broker = MemoryBroker()
    broker.core.topics.put(TopicConfig(topic_name="T", read_queue_nums=2, write_queue_nums=2))
    return broker


def put(rig: MemoryBroker, count: int, topic: str = "T", queue_id: int = 0) -> None:
    for _ in range(count):
        rig.core.store.put(
            NewMessage(topic=topic, queue_id=queue_id, body=b"x", properties=b"", tags_code=0)
        )


def lag_of(rig: MemoryBroker) -> ConsumerLag:
    core = rig.core
    return ConsumerLag(
        store=core.store,
        topics=core.topics,
        offsets=core.offsets,
        clients=core.clients,
        pops=rig.rooms.pop.pops,
        clock=core.clock,
    )


def read(rig: MemoryBroker, lag: ConsumerLag | None = None) -> dict[str, dict[Any, float]]:
    lag = lag or lag_of(rig)
    for _ in lag.prepare():
        pass
    found: dict[str, dict[Any, float]] = {}
    for family in lag.families:
        for labels, value in family.read():
            assert not isinstance(value, Histogram)
            found.setdefault(family.page_name, {})[labels] = value
    return found


G_T = ("g", "false", "false", "T")


def test_an_offline_group_is_as_far_behind_as_its_positions_say(rig: MemoryBroker) -> None:
    put(rig, 10)
    rig.clock.advance(5)
    put(rig, 3, queue_id=1)
    rig.core.offsets.commit("g", "T", 0, 4)
    rig.core.offsets.commit("g", "T", 1, 0)
    rig.core.offsets.pulled("g", "T", 0, 7)
    rig.clock.advance(2)
    found = read(rig)
    assert found["rocketmq_consumer_lag_messages"] == {G_T: 9.0}
    assert found["rocketmq_consumer_inflight_messages"] == {G_T: 3.0}
    assert found["rocketmq_consumer_ready_messages"] == {G_T: 6.0}
    assert found["rocketmq_consumer_lag_latency_milliseconds"] == {G_T: 7000.0}
    assert found["rocketmq_consumer_queueing_latency_milliseconds"] == {G_T: 7000.0}
    assert found["cometmq_consumer_worst_queue_lag_messages"] == {G_T: 6.0}
    assert found["cometmq_consumer_group_clients"] == {("g",): 0.0}


def test_who_has_read_all_is_not_late(rig: MemoryBroker) -> None:
    put(rig, 3)
    rig.core.offsets.commit("g", "T", 0, 3)
    rig.clock.advance(60)
    found = read(rig)
    assert found["rocketmq_consumer_lag_messages"] == {G_T: 0.0}
    assert found["rocketmq_consumer_lag_latency_milliseconds"] == {G_T: 0.0}


def test_a_position_beyond_the_end_or_in_no_topic_counts_nothing(rig: MemoryBroker) -> None:
    put(rig, 3)
    rig.core.offsets.commit("g", "T", 0, 99)
    rig.core.offsets.commit("g", "Gone", 0, 1)
    assert read(rig)["rocketmq_consumer_lag_messages"] == {G_T: 0.0}


def test_popped_messages_are_in_flight_until_they_are_acknowledged(rig: MemoryBroker) -> None:
    put(rig, 10)
    pops = rig.rooms.pop.pops
    request = PopRequest(group="g", topic="T", places=[("T", 0)], count_max=4, invisible_ms=60_000)
    pops.pop(request)
    rig.clock.advance(3)
    found = read(rig)
    assert found["rocketmq_consumer_lag_messages"] == {G_T: 10.0}
    assert found["rocketmq_consumer_inflight_messages"] == {G_T: 4.0}
    assert found["rocketmq_consumer_ready_messages"] == {G_T: 6.0}
    assert found["rocketmq_consumer_lag_latency_milliseconds"] == {G_T: 3000.0}


def test_a_retry_topic_of_pops_counts_under_the_topic_itself(rig: MemoryBroker) -> None:
    rig.core.topics.put(TopicConfig(topic_name="%RETRY%g_T", read_queue_nums=1, write_queue_nums=1))
    put(rig, 2, topic="%RETRY%g_T")
    rig.core.offsets.commit("g", "%RETRY%g_T", 0, 0)
    labels = ("g", "true", "false", "T")
    assert read(rig)["rocketmq_consumer_lag_messages"] == {labels: 2.0}


def test_a_result_is_kept_for_a_moment(rig: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    lag = lag_of(rig)
    rig.core.offsets.commit("g", "T", 0, 0)
    assert read(rig, lag)["rocketmq_consumer_lag_messages"] == {G_T: 0.0}
    put(rig, 1)
    assert read(rig, lag)["rocketmq_consumer_lag_messages"] == {G_T: 0.0}
    monkeypatch.setattr(lag_module, "KEPT_SECONDS", 0.0)
    assert read(rig, lag)["rocketmq_consumer_lag_messages"] == {G_T: 1.0}


def test_many_groups_and_queues_come_in_steps(rig: MemoryBroker) -> None:
    wide = TopicConfig(topic_name="Wide", read_queue_nums=1000, write_queue_nums=1000)
    rig.core.topics.put(wide)
    for number in range(100):
        rig.core.offsets.commit(f"g{number}", "T", 0, 0)
    rig.core.offsets.commit("g", "Wide", 0, 0)
    steps = sum(1 for _ in lag_of(rig).prepare())
    assert steps >= 100 // lag_module.PAIRS_AT_ONCE + 1000 // lag_module.QUEUES_AT_ONCE
