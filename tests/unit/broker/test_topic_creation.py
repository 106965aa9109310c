from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cometmq.broker.config.config_slices import IdentityConfig, TopicsConfig
from cometmq.broker.topic_creation import TopicCreation, inherited_topic, system_topics
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.names import SYSTEM_GROUPS
from cometmq.model.topic import TopicConfig
from cometmq.protocol.refusal import Refused
from cometmq.store.meta.groups import GroupTable
from cometmq.store.meta.topics import TopicTable
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles

MakePeer = Callable[..., Any]
IDENTITY = IdentityConfig(cluster_name="C49", broker_name="b49")


class Tables:
    def __init__(self, config: TopicsConfig | None = None) -> None:
        clock = self.clock = FakeClock()
        files = FaultyFiles(clock)
        self.topics = TopicTable("/config", files, clock)
        self.groups = GroupTable("/config", files, clock)
        self.topics.load()
        self.groups.load()
        self.created: list[str] = []
        self.creation = TopicCreation(
            self.topics, self.groups, config or TopicsConfig(), clock=clock
        )
        self.creation.created.append(lambda topic: self.created.append(topic.topic_name))
        self.creation.auto_created.append(
            lambda topic: self.created.append("auto:" + topic.topic_name)
        )


def test_the_table_of_system_topics() -> None:
    found = {
        config.topic_name: (config.write_queue_nums, config.perm)
        for config in system_topics(IDENTITY, TopicsConfig())
    }
    assert found == {
        "SELF_TEST_TOPIC": (1, 6),
        "TBW102": (8, 7),
        "BenchmarkTest": (1024, 6),
        "C49": (16, 7),
        "b49": (1, 7),
        "OFFSET_MOVED_EVENT": (1, 6),
        "SCHEDULE_TOPIC_XXXX": (18, 6),
        "C49_REPLY_TOPIC": (1, 6),
    }


def test_switches_of_the_system_topics() -> None:
    config = TopicsConfig(
        auto_create_topic=False, cluster_topic=False, broker_topic=False, trace_topic=True
    )
    found = {one.topic_name: one.perm for one in system_topics(IDENTITY, config)}
    assert "TBW102" not in found
    assert (found["C49"], found["b49"], found["RMQ_SYS_TRACE_TOPIC"]) == (1, 1, 6)


def test_a_broker_named_like_its_cluster_has_the_cluster_topic() -> None:
    identity = IdentityConfig(cluster_name="same", broker_name="same")
    (found,) = [one for one in system_topics(identity, TopicsConfig()) if one.topic_name == "same"]
    assert found.write_queue_nums == 16


def test_a_start_adds_only_what_is_missing() -> None:
    tables = Tables()
    tables.topics.put(TopicConfig(topic_name="TBW102", write_queue_nums=2, read_queue_nums=2))
    tables.creation.create_system_entries(IDENTITY)
    parent = tables.topics.get("TBW102")
    assert parent is not None
    assert parent.write_queue_nums == 2
    assert set(SYSTEM_GROUPS) <= set(tables.groups.names())
    version = tables.topics.version
    tables.creation.create_system_entries(IDENTITY)
    assert tables.topics.version == version


def test_topics_with_messages_but_without_an_entry_get_one() -> None:
    tables = Tables()
    tables.topics.put(TopicConfig(topic_name="Known", read_queue_nums=1, write_queue_nums=1))
    counts = {"Known": 1, "Lost": 2, "Wide": 9, "RMQ_SYS_TRANS_OP_HALF_TOPIC": 1}
    tables.creation.create_lost_entries(counts)
    assert {name: one.queue_count for name, one in tables.topics.all().items()} == {
        "Known": 1,
        "Lost": 4,
        "Wide": 9,
    }


def test_a_child_takes_after_its_parent() -> None:
    parent = TopicConfig(topic_name="TBW102", write_queue_nums=8, perm=7)
    child = inherited_topic("T", parent, 4, 1)
    assert child is not None
    assert (child.read_queue_nums, child.write_queue_nums, child.perm) == (4, 4, 6)
    assert child.topic_sys_flag == 1
    assert inherited_topic("T", TopicConfig(topic_name="P", perm=6), 4) is None
    assert inherited_topic("T", parent, 0) is None
    assert inherited_topic("T", parent, -5) is None


