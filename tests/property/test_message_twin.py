"""The compiled reader of messages against the Python one: the same messages and errors, whatever the bytes are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.compat.test_golden_frames import RECORD_BODIES, VERSIONS, samples

from cometmq.model.flags import COMPRESSION_LZ4, COMPRESSION_ZLIB, COMPRESSION_ZSTD
from cometmq.model.messages import received_message
from cometmq.model.messages.compression import compress
from cometmq.model.messages.received_message import (
    MessageFields,
    ReceivedMessage,
    decode_messages,
    read_all_python,
)
from cometmq.model.messages.record import BadRecord, encode_record
from cometmq.native.choice import twin
from cometmq.protocol.frame import decode_bytes

NATIVE = twin("messages")
pytestmark = pytest.mark.skipif(NATIVE is None, reason="the twin is not compiled")

KINDS = (COMPRESSION_LZ4, COMPRESSION_ZLIB, COMPRESSION_ZSTD)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
V4 = st.sampled_from([bytes(8), b"\x7f\0\0\1\0\0*\x9f"]) | st.binary(min_size=8, max_size=8)
HOSTS = V4 | st.binary(min_size=20, max_size=20)
ATTRIBUTES = sorted(name for name in dir(MessageFields) if not name.startswith("__"))


@st.composite
def records(draw: Callable[..., Any]) -> bytes:
    born, store = draw(V4 | HOSTS), draw(V4 | HOSTS)
    body = draw(st.binary(max_size=30))
    sys_flag = (16 if len(born) == 20 else 0) | (32 if len(store) == 20 else 0)
    if draw(st.integers(0, 9)) == 0:
        body, bits = compress(body + b"abc" * 9, draw(st.sampled_from(KINDS)))
        sys_flag |= bits
    return encode_record(
        topic=draw(st.sampled_from([b"T", b"Orders", b"a" * 127, b"b" * 128, b"c" * 300])),
        queue_id=draw(INT32),
        queue_offset=draw(INT64),
        physical_offset=draw(st.integers(0, 2**63 - 1)),
        flag=draw(INT32),
        sys_flag=sys_flag,
        born_timestamp=draw(INT64),
        born_host=born,
        store_timestamp=draw(INT64),
        store_host=store,
        reconsume_times=draw(INT32),
        prepared_transaction_offset=draw(INT64),
        body=body,
        properties=draw(st.text(max_size=20)).encode(),
    )


REPLIES = st.lists(records(), max_size=5).map(b"".join)


def outcome(read_all: Callable[..., Any], buffer: bytes | memoryview) -> object:
    """All attributes of all messages, or the error."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(received_message, "_read_all", read_all)
        try:
            messages = decode_messages(buffer, "broker-a", added={"MIN_OFFSET": "1"})
        except BadRecord as error:
            return str(error), repr(error.__cause__)
    assert {type(message) for message in messages} <= {ReceivedMessage}
    return [[getattr(message, name) for name in ATTRIBUTES] for message in messages]


def check_same(buffer: bytes) -> object:
    expected = outcome(read_all_python, buffer)
    assert outcome(NATIVE.read_all, buffer) == expected
    assert outcome(NATIVE.read_all, memoryview(b"ab" + buffer)[2:]) == expected
    return expected


@given(REPLIES)
def test_whole_records(reply: bytes) -> None:
    assert isinstance(check_same(reply), list)


@given(REPLIES, st.data())
def test_damaged_records(reply: bytes, data: st.DataObject) -> None:
    damaged = bytearray(reply)
    for _ in range(data.draw(st.integers(1, 3)) if reply else 0):
        at = data.draw(st.integers(0, len(reply) - 1))
        value = data.draw(
            st.sampled_from([0, 1, 0x7F, 0x80, 0xA7, 0xAB, 0xFF]) | st.integers(0, 255)
        )
        damaged[at] = value
    check_same(bytes(damaged[: data.draw(st.integers(0, len(reply)))]))
    check_same(bytes(damaged))


LENGTHS = st.integers(-3, 400) | st.sampled_from([-(1 << 31), (1 << 31) - 1])


@given(records(), st.sampled_from([0, 4, 36, 84]), LENGTHS, st.binary(max_size=3))
def test_numbers_that_do_not_fit(record: bytes, at: int, number: int, more: bytes) -> None:
    check_same(record[:at] + number.to_bytes(4, "big", signed=True) + record[at + 4 :] + more)


@given(st.binary(max_size=200))
@example(b"")
def test_bytes_that_are_no_records(junk: bytes) -> None:
    check_same(junk)


def test_records_of_rocketmq() -> None:
    replies = [
        body
        for version in VERSIONS
        for sample in samples(version)
        if not sample.is_request and sample.request_code in RECORD_BODIES
        if (body := bytes(decode_bytes(sample.frame).body))
    ]
    assert len(replies) > 3
    assert any(isinstance(check_same(body), list) for body in replies)
    for body in replies:
        for at in range(0, len(body), 1 + len(body) // 100):
            check_same(body[:at])
