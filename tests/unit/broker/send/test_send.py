from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.broker.rig import send_command

from cometmq.model.java_hash import java_hash
from cometmq.model.messages.message_id import parse_offset_id
from cometmq.model.topic import TopicConfig
from cometmq.protocol.command import FLAG_ONEWAY, Command

MakeRig = Callable[..., Any]
REGION = {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}


def oneway(topic: str) -> Command:
    command = send_command(topic)
    command.flag = FLAG_ONEWAY
    return command


def refused(reply: Any) -> tuple[int, str]:
    """Code and remark of a refusal, which carries the region like every answer to a send."""
    assert reply.ext == REGION
    return reply.code, reply.remark


@pytest.mark.parametrize(
    ("settings", "properties"),
    [
        ({"storedProperties": "4.9"}, "UNIQ_KEY=K1 TAGS=A CLUSTER=C49"),
        ({}, "MSG_REGION=DefaultRegion UNIQ_KEY=K1 CLUSTER=C49 TAGS=A WAIT=true TRACE_ON=true "),
        (
            {"regionId": "north", "traceOn": "false"},
            "MSG_REGION=north UNIQ_KEY=K1 CLUSTER=C49 TAGS=A WAIT=true TRACE_ON=false ",
        ),
    ],
)
def test_properties_are_stored_as_the_settings_say(
    make_rig: Any, settings: dict[str, str], properties: str
) -> None:
    rig = make_rig(**settings)
    assert rig.send("T").code == 0
    (record,) = rig.records("T", 0)
    assert record.properties_text == properties.replace("=", "\x01").replace(" ", "\x02")


def test_a_change_of_the_settings_counts_for_the_next_message(rig: Any) -> None:
    rig.live.update({"traceOn": "false"})
    assert rig.send("T").code == 0
    rig.live.update({"storedProperties": "4.9"})
    assert rig.send("T").code == 0
    first, second = rig.records("T", 0)
    assert first.properties["TRACE_ON"] == "false"
    assert second.properties == {"UNIQ_KEY": "K1", "TAGS": "A", "CLUSTER": "C49"}


@pytest.mark.parametrize("is_batch", [False, True])
def test_a_message_that_was_popped_elsewhere_is_stored_without_its_handle(
    rig: Any, is_batch: bool
) -> None:
    """With it a consumer would acknowledge the copy at the broker where the first one was popped."""
    text = "UNIQ_KEY\x01K1\x02POP_CK\x010 1700000000123 60000 1 0 elsewhere 0 7\x02TAGS\x01A"
    if is_batch:
        assert rig.batch("T", (b"copy", text)).code == 0
    else:
        assert rig.send("T", b"copy", i=text).code == 0
    (record,) = rig.records("T", 0)
    assert (record.body, record.properties["UNIQ_KEY"]) == (b"copy", "K1")
    assert "POP_CK" not in record.properties


def test_a_message_is_stored_as_it_was_sent(rig: Any) -> None:
    reply = rig.send("T", b"hello", e="2", f="769", j="3")
    assert reply.code == 0
    place = parse_offset_id(reply.ext.pop("msgId"))
    assert place.address == "127.0.0.1:32010"
    assert reply.ext == {"queueId": "2", "queueOffset": "0", **REGION}
    (record,) = rig.records("T", 2)
    assert record.physical_offset == place.physical_offset
    assert (record.body, record.flag, record.sys_flag, record.reconsume_times) == (
        b"hello",
        9,
        769,
        3,
    )
    assert record.born_timestamp == 1_700_000_000_123
    assert record.born_address == "127.0.0.1:40000"
    assert rig.store.entries("T", 2, 0, 1)[0][2] == java_hash("A")
    assert rig.stats.topic_put("T").count == 1


def test_the_long_form_is_the_same_request(rig: Any) -> None:
    reply = rig.ask(
        10,
        {
            "producerGroup": "PG",
            "topic": "T",
            "defaultTopic": "TBW102",
            "defaultTopicQueueNums": "4",
            "queueId": "1",
            "sysFlag": "0",
            "bornTimestamp": "1700000000123",
            "flag": "0",
            "properties": "KEYS\x01one two",
        },
        b"hello",
    )
    assert (reply.code, reply.ext["queueId"]) == (0, "1")
    assert rig.store.query("T", "two", 10, 0, 1 << 62).parts