def test_a_send_creates_after_any_topic_that_may_be_inherited(make_peer: MakePeer) -> None:
    tables = Tables()
    peer = make_peer()
    tables.creation.create_system_entries(IDENTITY)
    assert tables.creation.for_send("T", "nowhere", 4, peer, is_unit=False) is None
    assert tables.creation.for_send("T", "SELF_TEST_TOPIC", 4, peer, is_unit=False) is None
    made = tables.creation.for_send("T", "C49", 4, peer, is_unit=True)
    assert made is not None
    assert (made.write_queue_nums, made.topic_sys_flag) == (4, 1)
    assert tables.created == ["T", "auto:T"]
    assert tables.creation.for_send("T", "TBW102", 8, peer, is_unit=False) is made


def test_retry_topics_follow_their_group() -> None:
    tables = Tables()
    tables.creation.retry_topic(SubscriptionGroupConfig(group_name="none", retry_queue_nums=0))
    assert tables.created == []
    tables.creation.retry_topic(SubscriptionGroupConfig(group_name="CG", retry_queue_nums=3))
    tables.creation.retry_topic(SubscriptionGroupConfig(group_name="CG", retry_queue_nums=3))
    assert tables.created == ["%RETRY%CG"]
    made = tables.topics.get("%RETRY%CG")
    assert made is not None
    assert (made.read_queue_nums, made.perm) == (3, 6)


class TestLimits:
    """What comes into being by use is bounded; each refusal names the setting."""

    def send(self, tables: Tables, peer: Any, topic: str) -> TopicConfig | None:
        return tables.creation.for_send(topic, "TBW102", 4, peer, is_unit=False)

    def with_limits(self, **limits: Any) -> Tables:
        tables = Tables(TopicsConfig(**limits))
        tables.creation.create_system_entries(IDENTITY)
        return tables

    def test_topics_in_all(self, make_peer: MakePeer) -> None:
        tables = self.with_limits(topics_max=10)
        while len(tables.topics) < 10:
            assert self.send(tables, make_peer(), f"T{len(tables.topics)}")
        with pytest.raises(Refused, match="autoCreateTopicsMax") as refused:
            self.send(tables, make_peer(), "another")
        assert "mqadmin updateTopic" in refused.value.remark
        assert self.send(tables, make_peer(), "T9"), "a topic that is there is no matter of limits"
        with pytest.raises(Refused, match="autoCreateTopicsMax"):
            self.send(tables, make_peer(), "%RETRY%x")

    def test_groups_in_all(self, make_peer: MakePeer) -> None:
        tables = self.with_limits(groups_max=15)
        while len(tables.groups) < 15:
            assert tables.creation.group(f"g{len(tables.groups)}", make_peer())
        with pytest.raises(Refused, match="autoCreateGroupsMax"):
            tables.creation.group("another", make_peer())
        assert tables.creation.group("g14", make_peer())

    def test_by_one_connection(self, make_peer: MakePeer) -> None:
        tables = self.with_limits(creations_per_connection_max=2)
        one, two = make_peer(1), make_peer(2)
        assert self.send(tables, one, "A")
        assert tables.creation.group("g", one)
        for _ in range(2):
            with pytest.raises(Refused, match="autoCreatePerConnectionMax"):
                self.send(tables, one, "B")
            with pytest.raises(Refused, match="autoCreatePerConnectionMax"):
                tables.creation.group("h", one)
        assert self.send(tables, two, "B")

    def test_in_a_time(self, make_peer: MakePeer, caplog: pytest.LogCaptureFixture) -> None:
        tables = self.with_limits(creations_per_second_max=2)
        for number in range(20):
            assert self.send(tables, make_peer(), f"T{number}")
        with pytest.raises(Refused, match="autoCreatePerSecondMax") as refused:
            self.send(tables, make_peer(), "now")
        assert refused.value.code == 2
        assert "creation refused peer=127.0.0.1:40000" in caplog.text
        tables.clock.advance(1.0)
        assert self.send(tables, make_peer(), "later")
        assert self.send(tables, make_peer(), "later too")
        with pytest.raises(Refused):
            self.send(tables, make_peer(), "still too many")

    def test_limits_can_be_changed(self, make_peer: MakePeer) -> None:
        tables = self.with_limits(topics_max=0)
        with pytest.raises(Refused):
            self.send(tables, make_peer(), "T")
        tables.creation.apply(TopicsConfig())
        assert self.send(tables, make_peer(), "T")
