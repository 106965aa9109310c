"""The record layout: the self-check vector of RocketMQ, both versions, IPv6, damage."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from cometmq.model.address import pack_host
from cometmq.model.messages.record import (
    BadRecord,
    body_crc,
    decode_record,
    decode_records,
    encode_blank,
    encode_record,
    peek,
)
from cometmq.model.messages.record_layout import (
    BLANK_BYTES,
    FIXED_BYTES_V4,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
)

BORN = pack_host("127.0.0.1", 54321)
STORE = pack_host("127.0.0.1", 10911)


def record(**changes: Any) -> bytes:
    fields: dict[str, Any] = {
        "topic": b"TopicTest",
        "queue_id": 0,
        "queue_offset": 0,
        "physical_offset": 0,
        "flag": 0,
        "sys_flag": 0,
        "born_timestamp": 1700000000000,
        "born_host": BORN,
        "store_timestamp": 1700000000001,
        "store_host": STORE,
        "reconsume_times": 0,
        "prepared_transaction_offset": 0,
        "body": b"Hello RocketMQ",
        "properties": b"TAGS\x01TagA\x02",
    }
    return encode_record(**(fields | changes))


def test_bytes_are_those_of_java() -> None:
    raw = record()
    assert len(raw) == 124
    assert raw.startswith(bytes.fromhex("0000007cdaa320a769c865ed"))
    assert hashlib.md5(raw).hexdigest() == "c88a725a99829c2a87c4d41fa62ae504"


def test_crc_of_a_body() -> None:
    assert body_crc(b"Hello RocketMQ") == 1774740973


def test_every_field_comes_back() -> None:
    read = decode_record(
        record(
            queue_id=3,
            queue_offset=1 << 40,
            physical_offset=1 << 50,
            flag=-5,
            reconsume_times=2,
            prepared_transaction_offset=77,
        )
    )
    assert (read.topic, read.queue_id, read.queue_offset) == ("TopicTest", 3, 1 << 40)
    assert (read.physical_offset, read.flag, read.reconsume_times) == (1 << 50, -5, 2)
    assert (read.prepared_transaction_offset, read.body) == (77, b"Hello RocketMQ")
    assert (read.born_address, read.store_address) == ("127.0.0.1:54321", "127.0.0.1:10911")
    assert read.properties == {"TAGS": "TagA"}
    assert read.offset_id == "7F00000100002A9F0004000000000000"
    assert (read.magic, read.size_bytes) == (MAGIC_V1, 124)


def test_ipv6_hosts_take_twelve_bytes_more_each() -> None:
    born, store = pack_host("fd00::2", 1), pack_host("::1", 2)
    raw = record(born_host=born, store_host=store, sys_flag=48)
    assert len(raw) == 124 + 24
    read = decode_record(raw)
    assert (read.born_address, read.store_address) == ("[fd00::2]:1", "[::1]:2")


def test_host_bits_must_agree_with_hosts() -> None:
    with pytest.raises(AssertionError):
        record(born_host=pack_host("::1", 1))
    with pytest.raises(AssertionError):
        record(sys_flag=32)


def test_a_topic_above_127_bytes_makes_a_version_2_record() -> None:
    raw = record(topic=b"t" * 200)
    assert peek(raw, 0) == (len(raw), MAGIC_V2)
    assert decode_record(raw).topic == "t" * 200


def test_an_empty_record_has_its_fixed_size() -> None:
    assert len(record(topic=b"", body=b"", properties=b"")) == FIXED_BYTES_V4


def test_records_behind_each_other() -> None:
    raw = record(queue_offset=1) + record(queue_offset=2, body=b"")
    assert [read.queue_offset for read in decode_records(raw)] == [1, 2]
    assert decode_record(memoryview(raw), 124).queue_offset == 2


def test_a_blank_fills_the_rest_of_a_file() -> None:
    assert len(encode_blank(100)) == BLANK_BYTES
    assert peek(encode_blank(100), 0) == (100, MAGIC_BLANK)


@pytest.mark.parametrize("length", [0, 3, 47, 60, 83, 100, 123])
def test_a_record_cut_off_is_bad(length: int) -> None:
    with pytest.raises(BadRecord):
        decode_record(record()[:length])


def damaged(at: int, value: bytes) -> bytes:
    raw = bytearray(record())
    raw[at : at + len(value)] = value
    return bytes(raw)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (damaged(4, b"\x00"), "magic"),
        (damaged(0, b"\xff\xff\xff\xff"), "record of -1 bytes"),
        (damaged(0, b"\x00\x00\x00\x10"), "record of 16 bytes"),
        (damaged(0, b"\x00\x00\x00\x7d") + b"\x00", "parts of 124 bytes in a record of 125"),
        (damaged(28, b"\xff" * 8), "physical offset -1"),
        (damaged(84, b"\x7f\xff\xff\xff"), "body of 2147483647 bytes"),
        (damaged(84, b"\xff\xff\xff\xff"), "body of -1 bytes"),
        (damaged(90, b"\x00"), "checksum"),
        (damaged(102, b"\xff"), "parts of"),
        (damaged(103, b"\xff"), "UTF-8"),
        (damaged(36, b"\x00\x00\x00\x10"), "record|parts|body"),
    ],
)
def test_damage_is_named(raw: bytes, message: str) -> None:
    with pytest.raises(BadRecord, match=message):
        decode_record(raw)


def test_the_checksum_may_be_left_unchecked() -> None:
    assert decode_record(damaged(90, b"\x00"), check_crc=False).body != b"Hello RocketMQ"
