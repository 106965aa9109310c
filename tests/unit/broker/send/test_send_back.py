"""Messages that consumers give back, and sends to retry topics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cometmq.broker.broker_stats import DELAY
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.messages.message_id import parse_offset_id
from cometmq.model.messages.record import Record, decode_record
from cometmq.model.names import SCHEDULE_TOPIC
from cometmq.model.topic import TopicConfig
from cometmq.protocol.command import Command

MakeRig = Callable[..., Any]


def sent(rig: Any, topic: str = "T", **fields: str) -> Record:
    reply = rig.send(topic, b"hello", **fields)
    return decode_record(rig.store.record_at(parse_offset_id(reply.ext["msgId"]).physical_offset))


def back(rig: Any, record: Record, group: str = "CG", level: int = 0, **fields: str) -> Command:
    reply = rig.ask(
        36,
        {"offset": str(record.physical_offset), "group": group, "delayLevel": str(level)} | fields,
    )
    assert isinstance(reply, Command)
    return reply


def waiting(rig: Any, level: int) -> list[Record]:
    found = rig.records(SCHEDULE_TOPIC, level - 1)
    assert isinstance(found, list)
    return found


def test_a_message_is_tried_again_by_its_group(rig: Any) -> None:
    record = sent(rig, f="1")
    reply = back(rig, record)
    assert (reply.code, reply.ext) == (0, None)
    (again,) = waiting(rig, 3)
    assert again.properties == {
        "UNIQ_KEY": "K1",
        "TAGS": "A",
        "CLUSTER": "C49",
        "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "true",
        "RETRY_TOPIC": "T",
        "ORIGIN_MESSAGE_ID": record.offset_id,
        "WAIT": "false",
        "DELAY": "3",
        "REAL_TOPIC": "%RETRY%CG",
        "REAL_QID": "0",
    }
    assert again.reconsume_times == 1
    for name in ("body", "flag", "sys_flag", "born_timestamp", "born_host"):
        assert getattr(again, name) == getattr(record, name), name
    assert rig.topics.get("%RETRY%CG").perm == 6
    assert rig.stats.view("SNDBCK_PUT_NUMS", "T@CG").minute.sum == 1
    assert rig.topics.get("%DLQ%CG") is None, "the first dead letter creates it"


def test_sixteen_retries_and_then_a_dead_letter_all_under_one_id(rig: Any) -> None:
    record = origin = sent(rig)
    levels: list[int] = []
    for _ in range(16):
        assert back(rig, record).code == 0
        level = next(n for n in range(1, 19) if len(waiting(rig, n)) > levels.count(n))
        levels.append(level)
        rig.advance(7200)
        record = rig.records("%RETRY%CG")[-1]
        assert record.reconsume_times == len(levels)
        assert record.properties["UNIQ_KEY"] == "K1"
        assert record.properties["ORIGIN_MESSAGE_ID"] == origin.offset_id
        assert record.properties["RETRY_TOPIC"] == "T"
    assert levels == list(range(3, 19))
    assert rig.topics.get("%DLQ%CG") is None
    assert back(rig, record).code == 0
    (letter,) = rig.records("%DLQ%CG")
    assert letter.body == b"hello"
    assert letter.reconsume_times == 17
    assert letter.properties["DELAY"] == "0"
    assert letter.properties["UNIQ_KEY"] == "K1"
    assert letter.properties["ORIGIN_MESSAGE_ID"] == origin.offset_id
    assert letter.properties["RETRY_TOPIC"] == "T"
    config = rig.topics.get("%DLQ%CG")
    assert (config.read_queue_nums, config.write_queue_nums, config.perm) == (1, 1, 6)
    assert rig.created[-1] == "%DLQ%CG"


def test_dead_letters_of_all_topics_of_a_group_are_in_one_place(rig: Any) -> None:
    for topic in ("T", "U"):
        assert back(rig, sent(rig, topic), level=-1).code == 0
    assert [r.properties["RETRY_TOPIC"] for r in rig.records("%DLQ%CG")] == ["T", "U"]
    assert back(rig, sent(rig), group="Other", level=-1).code == 0
    assert len(rig.records("%DLQ%Other")) == 1


@pytest.mark.parametrize(("wanted", "level"), [(1, 1), (5, 5), (18, 18), (99, 18)])
def test_the_consumer_may_name_the_level(rig: Any, wanted: int, level: int) -> None:
    back(rig, sent(rig), level=wanted)
    (again,) = waiting(rig, level)
    assert again.properties["DELAY"] == str(level)


class TestLimit:
    def test_it_is_the_groups(self, rig: Any) -> None:
        rig.groups.put(SubscriptionGroupConfig(group_name="CG", retry_max_times=2))
        back(rig, sent(rig, j="1"))
        assert rig.topics.get("%DLQ%CG") is None
        back(rig, sent(rig, j="2"))
        assert len(rig.records("%DLQ%CG")) == 1

    def test_a_request_that_brings_its_own_wins(self, rig: Any) -> None:
        rig.groups.put(SubscriptionGroupConfig(group_name="CG", retry_max_times=2))
        back(rig, sent(rig, j="2"), maxReconsumeTimes="5")
        assert rig.topics.get("%DLQ%CG") is None
        back(rig, sent(rig, j="1"), maxReconsumeTimes="1")
        assert len(rig.records("%DLQ%CG")) == 1

    def test_none_at_all_means_a_dead_letter_at_once(self, rig: Any) -> None:
        back(rig, sent(rig), maxReconsumeTimes="0")
        assert len(rig.records("%DLQ%CG")) == 1

    def test_that_of_an_old_client_does_not_count(self, rig: Any) -> None:
        record = sent(rig, j="1")
        ext = {
            "offset": str(record.physical_offset),
            "group": "CG",
            "delayLevel": "0",
            "maxReconsumeTimes": "1",
        }
        (reply,) = rig.dispatch(Command(code=36, ext=ext, version=120, opaque=7))
        assert reply.code == 0
        assert rig.topics.get("%DLQ%CG") is None


class TestRefusals:
    @pytest.mark.parametrize("offset", [99_999_999, 1, -1])
    def test_where_no_message_begins(self, rig: Any, offset: int) -> None:
        sent(rig)
        reply = rig.ask(36, {"offset": str(offset), "group": "CG", "delayLevel": "0"})
        assert (reply.code, reply.remark) == (1, f"look message by offset failed, {offset}")

    def test_an_unknown_group(self, make_rig: MakeRig) -> None:
        rig = make_rig(autoCreateSubscriptionGroup="false")
        reply = back(rig, sent(rig))
        assert (reply.code, reply.remark) == (26, "subscription group not exist, CG")

    def test_a_name_that_cannot_be_a_topic(self, rig: Any) -> None:
        record = sent(rig)
        assert back(rig, record, group="../x").code == 1
        assert back(rig, record, group="g" * 125).code == 1
        assert rig.store.topics() == ["T"]

    def test_a_broker_or_a_retry_topic_without_write_permission(self, rig: Any) -> None:
        record = sent(rig)
        rig.topics.put(TopicConfig(topic_name="%RETRY%CG", perm=4))
        assert back(rig, record).code == 16
        rig.live.update({"brokerPermission": "4"})
        reply = back(rig, record, group="Other")
        assert (reply.code, reply.remark) == (
            16,
            "the broker[127.0.0.1] sending message is forbidden",
        )

    def test_a_group_without_retry_queues_loses_it_as_with_rocketmq(self, rig: Any) -> None:
        rig.groups.put(SubscriptionGroupConfig(group_name="CG", retry_queue_nums=0))
        assert back(rig, sent(rig)).code == 0
        assert rig.store.topics() == ["T"]

    def test_a_full_disk(self, rig: Any) -> None:
        record = sent(rig)
        rig.store.close()
        assert back(rig, record).code in (1, 14)


def test_in_sync_flush_the_answer_waits_for_the_disk(make_rig: MakeRig) -> None:
    rig = make_rig(flushDiskType="SYNC_FLUSH")
    rig.send("T", i="WAIT\x01false")
    with pytest.raises(AssertionError, match="no answer"):
        rig.ask(36, {"offset": "0", "group": "CG", "delayLevel": "0"})
    rig.store.flush()
    (reply,) = rig.peer.take()
    assert (reply.code, reply.opaque) == (0, 7)


class TestPlainSendsToARetryTopic:
    """What a client does when the broker of a message is gone: it sends the message to another one."""

    TEXT = (
        "UNIQ_KEY\x01K1\x02RETRY_TOPIC\x01T\x02ORIGIN_MESSAGE_ID\x01AB\x02DELAY\x015\x02TAGS\x01A"
    )

    def test_it_waits_like_any_delayed_message(self, rig: Any) -> None:
        reply = rig.send("%RETRY%CG", i=self.TEXT, j="2", l="16")
        assert (reply.code, reply.ext["queueId"]) == (0, "0")
        (again,) = waiting(rig, 5)
        assert again.reconsume_times == 2
        assert again.properties["REAL_TOPIC"] == "%RETRY%CG"
        assert rig.stats.topic_put("%RETRY%CG").count == 0
        assert rig.stats.topic_put(SCHEDULE_TOPIC, DELAY).count == 1
        rig.advance(60)
        assert len(rig.records("%RETRY%CG")) == 1
        assert rig.stats.topic_put("%RETRY%CG", DELAY).count == 1

    @pytest.mark.parametrize(("times", "limit"), [("16", "16"), ("3", "2"), ("0", "0")])
    def test_tried_too_often_it_is_a_dead_letter_at_once(
        self, rig: Any, times: str, limit: str
    ) -> None:
        reply = rig.send("%RETRY%CG", b"hello", i=self.TEXT, j=times, l=limit)
        assert (reply.code, reply.ext["queueId"], reply.ext["queueOffset"]) == (0, "0", "0")
        (letter,) = rig.records("%DLQ%CG")
        assert letter.offset_id == reply.ext["msgId"]
        assert letter.reconsume_times == int(times)
        assert letter.properties["DELAY"] == "0"
        assert letter.properties["UNIQ_KEY"] == "K1"
        assert letter.properties["ORIGIN_MESSAGE_ID"] == "AB"
        assert rig.store.topics() == ["%DLQ%CG"]
        assert rig.stats.topic_put("%DLQ%CG").count == 1

    def test_without_a_limit_it_is_the_groups(self, rig: Any) -> None:
        rig.groups.put(SubscriptionGroupConfig(group_name="CG", retry_max_times=2))
        rig.send("%RETRY%CG", j="1")
        assert rig.topics.get("%DLQ%CG") is None
        rig.send("%RETRY%CG", j="2")
        assert len(rig.records("%DLQ%CG")) == 1
