"""The JSON header: Java's form out, everything clients are known to send in."""

from __future__ import annotations

import pytest

from cometmq.base.errors import RemoteProtocolError
from cometmq.protocol.command import Command
from cometmq.protocol.header_json import decode_header, encode_header


def read(text: str | bytes) -> Command:
    return decode_header(text.encode() if isinstance(text, str) else text, b"")


def test_missing_keys_take_java_s_defaults() -> None:
    command = read("{}")
    assert (command.code, command.language, command.version) == (0, "JAVA", 0)
    assert (command.opaque, command.flag, command.remark, command.ext) == (0, 0, None, None)


def test_unknown_keys_and_order_mean_nothing() -> None:
    command = read('{"version":1,"x":{"y":[1]},"code":10,"body":"ignored"}')
    assert (command.code, command.version, command.body) == (10, 1, b"")


def test_absent_remark_and_ext_are_not_written() -> None:
    assert encode_header(Command(code=0)) == (
        b'{"code":0,"flag":0,"language":"PYTHON","opaque":0,'
        b'"serializeTypeCurrentRPC":"JSON","version":409}'
    )


def test_empty_remark_and_ext_are_written() -> None:
    text = encode_header(Command(code=0, remark="", ext={}))
    assert b'"extFields":{}' in text
    assert b'"remark":""' in text
    assert (read(text).remark, read(text).ext) == ("", {})


def test_control_characters_are_escaped_and_the_rest_is_raw() -> None:
    text = encode_header(Command(code=0, ext={"i": "KEYS\x01ключ\x02"}))
    assert b"KEYS\\u0001" + "ключ".encode() + b"\\u0002" in text
    assert read(text).ext == {"i": "KEYS\x01ключ\x02"}


@pytest.mark.parametrize(
    ("value", "text"),
    [("5", "5"), ("-0.5", "-0.5"), ("true", "true"), ("false", "false"), ("[1,2]", "[1,2]")],
)
def test_ext_values_of_other_types_become_texts(value: str, text: str) -> None:
    assert read('{"extFields":{"b":"c","a":' + value + "}}").ext == {"a": text, "b": "c"}


def test_null_ext_values_are_absent() -> None:
    assert read('{"extFields":{"a":null}}').ext == {}
    assert read('{"extFields":null}').ext is None


@pytest.mark.parametrize(
    ("given", "name"), [("9", "GO"), ("99", "OTHER"), ('"golang"', "golang"), ("null", "JAVA")]
)
def test_language_by_number_or_unknown_name(given: str, name: str) -> None:
    assert read('{"language":' + given + "}").language == name


def test_numbers_as_texts() -> None:
    command = read('{"code":"10","opaque":"7","flag":0,"version":1.0,"remark":5}')
    assert (command.code, command.opaque, command.version, command.remark) == (10, 7, 1, "5")


def test_the_last_of_equal_keys_counts() -> None:
    command = read('{"code":1,"code":2,"extFields":{"a":"1","a":"2"}}')
    assert (command.code, command.ext) == (2, {"a": "2"})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "[]",
        "5",
        "null",
        '{"code":10',
        '{"code":2147483648}',
        '{"opaque":-2147483649}',
        '{"opaque":123456789012345678901234567890}',
        '{"opaque":1e999}',
        '{"opaque":1e300}',
        '{"opaque":' + "9" * 5000 + "}",
        '{"opaque":"' + "9" * 5000 + '"}',
        '{"opaque":[]}',
        '{"opaque":"seven"}',
        '{"extFields":[]}',
        '{"extFields":"a"}',
        '{"remark":"\\ud800"}',
        '{"x":' + "[" * 100_000,
        '{"extFields":{"a":' + "[" * 100_000 + "]" * 100_000 + "}}",
        '{"code":{"a":' + "[" * 900 + "]" * 900 + "}}",
        b'{"remark":"\xff"}',
        b'{"remark":"\xed\xa0\x80"}',
    ],
)
def test_what_cannot_be_a_header_is_refused(text: str | bytes) -> None:
    with pytest.raises(RemoteProtocolError, match=r"header|extFields"):
        read(text)


def test_half_characters_leave_as_question_marks() -> None:
    # os.fsdecode makes such texts of file names that are not UTF-8.
    text = encode_header(
        Command(code=1, remark="bad \udcff name", ext={"k\udcff": "v\ud800", "a": "b"})
    )
    assert read(text).remark == "bad ? name"
    assert read(text).ext == {"k?": "v?", "a": "b"}
