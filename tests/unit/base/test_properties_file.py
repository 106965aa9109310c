"""Java's properties format, case by case; ``tests/property`` holds what is true of every text."""

from __future__ import annotations

import pytest

from cometmq.base.errors import ConfigError
from cometmq.base.properties_file import (
    BODY_BYTES_MAX,
    decode_file,
    edit_properties,
    encode_file,
    parse_properties,
    parse_properties_body,
    render_properties,
)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=1\nb = 2\nc:3\nd 4", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("# comment\n! comment\n\n  a=1", {"a": "1"}),
        ("a=1\\\n   2", {"a": "12"}),
        ("a=x\\\\\nb=1", {"a": "x\\", "b": "1"}),
        ("a\\=b=c", {"a=b": "c"}),
        ("a=\\u0041\\t\\q", {"a": "A\tq"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("a=\u2028b=1\x0bc=2\x85d=3", {"a": "\u2028b=1\x0bc=2\x85d=3"}),
        ("a\f1", {"a": "1"}),
        ("\f # comment\ra=1\rb=2", {"a": "1", "b": "2"}),
        ("\xa0a=1", {"\xa0a": "1"}),
        ("a=1\\\n\nb=2", {"a": "1", "b": "2"}),
        ("a=1\\\n# b=2", {"a": "1# b=2"}),
        ("\\\n\na=1", {"a": "1"}),
        ("\\\n# b=1\na=1", {"a": "1"}),
        ("path=C:\\\\x", {"path": "C:\\x"}),
        ("a=b=c", {"a": "b=c"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("a=1\r\na=2\r\n", {"a": "2"}),
        ("a=1\\", {"a": "1"}),
        ("", {}),
    ],
)
def test_properties_format(text: str, values: dict[str, str]) -> None:
    assert parse_properties(text) == values


@pytest.mark.parametrize(
    "escape", ["\\uzzzz", "\\u12", "\\u 12 ", "\\u+123", "\\ud83d", "\\ude00\\ud83d"]
)
def test_a_bad_escape_is_refused(escape: str) -> None:
    with pytest.raises(ConfigError, match="bad escape"):
        parse_properties(f"a={escape}")


def test_properties_are_rendered_as_lines_of_ascii() -> None:
    assert render_properties({"a": "1", "b": ""}) == "a=1\nb=\n"
    assert render_properties({"a b": " é\u2028#😀"}) == "a\\ b=\\ \\u00e9\\u2028#\\ud83d\\ude00\n"
    with pytest.raises(ConfigError, match="surrogate"):
        render_properties({"a": "\ud800"})


def test_an_edit_keeps_comments_order_and_all_other_lines() -> None:
    text = "# mine\nlistenPort = 1\n\nb=2\\\n  3\nlistenPort=9"
    changed = edit_properties(text, {"listenPort": "5", "regionId": " x\\y"})
    assert changed == "# mine\nlistenPort=5\n\nb=2\\\n  3\nregionId=\\ x\\\\y\n"
    assert edit_properties("! a=0\\\na = 1\nlong=x\\\n  a=y\nb:2\na=3", {"a": "9", "c": "4"}) == (
        "! a=0\\\na=9\nlong=x\\\n  a=y\nb:2\nc=4\n"
    )
    assert edit_properties("", {"a": "1"}) == "a=1\n"


def test_bytes_that_are_not_utf_8_stay_as_they_are() -> None:
    old = "# 经纪人\nbrokerPermission=6\n".encode("gbk")
    text = decode_file(old)
    assert parse_properties(text) == {"brokerPermission": "6"}
    assert encode_file(edit_properties(text, {"brokerPermission": "4"})) == old.replace(b"6", b"4")


def test_the_body_of_a_request_is_bounded_before_it_is_read() -> None:
    assert parse_properties_body(memoryview(b"a=1\n")) == {"a": "1"}
    for body, message in (
        (b"=" * (BODY_BYTES_MAX + 1), "settings of 65537 bytes; at most 65536"),
        (b"a=" + b"x" * 1025, "a has 1025 characters; at most 1024"),
        (b"a=\xff", "UTF-8"),
    ):
        with pytest.raises(ConfigError, match=message):
            parse_properties_body(body)
