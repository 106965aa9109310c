"""Creating, changing, deleting and listing topics and groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

TOPIC = {
    "topic": "Orders",
    "defaultTopic": "TBW102",
    "readQueueNums": "4",
    "writeQueueNums": "2",
    "perm": "6",
    "topicFilterType": "SINGLE_TAG",
    "topicSysFlag": "0",
    "order": "true",
}


def test_a_topic_is_stored_and_announced_before_the_answer(rig: Any) -> None:
    reply = rig.ask(17, TOPIC)
    assert (reply.code, reply.remark) == (0, "not set any response code")
    config = rig.topics.get("Orders")
    assert (config.read_queue_nums, config.write_queue_nums, config.order) == (4, 2, True)
    assert rig.announced == ["Orders"]


def test_setting_a_topic_as_it_is_leaves_the_version(rig: Any) -> None:
    rig.ask(17, TOPIC)
    version = rig.topics.version
    assert rig.ask(17, TOPIC).code == 0
    assert rig.topics.version == version
    assert rig.announced == ["Orders", "Orders"]


@pytest.mark.parametrize(
    ("field", "value", "remark"),
    [
        ("topic", "../x", "contains illegal characters"),
        ("topic", "a" * 128, "longer than topic max length 127"),
        ("topic", " ", "is blank"),
        ("topic", "TBW102", "conflict with system topic"),
        ("topic", "C49", "conflict with system topic"),
        ("topic", "rmq_sys_x", "conflict with system topic"),
        ("readQueueNums", "-1", "readQueueNums must be between"),
        ("writeQueueNums", "100000000", "writeQueueNums must be between"),
        ("perm", "77", "perm must be between"),
        ("topicFilterType", "TAGS", "topicFilterType must be one of"),
        ("readQueueNums", "many", "CreateTopicHeader"),
        ("attributes", "+color=red", "unsupported key: color"),
        ("attributes", "message.type=FIFO", "expected \\+key=value or -key"),
        ("attributes", "+message.type=LOUD", "does not fit"),
        ("attributes", "-message.type", "is not set"),
    ],
)
def test_a_bad_topic_is_refused(rig: Any, field: str, value: str, remark: str) -> None:
    reply = rig.ask(17, {**TOPIC, field: value})
    assert reply.code == 1
    with pytest.raises(AssertionError, match=remark):
        raise AssertionError(reply.remark)
    assert rig.topics.names() == []
    assert rig.announced == []


def test_attributes_are_set_changed_and_taken_away(rig: Any) -> None:
    rig.ask(17, {**TOPIC, "attributes": "+message.type=FIFO,+queue.type=SimpleCQ"})
    rig.ask(17, {**TOPIC, "attributes": "+message.type=DELAY"})
    attributes = rig.topics.get("Orders").attributes
    assert attributes == {"message.type": "DELAY", "queue.type": "SimpleCQ"}
    assert rig.ask(17, {**TOPIC, "attributes": "-queue.type"}).code == 1
    rig.ask(17, {**TOPIC, "attributes": "-message.type"})
    assert rig.topics.get("Orders").attributes == {"queue.type": "SimpleCQ"}


def test_a_list_of_topics_is_stored_whole_or_not_at_all(rig: Any) -> None:
    good = {"topicName": "A", "readQueueNums": 2, "writeQueueNums": 2}
    bad = {"topicName": "B/..", "readQueueNums": 2, "writeQueueNums": 2}
    assert rig.ask(18, None, {"topicConfigList": [good, bad]}).code == 1
    assert rig.topics.names() == []
    assert rig.ask(18, None, {"topicConfigList": [good, {**good, "topicName": "B"}]}).code == 0
    assert rig.announced == ["A", "B"]
    assert rig.ask(18, None, b"[").code == 1


def test_a_deleted_topic_takes_queues_offsets_and_figures_with_it(rig: Any) -> None:
    rig.topic("Orders")
    rig.add("Orders", 0, 1, 2)
    rig.offsets.commit("g", "Orders", 0, 1)
    rig.stats.topic_put("Orders").add_all([1] * 5)
    assert rig.ask(215, {"topic": "Orders"}).code == 0
    assert rig.topics.names() == []
    assert rig.store.queue_ids("Orders") == []
    assert rig.offsets.query("g", "Orders", 0) == -1
    assert rig.ask(315, {"statsName": "TOPIC_PUT_NUMS", "statsKey": "Orders"}).code == 1


def test_a_deleted_topic_takes_along_what_is_to_be_popped_again(rig: Any) -> None:
    for topic in ("Orders", "%RETRY%g_Orders", "%RETRY%g+Orders", "%RETRY%g_Others"):
        rig.topic(topic)
        rig.add(topic, 0, 1)
        rig.offsets.commit("g", topic, 0, 1)
    assert rig.ask(215, {"topic": "Orders"}).code == 0
    assert rig.topics.names() == ["%RETRY%g_Others"]
    assert rig.store.queue_ids("%RETRY%g_Orders") == []
    assert rig.offsets.topics_of("g") == {"%RETRY%g_Others"}


@pytest.mark.parametrize("topic", ["", "SELF_TEST_TOPIC", "b49", "C49_REPLY_TOPIC", "../x"])
def test_what_must_stay_is_not_deleted(rig: Any, topic: str) -> None:
    rig.topic("b49", 1)
    assert rig.ask(215, {"topic": topic}).code == 1
    assert rig.topics.names() == ["b49"]


def test_an_unknown_topic_is_deleted_without_complaint(rig: Any) -> None:
    assert rig.ask(215, {"topic": "Nowhere"}).code == 0


def test_all_topics_come_at_once_or_page_by_page(rig: Any) -> None:
    for name in ("c", "a", "b"):
        rig.topic(name, 1)
    reply = rig.ask(21)
    assert reply.ext == {"totalTopicNum": "3"}
    everything = rig.json(21)
    assert set(everything["topicConfigTable"]) == {"a", "b", "c"}
    assert everything["dataVersion"]["counter"] == 3

    def page(start: int, version: str) -> list[str]:
        ext = {"topicSeq": str(start), "dataVersion": version, "maxTopicNum": "2"}
        return list(rig.json(21, ext)["topicConfigTable"])

    version = f'{{"counter":3,"timestamp":{rig.clock.wall_ms()}}}'
    assert page(0, "") == ["a", "b"]
    assert page(2, version) == ["c"]
    assert page(2, '{"counter":2,"timestamp":1}') == ["a", "b"]
    assert page(5, version) == []


def test_one_topic(rig: Any) -> None:
    rig.topic("a", 3)
    assert rig.json(351, {"topic": "a"})["readQueueNums"] == 3
    reply = rig.ask(351, {"topic": "b"})
    assert (reply.code, reply.remark) == (17, "No topic in this broker. topic: b")


def test_a_slave_changes_nothing(make_rig: Callable[..., Any]) -> None:
    rig = make_rig(brokerRole="SLAVE", brokerId="1")
    assert rig.ask(17, TOPIC).code == 1
    assert rig.ask(215, {"topic": "Orders"}).code == 1
    assert rig.ask(200, None, {"groupName": "g"}).code == 1
    assert rig.ask(207, {"groupName": "g"}).code == 1


def test_groups_are_created_changed_and_deleted(rig: Any) -> None:
    assert rig.ask(200, None, {"groupName": "g", "retryMaxTimes": 3}).code == 0
    assert rig.groups.get("g").retry_max_times == 3
    rig.offsets.commit("g", "t", 0, 9)
    assert rig.ask(207, {"groupName": "g"}).code == 0
    assert (rig.groups.names(), rig.offsets.query("g", "t", 0)) == ([], 9)
    assert rig.ask(207, {"groupName": "g", "removeOffset": "true"}).code == 0
    assert rig.offsets.query("g", "t", 0) == -1


@pytest.mark.parametrize("name", ["bad group!", "", "../x", "a" * 256])
def test_a_group_with_an_illegal_name_is_refused(rig: Any, name: str) -> None:
    assert rig.ask(200, None, {"groupName": name}).code == 29
    assert rig.ask(225, None, {"groupConfigList": [{"groupName": "ok"}, {"groupName": name}]}).code
    assert rig.ask(352, {"group": name}).code == 29
    assert rig.groups.names() == []


def test_all_groups(rig: Any) -> None:
    rig.ask(225, None, {"groupConfigList": [{"groupName": "g2"}, {"groupName": "g1"}]})
    assert set(rig.json(201)["subscriptionGroupTable"]) == {"g1", "g2"}
    ext = {"groupSeq": "0", "dataVersion": "", "maxGroupNum": "1"}
    reply = rig.ask(201, ext)
    assert reply.ext == {"totalGroupNum": "2"}
    assert list(rig.json(201, ext)["subscriptionGroupTable"]) == ["g1"]


def test_asking_for_an_unknown_group_creates_it_if_allowed(make_rig: Callable[..., Any]) -> None:
    rig = make_rig()
    assert rig.json(352, {"group": "g"})["groupName"] == "g"
    assert rig.groups.get("g") is not None
    rig.live.update({"autoCreateSubscriptionGroup": "false"})
    assert rig.ask(352, {"group": "h"}).code == 26
    assert rig.json(352, {"group": "g"})["retryMaxTimes"] == 16


def test_reading_can_be_forbidden_and_allowed_again(rig: Any) -> None:
    ext = {"group": "g", "topic": "t"}
    assert rig.json(353, ext) == {"group": "g", "topic": "t", "readable": True}
    assert rig.json(353, {**ext, "readable": "false"})["readable"] is False
    assert rig.json(201)["forbiddenTable"] == {"g": {"t": 4}}
    assert not rig.groups.is_readable("g", "t")
    assert rig.json(353, {**ext, "readable": "true"})["readable"] is True
    assert rig.json(201)["forbiddenTable"] == {}


def test_how_many_queues_a_topic_may_have_is_a_setting(rig: Any) -> None:
    large = {**TOPIC, "readQueueNums": "65537"}
    assert "between 0 and 65536, not 65537 (topicQueuesMax)" in rig.ask(17, large).remark
    rig.live.update({"topicQueuesMax": "65537"})
    assert rig.ask(17, large).code == 0


@pytest.mark.parametrize("count", [-1, 65_537, 2**31 - 1])
def test_a_group_has_as_many_retry_queues_as_a_topic_may_have(rig: Any, count: int) -> None:
    body = f'{{"groupName":"g","retryQueueNums":{count}}}'.encode()
    reply = rig.ask(200, body=body)
    assert reply.code != 0
    assert (
        f"retryQueueNums must be between 0 and 65536 (topicQueuesMax), not {count}" in reply.remark
    )
    assert rig.groups.get("g") is None
