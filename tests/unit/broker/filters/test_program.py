"""An expression compiled for the twin judges as the selector does, whatever the properties hold."""

from __future__ import annotations

import random
import struct

import pytest

from cometmq.broker.filters.message_filter import wants_record, wants_text
from cometmq.model.sql92.errors import BadExpression
from cometmq.model.sql92.selector import Selector

twin = pytest.importorskip("cometmq.native.expressions")

NAMES = ("a", "b", "price", "TAGS", "ä")
LITERALS = (
    *("1", "0", "5", "-3", "12L", "2147483647", "2147483648", "-2147483648"),
    *("9223372036854775807", "1.5", "0.1", "1e3", "3.0", "-0.5", "100.25"),
    *("'a'", "'b'", "'5'", "''", "'é'", "TRUE", "FALSE", "NULL"),
)
TEXTS = ("'a'", "'5'", "''", "' '", "'é'", "'1'")
VALUES = (
    *("1", "0", "5", "-3", " 5", "+7", "007", "-0", "0.0", "-0.0", ".5", "5.", "1e3", "0x1p3"),
    *("NaN", "Infinity", "-Infinity", "1.5f", "2D", "0.1", " 1.5 ", "\t2", "1_0", "5\n", "100.25"),
    *("2147483647", "2147483648", "-2147483648", "-2147483649", "99999999999999.99"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808"),
    *("123456789012345678901234567890", "0000000000000000000000000005", "3.1415926535897932384"),
    *("a", "b", "5a", "true", "TRUE", "True ", "tru", "é", "٣", "", "-", "+", ".", "1\x013"),
    *("0" * 200, "0" * 5000 + "5"),
)


class Both:
    """One expression, judged by the selector and by the twin."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.selector = Selector(text)
        self.asked = 0
        self.program = twin.Program(self.selector.tree, self._record, self._text)

    def judge(self, text: bytes) -> bool:
        expected = wants_text(self.selector.matches, text)
        record = stored(text)
        assert wants_record(self.selector.matches, memoryview(record)) is expected
        found = self.program.matches_text(text), self.program(memoryview(record))
        assert found == (expected, expected), (self.text, text)
        return expected

    def _record(self, record: memoryview) -> bool:
        self.asked += 1
        return wants_record(self.selector.matches, record)

    def _text(self, text: bytes) -> bool:
        self.asked += 1
        return wants_text(self.selector.matches, text)


def stored(properties: bytes, *, sys_flag: int = 0, topic: bytes = b"\x05Topic") -> bytes:
    """A record as far as it is looked at."""
    hosts = bytes(12 * (sys_flag & 48).bit_count())
    magic = b"\xda\xa3\x20" + (b"\xa7" if len(topic) < 130 else b"\xab")
    head = bytes(4) + magic + bytes(28) + struct.pack(">i", sys_flag) + bytes(44) + hosts
    rest = topic + len(properties).to_bytes(2, "big") + properties
    return head + struct.pack(">i", 3) + b"one" + rest


def operand(chance: random.Random, depth: int) -> str:
    kind = chance.random()
    if kind < 0.5:
        return chance.choice(NAMES)
    if kind < 0.9 or depth <= 0:
        return chance.choice(LITERALS)
    return f"{chance.choice(('-', '+', 'NOT '))}({expression(chance, depth - 1)})"


def expression(chance: random.Random, depth: int) -> str:
    if depth > 0 and chance.random() < 0.5:
        inner = expression(chance, depth - 1)
        if chance.random() < 0.2:
            return f"NOT ({inner})"
        joint = chance.choice(("AND", "OR", "=", "<>"))
        return f"({inner}) {joint} ({expression(chance, depth - 1)})"
    left, right, name = operand(chance, depth), operand(chance, depth), chance.choice(NAMES)
    negation, text = chance.choice(("", "NOT ")), chance.choice(TEXTS)
    return chance.choice(
        (
            left,
            f"{left} {chance.choice(('=', '<>', '<', '<=', '>', '>='))} {right}",
            f"{left} {chance.choice(('=', '<>', '<', '<=', '>', '>='))} {right}",
            f"{left} IS {negation}NULL",
            f"{left} {negation}BETWEEN {right} AND {operand(chance, depth)}",
            f"{name} {negation}IN ('a', {text})",
            f"{left} {negation}{chance.choice(('CONTAINS', 'STARTSWITH', 'ENDSWITH'))} {text}",
        )
    )


def properties(chance: random.Random) -> bytes:
    parts = [
        chance.choice((*NAMES, "pric", "prices", ""))
        + chance.choice(("\x01", "\x01", "\x01", ""))
        + chance.choice(VALUES)
        for _ in range(chance.randrange(6))
    ]
    text = ("\x02".join(parts) + chance.choice(("", "\x02"))).encode()
    return text + b"\xff" if chance.random() < 0.01 else text


@pytest.mark.parametrize("seed", range(300))
def test_any_expression_and_any_properties(seed: int) -> None:
    chance = random.Random(seed)
    while True:
        try:
            both = Both(expression(chance, 3))
            break
        except BadExpression:
            continue
    for _ in range(40):
        both.judge(properties(chance))


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("literal", ["5", "2147483648", "0.1", "-0.5", "TRUE", "'5'", "b"])
def test_any_value_beside_any_type(value: str, literal: str) -> None:
    for order in ("=", "<>", "<", ">="):
        for text in (f"a {order} {literal}", f"{literal} {order} a"):
            try:
                both = Both(text)
            except BadExpression:
                continue
            both.judge(f"a\x01{value}\x02b\x010.1\x02".encode())


def test_the_usual_is_judged_without_asking() -> None:
    both = Both("price >= 90 AND (TAGS = 'B' OR rate < 1.25) AND name NOT CONTAINS 'x'")
    assert both.judge(b"price\x0191\x02TAGS\x01B\x02name\x01abc\x02")
    assert both.judge(b"rate\x011.2\x02price\x0190\x02name\x01abc")
    assert not both.judge(b"price\x0189\x02TAGS\x01B\x02name\x01abc\x02")
    assert not both.judge(b"price\x01cheap\x02TAGS\x01B\x02name\x01abc\x02")
    assert both.asked == 0


@pytest.mark.parametrize("value", ["é", "1e3", "0x10p0", "NaN", "3.14159265358979323846"])
def test_the_unusual_is_asked_about(value: str) -> None:
    both = Both("price > 3")
    assert Both("price > 3.0").judge(f"price\x01{value}\x02".encode()) is (value != "é")
    both.judge("price\x01٣\x02".encode())
    assert both.asked == 2


@pytest.mark.parametrize("sys_flag", [16, 32, 48])
def test_hosts_of_ipv6(sys_flag: int) -> None:
    both = Both("a = '1'")
    assert both.program(stored(b"a\x011\x02", sys_flag=sys_flag))
    assert both.asked == 1


def test_a_long_topic() -> None:
    both = Both("a = '1'")
    topic = (200).to_bytes(2, "big") + b"t" * 200
    assert both.program(stored(b"a\x011\x02", topic=topic))
    assert both.asked == 0


def test_a_record_cut_off_anywhere_is_not_wanted() -> None:
    both = Both("a = '1'")
    whole = stored(b"a\x011\x02")
    assert both.program(whole)
    assert not any(both.program(whole[:end]) for end in range(len(whole)))
    negative = whole[:84] + struct.pack(">i", -5) + whole[88:]
    assert not both.program(negative)


def test_what_is_asked_may_fail() -> None:
    def fail(_: object) -> bool:
        raise KeyError("asked")

    program = twin.Program(Selector("a = 'é'").tree, fail, fail)
    with pytest.raises(KeyError):
        program.matches_text("a\x01é\x02".encode())
    with pytest.raises(KeyError):
        program(stored("a\x01é\x02".encode()))
