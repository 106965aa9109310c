from __future__ import annotations

from typing import Any

import pytest

from cometmq.base.errors import UsageError
from cometmq.client.core.send.prepare import (
    Envelope,
    SendRequest,
    check_sendable,
    pack_body,
    prepare,
    prepare_batch,
    property_text,
)
from cometmq.model.flags import COMPRESSION_LZ4, COMPRESSION_ZLIB, COMPRESSION_ZSTD
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.batch import decode_batch
from cometmq.model.messages.compression import decompress
from cometmq.model.messages.message import Message
from cometmq.model.messages.properties import parse_properties
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.send import SendMessageHeaderV2

ENVELOPE = Envelope(
    group="ns%pg", default_topic="TBW102", default_topic_queue_nums=4, unit_mode=False
)
QUEUE = MessageQueue(broker_name="broker-a", queue_id=3, topic="T")


def _message(**fields: Any) -> Message:
    return Message(**{"topic": "T", "body": b"body", **fields})


def _prepare(message: Message, wire_topic: str = "T") -> SendRequest:
    return prepare(
        ENVELOPE,
        wire_topic,
        message,
        message_id="ID",
        born_ms=1_700_000_000_123,
        body_bytes_max=100,
    )


def _header(request: SendRequest) -> tuple[Command, SendMessageHeaderV2]:
    command = request.to(QUEUE)
    return command, decode_fields(SendMessageHeaderV2, command.ext)


def _properties(message: Message) -> dict[str, str]:
    return parse_properties(property_text(message, "ID"))


def test_a_plain_message() -> None:
    command, header = _header(_prepare(_message(flag=9, tags="t"), "ns%T"))
    assert command.code == RequestCode.SEND_MESSAGE_V2
    assert command.body == b"body"
    assert header == SendMessageHeaderV2(
        producer_group="ns%pg",
        topic="ns%T",
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=3,
        sys_flag=0,
        born_timestamp=1_700_000_000_123,
        flag=9,
        properties="UNIQ_KEY\x01ID\x02WAIT\x01true\x02TAGS\x01t\x02",
        reconsume_times=0,
        unit_mode=False,
        max_reconsume_times=None,
        batch=False,
        broker_name="broker-a",
    )


def test_attempts_share_nothing_that_signing_could_change() -> None:
    request = _prepare(_message())
    first = request.to(QUEUE)
    assert first.ext is not None
    first.ext["Signature"] = "x"
    assert "Signature" not in (request.to(QUEUE).ext or {})


