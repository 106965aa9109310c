"""Messages as lines: what produce reads, what consume writes."""

from __future__ import annotations

import json

import pytest

from cometmq.base.errors import UsageError
from cometmq.client.helpers.message_lines import Given, line_of, message_of
from cometmq.model.messages.received_message import ReceivedMessage

GIVEN = Given(topic="T", tags="t", keys=("k",), properties={"a": "1", "b": "2"}, delay_level=3)


def received(body: bytes) -> ReceivedMessage:
    properties = {
        "TAGS": "paid",
        "KEYS": "o-1 o-2",
        "UNIQ_KEY": "ID",
        "WAIT": "true",
        "__SHARDINGKEY": "s",
        "shop": "Bücher",
    }
    return ReceivedMessage(
        topic="T", body=body, properties=properties, broker_name="b", queue_offset=7
    )


def test_a_plain_line_is_the_body_and_options_are_the_rest() -> None:
    message = message_of(b"x \xff", GIVEN, is_json=False, is_base64=False)
    assert (message.topic, message.body, message.tags) == ("T", b"x \xff", "t")
    assert (list(message.keys), message.properties, message.delay_level) == (
        ["k"],
        {"a": "1", "b": "2"},
        3,
    )


def test_a_body_that_could_not_be_unpacked_is_told_and_not_sent_again() -> None:
    message = received(b"packed")
    message.body_error = "cut off"
    assert line_of(message, is_json=False, is_base64=False) == b"packed"
    line = line_of(message, is_json=True, is_base64=False)
    assert json.loads(line)["body_error"] == "cut off"
    with pytest.raises(UsageError, match=r"still packed \(cut off\)"):
        message_of(line, GIVEN, is_json=True, is_base64=False)


def test_base64_lines_are_unpacked() -> None:
    assert message_of(b"AP8=", GIVEN, is_json=False, is_base64=True).body == b"\x00\xff"
    line = b'{"body": "AP8="}'
    assert message_of(line, GIVEN, is_json=True, is_base64=True).body == b"\x00\xff"
    line = b'{"body_base64": "AP8="}'
    assert message_of(line, GIVEN, is_json=True, is_base64=False).body == b"\x00\xff"


def test_fields_of_a_json_line_come_before_options() -> None:
    line = b'{"body": "x", "tags": "u", "keys": ["l"], "properties": {"b": "3"}, "delay_level": 0}'
    message = message_of(line, GIVEN, is_json=True, is_base64=False)
    assert (message.tags, list(message.keys), message.delay_level) == ("u", ["l"], 0)
    assert message.properties == {"a": "1", "b": "3"}


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"hello", "JSON object"),
        (b'{"body": "x", "tag": "y"}', "unknown field `tag`"),
        (b'{"body": 5}', "got `int` - at `$.body`"),
        (b'{"body": "x", "keys": "k"}', r"at `\$.keys`"),
        (b'{"tags": "x"}', "one of the fields body and body_base64"),
        (b'{"body": "x", "body_base64": "AA=="}', "one of the fields"),
        (b'{"body_base64": "?"}', "expected base64"),
        (b'{"body": "\xff"}', "JSON object"),
    ],
)
def test_a_wrong_line_is_told_what_was_expected(line: bytes, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint.replace("$.body", r"\$\.body")):
        message_of(line, GIVEN, is_json=True, is_base64=False)


def test_a_json_line_tells_everything_but_what_the_system_keeps_for_itself() -> None:
    assert json.loads(line_of(received(b"x"), is_json=True, is_base64=False)) == {
        "body": "x",
        "tags": "paid",
        "keys": ["o-1", "o-2"],
        "properties": {"shop": "Bücher"},
        "sharding_key": "s",
        "topic": "T",
        "broker": "b",
        "queue": 0,
        "offset": 7,
        "message_id": "ID",
        "stored_ms": 0,
    }


@pytest.mark.parametrize("body", [b"text", "Bücher".encode(), b"\x00\xff", b"two\nlines"])
@pytest.mark.parametrize("is_base64", [False, True])
def test_what_is_written_can_be_sent_again(body: bytes, is_base64: bool) -> None:
    line = line_of(received(body), is_json=True, is_base64=is_base64)
    assert b"\n" not in line
    again = message_of(line, Given(topic="U"), is_json=True, is_base64=is_base64)
    assert (again.topic, again.body, again.tags) == ("U", body, "paid")
    assert (list(again.keys), again.properties) == (["o-1", "o-2"], {"shop": "Bücher"})


def test_plain_lines_are_the_bodies() -> None:
    assert line_of(received(b"\x00\xff"), is_json=False, is_base64=False) == b"\x00\xff"
    assert line_of(received(b"\x00\xff"), is_json=False, is_base64=True) == b"AP8="
