"""Typed headers: which texts are which values, in Java's reading."""

from __future__ import annotations

import pytest

from cometmq.base.errors import RemoteProtocolError
from cometmq.protocol.fields import Header, Int32, Int64, decode_fields, encode_fields, wire
from cometmq.protocol.headers.admin import DeleteGroupHeader
from cometmq.protocol.headers.auth import UpdateAclConfigHeader
from cometmq.protocol.headers.namesrv import RegisterBrokerHeader
from cometmq.protocol.headers.pull import PullMessageHeader
from cometmq.protocol.headers.query import QueryMessageHeader
from cometmq.protocol.headers.send import SendMessageHeader, SendMessageHeaderV2


class Sample(Header):
    queue_id: Int32
    offset: Int64 = 0
    topic: str | None = None
    is_force: bool = False
    name: str | None = wire("bname", default=None)


def read(**ext: str) -> Sample:
    return decode_fields(Sample, {"queueId": "1", **ext})


def test_names_are_camel_case_unless_said_otherwise() -> None:
    header = read(offset="5", topic="T", isForce="true", bname="b")
    assert header == Sample(queue_id=1, offset=5, topic="T", is_force=True, name="b")
    assert encode_fields(header) == {
        "queueId": "1",
        "offset": "5",
        "topic": "T",
        "isForce": "true",
        "bname": "b",
    }


def test_none_is_left_out_and_false_is_not() -> None:
    assert encode_fields(Sample(queue_id=0)) == {"queueId": "0", "offset": "0", "isForce": "false"}


def test_unknown_fields_are_ignored() -> None:
    assert read(ReqT="0", ns="x") == Sample(queue_id=1)


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("TRUE", True), ("False", False), ("", False), ("yes", False), ("t", False)],
)
def test_any_text_is_a_boolean(text: str, value: bool) -> None:
    assert read(isForce=text).is_force is value


@pytest.mark.parametrize(("text", "value"), [("+5", 5), ("007", 7), ("-0", 0), ("-12", -12)])
def test_integers_as_java_writes_and_reads_them(text: str, value: int) -> None:
    assert read(offset=text).offset == value


def test_texts_that_look_like_something_else_stay_texts() -> None:
    for text in ("null", "5", "true", "", " "):
        assert read(topic=text).topic == text


def test_an_empty_integer_counts_as_absent() -> None:
    assert read(offset="").offset == 0
    with pytest.raises(RemoteProtocolError, match="queueId"):
        read(queueId="")


@pytest.mark.parametrize(
    "text",
    ["abc", "1.5", " 5", "5 ", "0x10", "1_000", "٣", "2147483648", "-2147483649", "9" * 5000, "+"],
)
def test_what_is_no_int_is_refused(text: str) -> None:
    with pytest.raises(RemoteProtocolError, match=r"Sample.*queueId"):
        read(queueId=text)


def test_bounds_of_the_two_integer_sizes() -> None:
    assert read(queueId="2147483647").queue_id == (1 << 31) - 1
    assert read(offset="-9223372036854775808").offset == -(1 << 63)
    with pytest.raises(RemoteProtocolError, match="offset"):
        read(offset="9223372036854775808")


def test_a_missing_field_is_named() -> None:
    with pytest.raises(RemoteProtocolError, match=r"PullMessageHeader.*consumerGroup"):
        decode_fields(PullMessageHeader, None)


def test_send_v2_reads_its_letters() -> None:
    header = decode_fields(
        SendMessageHeaderV2,
        {
            "a": "group",
            "b": "topic",
            "c": "TBW102",
            "d": "8",
            "e": "2",
            "f": "4",
            "g": "1700000000000",
            "h": "9",
            "i": "KEYS\x01k\x02",
            "j": "3",
            "k": "true",
            "l": "16",
            "m": "true",
            "n": "broker-a",
        },
    )
    assert header == SendMessageHeaderV2(
        producer_group="group",
        topic="topic",
        default_topic="TBW102",
        default_topic_queue_nums=8,
        queue_id=2,
        sys_flag=4,
        born_timestamp=1700000000000,
        flag=9,
        properties="KEYS\x01k\x02",
        reconsume_times=3,
        unit_mode=True,
        max_reconsume_times=16,
        batch=True,
        broker_name="broker-a",
    )


def test_both_send_headers_have_the_same_fields() -> None:
    assert SendMessageHeader.__struct_fields__ == SendMessageHeaderV2.__struct_fields__


def test_a_send_without_default_topic_is_read() -> None:
    header = decode_fields(SendMessageHeaderV2, {"b": "T", "e": "0", "g": "1"})
    assert (header.topic, header.default_topic, header.properties) == ("T", "", "")


def test_surprising_wire_names() -> None:
    keys = decode_fields(
        QueryMessageHeader,
        {
            "topic": "T",
            "key": "k",
            "maxNum": "32",
            "beginTimestamp": "0",
            "endTimestamp": "1",
            "_UNIQUE_KEY_QUERY": "true",
        },
    )
    assert keys.is_unique_key
    assert "bodyCrc32" in RegisterBrokerHeader.__struct_encode_fields__


@pytest.mark.parametrize("key", ["cleanOffset", "removeOffset"])
def test_group_deletion_reads_the_switch_of_both_versions(key: str) -> None:
    header = decode_fields(DeleteGroupHeader, {"groupName": "g", key: "true"})
    assert header.wants_offsets_removed
    assert not decode_fields(DeleteGroupHeader, {"groupName": "g"}).wants_offsets_removed


def test_a_secret_is_not_printed() -> None:
    assert "hidden" not in repr(UpdateAclConfigHeader(access_key="a", secret_key="hidden"))