def test_what_an_old_client_leaves_out_is_filled_in(rig: Any) -> None:
    reply = rig.ask(310, {"b": "T", "c": "TBW102", "e": "0", "g": "1"}, b"hello")
    assert reply.code == 0


def test_a_new_topic_is_created_after_the_default_one(rig: Any) -> None:
    rig.send("New", d="4")
    config = rig.topics.get("New")
    assert (config.read_queue_nums, config.write_queue_nums, config.perm) == (4, 4, 6)
    rig.send("Wide", d="100")
    assert rig.topics.get("Wide").write_queue_nums == 8
    assert rig.created == rig.auto_created == ["New", "Wide"]
    rig.send("New")
    assert len(rig.created) == 2


def test_without_auto_creation_the_topic_must_exist(make_rig: MakeRig) -> None:
    rig = make_rig(autoCreateTopicEnable="false")
    code, remark = refused(rig.send("New"))
    assert code == 17
    assert remark.startswith("topic[New] not exist, apply first please!")
    rig.topics.put(TopicConfig(topic_name="New"))
    assert rig.send("New").code == 0


def test_auto_creation_can_be_switched_off_while_running(rig: Any) -> None:
    rig.live.update({"autoCreateTopicEnable": "false"})
    assert rig.send("New").code == 17


def test_a_deleted_or_changed_topic_is_noticed_at_once(rig: Any) -> None:
    rig.send("T", e="3")
    rig.topics.put(TopicConfig(topic_name="T", read_queue_nums=2, write_queue_nums=2))
    assert rig.send("T", e="3").code == 1
    rig.topics.remove("T")
    rig.live.update({"autoCreateTopicEnable": "false"})
    assert rig.send("T").code == 17


@pytest.mark.parametrize(
    ("topic", "code", "text"),
    [
        ("", 1, "The specified topic is blank."),
        ("../x", 1, "illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"),
        ("a/b", 1, "illegal characters"),
        ("T\x00", 1, "illegal characters"),
        ("t" * 128, 1, "longer than topic max length 127"),
        ("SCHEDULE_TOPIC_XXXX", 16, "Sending message to topic[SCHEDULE_TOPIC_XXXX] is forbidden."),
        ("RMQ_SYS_TRANS_HALF_TOPIC", 16, "is forbidden."),
    ],
)
def test_names_that_are_not_for_clients(rig: Any, topic: str, code: int, text: str) -> None:
    found, remark = refused(rig.send(topic))
    assert found == code
    assert text in remark
    assert rig.created == []
    assert rig.store.max_physical == 0


def test_a_queue_the_topic_does_not_have(rig: Any) -> None:
    code, remark = refused(rig.send("T", e="4"))
    assert code == 1
    assert remark == (
        "request queueId[4] is illegal, TopicConfig [topicName=T, readQueueNums=4, writeQueueNums=4, "
        "perm=RW-, topicFilterType=SINGLE_TAG, topicSysFlag=0, order=false] Producer: 127.0.0.1:40000"
    )


def test_a_negative_queue_means_any(rig: Any) -> None:
    queues = {rig.send("T", e="-1").ext["queueId"] for _ in range(60)}
    assert queues == {"0", "1", "2", "3"}


def test_a_field_of_the_wrong_type_is_an_error_of_the_request(rig: Any) -> None:
    for fields in ({"e": "abc"}, {"e": str(1 << 31)}, {"g": "1.5"}, {"g": str(1 << 63)}):
        assert rig.send("T", **fields).code == 1
    assert rig.ask(310, None).code == 1
    assert rig.store.max_physical == 0


def test_a_body_above_the_limit(rig: Any) -> None:
    assert rig.send("T", b"x" * 8192).code == 0
    code, remark = refused(rig.send("T", b"x" * 8193))
    assert code == 13
    assert "msg body length limit 8192B" in remark
    assert rig.stats.put_failed_count == 1


