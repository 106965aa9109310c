"""Bodies that are made to be expensive: what they cost is bounded before they are read, and grows as they do."""

from __future__ import annotations

import struct
import time
import tracemalloc
import zlib
from collections.abc import Callable
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cometmq.base.errors import RemoteProtocolError
from cometmq.model.topic import TopicConfig
from cometmq.protocol import fastjson, fastjson_reader
from cometmq.protocol.bodies.heartbeat import HeartbeatData, decode_heartbeat
from cometmq.protocol.bodies.lock import LockBatchBody
from cometmq.protocol.bodies.pop import decode_bit_set, encode_bit_set
from cometmq.protocol.bodies.register import (
    RegisterBrokerBody,
    decode_register_body,
    encode_register_body,
)
from cometmq.protocol.bodies.route import decode_route
from cometmq.protocol.bodies.topic import TopicConfigTable

MIB = 1 << 20
INTEGER_KEYS = b"1:2,"


def text(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def count(number: int) -> bytes:
    return struct.pack(">i", number)


def check_refusal(read: Callable[[], object], *, peak_bytes: int, match: str) -> None:
    """Cheap, at most so many bytes taken at once, and with this reason."""
    tracemalloc.start()
    started = time.process_time()
    try:
        with pytest.raises(RemoteProtocolError) as refusal:
            read()
        seconds, peak = time.process_time() - started, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < peak_bytes
    assert seconds < 1
    refusal.match(match)


@pytest.mark.parametrize(
    "plain",
    [
        text(b"{" + INTEGER_KEYS * (4 * MIB) + b"}"),
        text(b"{}") + count(1) + text(b"T 1 1 6 S {" + INTEGER_KEYS * (4 * MIB) + b"}"),
        text(b"{}") + count(0) + text(b"[]") + count(1) + text(b"{" + INTEGER_KEYS * (4 * MIB)),
    ],
    ids=["data version", "attributes", "mapping"],
)
def test_a_registration_that_unpacks_to_a_thousand_times_its_size_is_refused(plain: bytes) -> None:
    packed = zlib.compress(plain, 9)
    assert len(packed) < len(plain) // 900

    def read() -> None:
        decode_register_body(packed, compressed=True, version=479)

    check_refusal(read, peak_bytes=8 * MIB, match="more than 1[0-9]* unpacked")


def test_a_compressed_registration_names_its_topics_before_they_are_read() -> None:
    plain = text(b"{}") + count(200_001) + text(b"a 1 1 6 S") * 200_001 + text(b"[]")
    with pytest.raises(RemoteProtocolError, match="200001 topics, where at most 200000"):
        decode_register_body(plain_packed(plain), compressed=True, version=479)


def plain_packed(plain: bytes) -> bytes:
    """Stored, not shrunk: as large as what is in it."""
    return zlib.compress(plain, 0)


@pytest.mark.parametrize("compressed", [True, False])
def test_the_topics_of_a_registration_are_counted(compressed: bool) -> None:
    names = [f"T{number}" for number in range(11)]
    body = RegisterBrokerBody(
        topics=TopicConfigTable(
            topic_config_table={name: TopicConfig(topic_name=name) for name in names}
        )
    )
    sent = encode_register_body(body, compressed=compressed, version=479)
    for topics_max in (11, 12):
        read = decode_register_body(sent, compressed=compressed, version=479, topics_max=topics_max)
        assert list(read.topics.topic_config_table) == names
    with pytest.raises(RemoteProtocolError, match="11 topics, where at most 10"):
        decode_register_body(sent, compressed=compressed, version=479, topics_max=10)


@pytest.mark.parametrize("compressed", [True, False])
def test_a_hundred_thousand_topics_of_rocketmq_5_are_taken(compressed: bool) -> None:
    attributes = {"message.type": "NORMAL"}
    prefix = "com.example.department.team.service.environment.production.orders"
    topics = {
        name: TopicConfig(topic_name=name, attributes=attributes)
        for name in (f"{prefix}-{number}" for number in range(100_000))
    }
    body = encode_register_body(
        RegisterBrokerBody(topics=TopicConfigTable(topic_config_table=topics)),
        compressed=compressed,
        version=479,
    )
    read = decode_register_body(body, compressed=compressed, version=479)
    assert read.topics.topic_config_table.keys() == topics.keys()


@pytest.mark.parametrize(
    ("read", "body"),
    [
        (decode_heartbeat, b"{" + INTEGER_KEYS * (4 * MIB) + b"}"),
        (decode_heartbeat, b"[" + b"[]," * (5 * MIB) + b"[]]"),
        (decode_route, b"{" + INTEGER_KEYS * (4 * MIB) + b"}"),
        (decode_route, b"[" + b"[]," * (5 * MIB) + b"[]]"),
    ],
    ids=["heartbeat of keys", "heartbeat of lists", "route of keys", "route of lists"],
)
def test_sixteen_megabytes_are_refused_unread(read: Callable[[bytes], object], body: bytes) -> None:
    check_refusal(
        lambda: read(body), peak_bytes=MIB, match="bytes, where at most 4194304 are taken"
    )


@pytest.mark.parametrize(
    "body",
    [
        b"{" + INTEGER_KEYS * (MIB - 1) + b"}",
        b"[" + b"[]," * (MIB - 1) + b"[]]",
        b'{"clientID":"c","producerDataSet":[' + b'{"groupName":""},' * 99_999 + b"1]}",
    ],
)
def test_the_values_of_a_body_are_counted_before_it_is_read(body: bytes) -> None:
    check_refusal(lambda: decode_heartbeat(body), peak_bytes=10 * MIB, match="values, where")


@pytest.mark.parametrize(
    ("unit", "head"),
    [(b'\\"', b'{"'), (b'"\\"', b"{"), (b", ", b"{"), (b"1 ", b"{"), (b"{ ", b""), (b"\\", b'"')],
)
def test_reading_looks_at_no_character_again_and_again(unit: bytes, head: bytes) -> None:
    """At this size each was fast or took minutes: 60,000 bytes of the first took 18 s."""
    body = head + unit * (256 * 1024 // len(unit))
    started = time.process_time()
    with pytest.raises(RemoteProtocolError):
        fastjson.decode(body, HeartbeatData)
    assert time.process_time() - started < 2


def test_an_object_key_inside_an_object_key_is_refused() -> None:
    """Quoted once per level, 100 bytes would become gigabytes."""
    with pytest.raises(RemoteProtocolError, match="a key that is no object"):
        fastjson.loads(b"{" * 34 + b"1:2" + b"}:3" * 33 + b"}")
    assert fastjson.loads('{{"a":1}:{{"b":2}:3}}') == {'{"a":1}': {'{"b":2}': 3}}


QUEUE = '{"topic":"t","queueId":1,"brokerName":"b"}'
GARBAGE = st.lists(
    st.sampled_from([*"{}[],:\"'\\1-e.a \n", '"a"', "{}:", '{"$ref":"$"}', "null", "é", QUEUE]),
    max_size=60,
).map("".join)


READ_VALUE = fastjson_reader._Reader.value


@settings(max_examples=300)
@given(GARBAGE, st.booleans())
def test_each_value_is_read_once(piece: str, queue_keys: bool) -> None:
    """Counted, not timed: a text twice as long has twice as many values at most."""
    for garbage in (piece, f"[{piece * 20}]", f"{{{piece * 20}}}"):
        with patch.object(fastjson_reader._Reader, "value", autospec=True) as counted:
            counted.side_effect = READ_VALUE
            try:
                fastjson_reader.read(garbage.encode(), queue_keys=queue_keys)
            except RemoteProtocolError:
                pass
        assert counted.call_count <= 1 + sum(map(garbage.count, ",[{"))


@settings(max_examples=300)
@given(GARBAGE, st.integers(1, 20))
def test_what_is_read_holds_no_more_values_than_were_allowed(piece: str, values_max: int) -> None:
    limits = fastjson.Limits(10_000, values_max)
    try:
        value = fastjson.loads(piece, limits=limits)
    except RemoteProtocolError:
        return
    assert _values(value) <= values_max or "$ref" in piece


def _values(value: object) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(_values, value.values()))
    return 1 + sum(map(_values, value)) if isinstance(value, list) else 1


def test_escapes_of_a_text_that_is_not_strict_are_counted() -> None:
    assert fastjson.loads(b"['" + b"\\q" * 1000 + b"']") == ["q" * 1000]
    with pytest.raises(RemoteProtocolError, match="more than 500000 backslashes"):
        fastjson.loads(b"['" + b"\\q" * 500_001 + b"']")


def test_references_that_lead_to_one_another_end() -> None:
    chain = ",".join(f'"a{at}":{{"$ref":"$.a{at + 1}"}}' for at in range(1000))
    started = time.process_time()
    with pytest.raises(RemoteProtocolError, match="lead to one another"):
        fastjson.loads("{" + chain + "}")
    long_path = "$" + ".a" * 40_000
    refs = ",".join([f'{{"$ref":"{long_path}"}}'] * 50)
    with pytest.raises(RemoteProtocolError, match="too many values"):
        fastjson.loads('{"a":' * 100 + "1" + "}" * 99 + ',"b":[' + refs + "]}")
    assert time.process_time() - started < 2


def test_lists_of_a_heartbeat_have_bounds_of_their_own() -> None:
    groups = b",".join(b'{"groupName":"g"}' for _ in range(8193))
    with pytest.raises(RemoteProtocolError, match=r"length <= 8192.*producerDataSet"):
        decode_heartbeat(b'{"clientID":"c","producerDataSet":[' + groups + b"]}")


def test_a_lock_request_holds_as_many_queues_as_a_topic_may() -> None:
    def body(queues: int) -> bytes:
        queue = b'{"brokerName":"b","queueId":%d,"topic":"t"}'
        listed = b",".join(queue % number for number in range(queues))
        return b'{"clientId":"c","consumerGroup":"g","mqSet":[' + listed + b"]}"

    assert len(LockBatchBody.decode(body(65_536)).mq_set) == 65_536
    with pytest.raises(RemoteProtocolError, match=r"length <= 65536.*mqSet"):
        LockBatchBody.decode(body(65_537))
    with pytest.raises(RemoteProtocolError, match="values, where at most 327680"):
        LockBatchBody.decode(body(200_000))


def test_an_acknowledgement_names_as_many_messages_as_a_pop_gives() -> None:
    assert decode_bit_set(encode_bit_set(range(0, 90_000, 90))) == list(range(0, 90_000, 90))
    with pytest.raises(RemoteProtocolError, match="at most 1024 messages, got 1025"):
        decode_bit_set(encode_bit_set(range(1025)))