def test_properties() -> None:
    message = _message(
        tags="paid", keys=["k1", "k2"], sharding_key="s", properties={"a": "1"}, wait_store_ok=False
    )
    assert _properties(message) == {
        "UNIQ_KEY": "ID",
        "WAIT": "false",
        "TAGS": "paid",
        "KEYS": "k1 k2",
        "__SHARDINGKEY": "s",
        "a": "1",
    }
    assert _properties(_message(keys="one key"))["KEYS"] == "one key"
    assert "KEYS" not in _properties(_message(keys=[]))
    assert _properties(_message(keys=(key for key in ["a", "b"])))["KEYS"] == "a b"


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ({"delay_level": 3}, "DELAY", "3"),
        ({"delay_seconds": 5}, "TIMER_DELAY_SEC", "5"),
        ({"delay_ms": 1500}, "TIMER_DELAY_MS", "1500"),
        ({"deliver_at_ms": 1_700_000_000_000}, "TIMER_DELIVER_MS", "1700000000000"),
    ],
)
def test_delays(fields: dict[str, int], name: str, value: str) -> None:
    pairs = _properties(_message(**fields))
    assert pairs[name] == value
    assert len(pairs) == 3


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"properties": {"TRAN_MSG": "true"}}, "'TRAN_MSG' is reserved"),
        ({"properties": {"": "x"}}, "must not be blank"),
        ({"properties": {"x": " "}}, "must not be blank"),
        ({"properties": {"x": ""}}, "must not be blank"),
        ({"properties": {"x": "a\x02b"}}, "which separate them"),
        ({"properties": {"x\x01": "b"}}, "which separate them"),
        ({"keys": ["a\x01b"]}, "which separate them"),
        ({"sharding_key": "a\x02"}, "which separate them"),
        ({"properties": {"x": "é" * 16_400}}, "at most 32767"),
        ({"delay_level": 1, "delay_ms": 5}, "give one of"),
        ({"delay_level": -1}, "from 0 on"),
        ({"delay_ms": 1.5}, "from 0 on"),
    ],
)
def test_bad_properties(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        property_text(_message(**fields), "ID")


def test_long_properties_that_fit() -> None:
    assert len(property_text(_message(properties={"x": "y" * 32_000}), "ID")) > 32_000


@pytest.mark.parametrize(
    ("body", "reason"), [(b"", "empty body"), (b"x" * 101, "101 bytes, at most 100")]
)
def test_bad_bodies(body: bytes, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        _prepare(_message(body=body))


@pytest.mark.parametrize("topic", ["", "a b", "x" * 128, "SCHEDULE_TOPIC_XXXX", "SELF_TEST_TOPIC"])
def test_topics_that_take_no_messages(topic: str) -> None:
    with pytest.raises(UsageError):
        check_sendable(topic)


def test_a_half_message() -> None:
    internal = {"TRAN_MSG": "true", "PGROUP": "pg"}
    _, header = _header(_prepare(_message(internal_properties=internal)))
    assert header.sys_flag == 4
    assert parse_properties(header.properties)["PGROUP"] == "pg"


def test_a_reply_has_a_code_of_its_own() -> None:
    command, _ = _header(_prepare(_message(internal_properties={"MSG_TYPE": "reply"})))
    assert command.code == RequestCode.SEND_REPLY_MESSAGE_V2


def test_a_retried_message_tells_its_times_in_the_header() -> None:
    internal = {
        "RECONSUME_TIME": "5",
        "MAX_RECONSUME_TIMES": "16",
        "UNIQ_KEY": "OLD",
        "RETRY_TOPIC": "T",
        "DELAY": "8",
    }
    request = _prepare(_message(internal_properties=internal), "%RETRY%g")
    _, header = _header(request)
    assert (header.reconsume_times, header.max_reconsume_times) == (5, 16)
    assert request.message_id == "OLD"
    assert parse_properties(header.properties) == {
        "UNIQ_KEY": "OLD",
        "WAIT": "true",
        "RETRY_TOPIC": "T",
        "DELAY": "8",
    }


@pytest.mark.parametrize(
    ("kind", "flag"),
    [(COMPRESSION_ZLIB, 0x301), (COMPRESSION_LZ4, 0x101), (COMPRESSION_ZSTD, 0x201)],
)
def test_compression(kind: int, flag: int) -> None:
    request = _prepare(_message(body=b"x" * 100))
    pack_body(request, kind)
    _, header = _header(request)
    assert header.sys_flag == flag
    assert len(request.body) < 100
    assert decompress(request.body, header.sys_flag) == b"x" * 100


def test_what_grows_stays_plain() -> None:
    body = bytes(range(100))
    request = _prepare(_message(body=body))
    pack_body(request, COMPRESSION_ZLIB)
    assert (request.body, request.sys_flag) == (body, 0)


def _batch(*messages: Message) -> SendRequest:
    ids = iter(["ID1", "ID2", "ID3"])
    return prepare_batch(
        ENVELOPE,
        "ns%T",
        messages,
        next_id=lambda now_ms: next(ids),
        born_ms=5,
        body_bytes_max=200,
    )


def test_a_batch() -> None:
    request = _batch(_message(body=b"1", tags="a"), _message(body=b"2", flag=7))
    command, header = _header(request)
    assert command.code == RequestCode.SEND_BATCH_MESSAGE
    assert (header.batch, header.topic, header.properties) == (True, "ns%T", "WAIT\x01true\x02")
    first, second = decode_batch(bytes(command.body))
    assert (first.body, second.body, second.flag) == (b"1", b"2", 7)
    assert parse_properties(first.properties.decode()) == {
        "UNIQ_KEY": "ID1",
        "WAIT": "true",
        "TAGS": "a",
    }
    assert request.message_id == "ID1,ID2"


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], "at least one"),
        ([_message(), _message(topic="U")], "one topic"),
        ([_message(), _message(wait_store_ok=False)], "agree in wait_store_ok"),
        ([_message(delay_level=1)], "delay"),
        ([_message(topic="%RETRY%g")], "one by one"),
        ([_message(body=b"")], "empty body"),
        ([_message(body=b"x" * 200)], "at most 200"),
        ([_message(internal_properties={"MSG_TYPE": "reply"})], "cannot be part of a batch"),
    ],
)
def test_what_is_no_batch(messages: list[Message], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        _batch(*messages)