def test_a_one_way_send_is_stored_and_not_answered(rig: Any) -> None:
    assert rig.dispatch(oneway("T")) == []
    assert rig.dispatch(oneway("../x")) == []
    assert rig.store.max_offset("T", 0) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"f": "4"},
        {"f": "8"},
        {"i": "TRAN_MSG\x01true\x02DELAY\x013", "f": "4"},
        {"i": "TRAN_MSG\x01true\x02TIMER_DELAY_SEC\x015"},
    ],
)
def test_what_needs_a_service_we_do_not_have_is_not_stored(
    rig: Any, fields: dict[str, str]
) -> None:
    code, _ = refused(rig.send("T", **fields))
    assert code == 13
    assert rig.store.max_physical == 0


def test_a_client_cannot_lie_about_the_kind_of_its_address(rig: Any) -> None:
    assert rig.send("T", f="48").code == 0
    (record,) = rig.records("T")
    assert record.sys_flag == 0


def test_a_full_disk_says_so_and_recovers(rig: Any) -> None:
    rig.send("T")
    free = rig.files.space("/store")[1]
    rig.files.set_free(0)
    stored = 0
    while (reply := rig.send("T", b"x" * 8000)).code == 0:
        stored += 1
        assert stored < 100, "the disk never fills"
    code, remark = refused(reply)
    assert code == 14
    assert remark.startswith("service not available now: no space")
    rig.files.set_free(free)
    assert rig.send("T").code == 0
    assert rig.store.max_offset("T", 0) == stored + 2


def test_a_closed_store_is_not_available(rig: Any) -> None:
    rig.store.close()
    assert refused(rig.send("T"))[0] == 14


def test_sends_before_the_time_of_acceptance(make_rig: MakeRig) -> None:
    rig = make_rig(startAcceptSendRequestTimeStamp="1700000060000")
    assert rig.send("T").code == 1
    rig.clock.advance(60)
    assert rig.send("T").code == 0


def test_a_broker_without_write_permission_refuses_ordered_topics(make_rig: MakeRig) -> None:
    rig = make_rig(brokerPermission="4")
    rig.topics.put(TopicConfig(topic_name="Ordered", order=True))
    assert refused(rig.send("Ordered")) == (16, "the broker sending message is forbidden")
    assert rig.send("T").code == 0


def test_a_slave_takes_no_sends(make_rig: MakeRig) -> None:
    rig = make_rig(brokerRole="SLAVE", brokerId="1")
    assert refused(rig.send("T"))[0] == 14


def test_a_sync_master_without_slaves_says_that_nobody_has_a_copy(make_rig: MakeRig) -> None:
    rig = make_rig(brokerRole="SYNC_MASTER")
    reply = rig.send("T")
    assert (reply.code, reply.ext["queueOffset"]) == (11, "0")
    assert rig.send("T", i="WAIT\x01false").code == 0


def test_retry_topics_have_one_queue_and_need_their_group(make_rig: MakeRig) -> None:
    rig = make_rig(autoCreateSubscriptionGroup="false")
    assert rig.send("%RETRY%CG").code == 26
    rig.live.update({"autoCreateSubscriptionGroup": "true"})
    assert rig.send("%RETRY%CG").code == 0
    assert rig.topics.get("%RETRY%CG").write_queue_nums == 1
    assert rig.groups.get("CG") is not None


class TestSyncFlush:
    def test_the_answer_waits_for_the_disk(self, make_rig: MakeRig) -> None:
        rig = make_rig(flushDiskType="SYNC_FLUSH")
        assert rig.send("T") is None
        assert rig.send("T") is None
        rig.store.flush()
        replies = rig.peer.take()
        assert [(reply.code, reply.ext["queueOffset"]) for reply in replies] == [(0, "0"), (0, "1")]

    def test_a_slow_disk_is_a_timeout_and_not_a_loss(self, make_rig: MakeRig) -> None:
        rig = make_rig(flushDiskType="SYNC_FLUSH", syncFlushTimeout="5000")
        rig.send("T")
        rig.clock.advance(4.9)
        rig.store.watermarks.flushed.expire(rig.clock.monotonic())
        assert rig.peer.take() == []
        rig.clock.advance(0.2)
        rig.store.watermarks.flushed.expire(rig.clock.monotonic())
        (reply,) = rig.peer.take()
        assert (reply.code, reply.ext["queueOffset"]) == (10, "0")
        rig.store.flush()
        assert rig.peer.take() == []

    def test_who_does_not_wait_is_answered_at_once(self, make_rig: MakeRig) -> None:
        rig = make_rig(flushDiskType="SYNC_FLUSH")
        assert rig.send("T", i="WAIT\x01false").code == 0
        assert rig.dispatch(oneway("T")) == []
        assert rig.core.durability.waiting == 0

    def test_too_many_waiting_sends_are_an_overload(self, make_rig: MakeRig) -> None:
        rig = make_rig(flushDiskType="SYNC_FLUSH", sendThreadPoolQueueCapacity="1")
        assert rig.send("T") is None
        code, remark = refused(rig.send("T"))
        assert code == 2
        assert remark == "[OVERLOAD]system busy, start flow control for a while"
        rig.store.flush()
        assert rig.store.max_offset("T", 0) == 1

    def test_a_batch_waits_for_its_last_record(self, make_rig: MakeRig) -> None:
        rig = make_rig(flushDiskType="SYNC_FLUSH")
        rig.send("T", i="WAIT\x01false")
        rig.store.flush()
        with pytest.raises(AssertionError, match="no answer"):
            rig.batch("T", (b"1", ""), (b"2", ""))
        rig.store.flush()
        (reply,) = rig.peer.take()
        assert (reply.code, reply.ext["queueOffset"]) == (0, "1")


class TestBatch:
    def test_each_message_of_a_batch_is_a_record_of_its_own(self, rig: Any) -> None:
        rig.send("T")
        reply = rig.batch(
            "T",
            (b"1", "UNIQ_KEY\x01K1\x02WAIT\x01true"),
            (b"2", "UNIQ_KEY\x01K2"),
            i="WAIT\x01true",
        )
        assert (reply.code, reply.ext["queueOffset"], reply.ext["queueId"]) == (0, "1", "0")
        records = rig.records("T")[1:]
        assert [record.body for record in records] == [b"1", b"2"]
        assert [record.queue_offset for record in records] == [1, 2]
        assert reply.ext["msgId"].split(",") == [record.offset_id for record in records]
        assert records[1].properties_text == "UNIQ_KEY\x01K2"
        assert rig.stats.topic_put("T").count == 3

    def test_the_flag_of_a_plain_send_means_a_batch_too(self, rig: Any) -> None:
        reply = rig.send("T", b"", m="true")
        assert (reply.code, reply.remark) == (13, "a batch without messages")

    @pytest.mark.parametrize("body", [b"\x00", b"\x00\x00\x00\x16" * 9, b"\xff" * 40])
    def test_a_broken_batch_stores_nothing(self, rig: Any, body: bytes) -> None:
        assert rig.send("T", body, m="true").code == 1
        assert rig.store.max_physical == 0

    def test_one_delayed_message_refuses_them_all(self, rig: Any) -> None:
        assert rig.batch("T", (b"1", ""), (b"2", "DELAY\x013")).code == 13
        assert rig.store.max_physical == 0

    def test_bounds(self, make_rig: MakeRig) -> None:
        rig = make_rig(batchMessagesMax="2")
        assert rig.batch("T", *[(b"1", "")] * 2).code == 0
        assert rig.batch("T", *[(b"1", "")] * 3).code == 13
        assert rig.batch("T", (b"x" * 8192, "")).code == 13

    def test_no_batches_for_retry_topics(self, rig: Any) -> None:
        reply = rig.batch("%RETRY%CG", (b"1", ""))
        assert reply.code == 13
        assert reply.remark == "batch request does not support retry group %RETRY%CG"
