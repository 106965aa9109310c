"""The rules of SQL92 expressions one by one, as RocketMQ's own filter library applies them."""

from __future__ import annotations

import pytest

from cometmq.model.sql92.errors import BadExpression
from cometmq.model.sql92.limits import DEPTH_MAX, LENGTH_MAX, SqlLimits
from cometmq.model.sql92.selector import Selector

MESSAGE = {
    "a": "5",
    "price": "10.5",
    "big": "3000000000",
    "name": "it's",
    "yes": "True",
    "word": "abcdef",
    "blank": " 7 ",
    "$d": "x",
}


@pytest.mark.parametrize(
    "expression",
    [
        # Comparing with numbers reads the property as the number's type.
        "a = 5",
        "a > 4 AND a < 6",
        "a >= 5 AND a <= 5",
        "a <> 6",
        "5 = a",
        "4 < a",
        "a = 5.0",
        "a = 5L",
        "price = 10.5",
        "price > 1E1",
        "price > .5",
        "price > 5.",
        "big > 2999999999",
        "big = 3000000000L",
        "blank = 7.0",
        # Two properties: equal as texts, ordered as numbers.
        "a = a",
        "a < price",
        "word = 'abcdef'",
        "name = 'it''s'",
        "$d = 'x'",
        # Signs and NOT.
        "a > -1",
        "a = +5",
        "- -5 = a",
        "NOT (a = 6)",
        "NOT a = TRUE",
        # Truth values: text counts as true when it says so, in any case.
        "yes = TRUE",
        "a = false",
        "TRUE",
        "(a = 5) = TRUE",
        # BETWEEN, IN and the tests of RocketMQ 5.
        "a BETWEEN 5 AND 5",
        "a BETWEEN 1 AND 9.5",
        "a NOT BETWEEN 6 AND 9",
        "a NOT BETWEEN 9 AND 1",
        "word IN ('x', 'abcdef')",
        "word NOT IN ('x')",
        "word CONTAINS 'cd'",
        "word STARTSWITH 'abc'",
        "word ENDSWITH 'def'",
        "word NOT CONTAINS 'xy'",
        "word NOT STARTSWITH 'b'",
        "word NOT ENDSWITH 'a'",
        # Null.
        "missing IS NULL",
        "a IS NOT NULL",
        "missing = missing2",
        "(missing > 5) IS NULL",
        "(NOT (missing > 5)) IS NULL",
        "(missing > 5 AND a = 5) IS NULL",
        "(missing > 5 OR a = 6) IS NULL",
        "missing > 5 OR a = 5",
        "NOT (missing > 5 AND a = 6)",
        "(missing IN ('x')) IS NULL",
        "(missing = 5) IS NULL",
        "(5 = missing) IS NOT NULL",
        "missing IS NULL AND NULL IS NULL",
        # Precedence: AND before OR.
        "a = 5 OR a = 6 AND a = 7",
        # Keywords in any case, property names exactly.
        "a between 1 And 9 aNd not (A is not null)",
        # Comments, and what comes behind a complete expression.
        "a = /* five */ 5",
        "a = -- five\n 5",
        "a = --5",
        "a = 5 and_more -- rubbish",
        "a = 5 'x'",
    ],
)
def test_matches(expression: str) -> None:
    assert Selector(expression).matches(MESSAGE)


@pytest.mark.parametrize(
    "expression",
    [
        "a = 6",
        "a = '5.0'",
        "a <> 5",
        # Unknown is not a match, however it is turned round.
        "missing = 5",
        "missing <> 5",
        "missing > 5",
        "NOT (missing > 5)",
        "missing IN ('x')",
        "missing NOT IN ('x')",
        "missing NOT BETWEEN 1 AND 2",
        "missing = 'x' OR missing <> 'x'",
        "NULL",
        # What cannot be compared is no match either.
        "word > 5",
        "NOT (word > 5)",
        "word = 5",
        "big > 5",
        "price > 5",
        "word < price",
        "word > price OR a = 5",
        "TRUE = word",
        # A value is text, hence no condition.
        "yes",
        "NOT missing",
        "a AND TRUE",
        # The tests of text parts are false, not unknown, for what is not there.
        "missing CONTAINS 'x'",
        "missing NOT CONTAINS 'x'",
        "(missing NOT STARTSWITH 'x') IS NULL",
        "word CONTAINS ''",
        "word NOT ENDSWITH ''",
        "5 NOT CONTAINS 'x'",
        # A sign before text gives null.
        "-a = 5",
        "(a = 5) = 7",
        "A = 5",
    ],
)
def test_does_not_match(expression: str) -> None:
    assert not Selector(expression).matches(MESSAGE)


@pytest.mark.parametrize(
    ("expression", "position", "expected", "found"),
    [
        ("", 0, "a value, a property or '('", "the end of the expression"),
        ("a =", 3, "a value, a property or '('", "the end of the expression"),
        ("a = 'x", 4, "a closing quote", '"\'x"'),
        ("a # 5", 2, "a name, value or operator", "'# 5'"),
        ("a /* 5", 2, "a comment /* ... */", "'/* 5'"),
        ("(a = 5", 6, ")", "the end of the expression"),
        ("a IS 5", 5, "NULL", "'5'"),
        ("a NOT = 5", 6, "BETWEEN, IN, CONTAINS, STARTSWITH or ENDSWITH behind NOT", "'='"),
        ("a IN (5)", 6, "a string such as 'text'", "'5'"),
        ("a IN ()", 6, "a string such as 'text'", "')'"),
        ("5 IN ('x')", 0, "a property on the left of IN", "something else"),
        ("a CONTAINS 5", 11, "a string such as 'text'", "'5'"),
        ("a > 'x'", 4, "a number or a property beside >", "a string"),
        ("a > TRUE", 4, "a number or a property beside >", "a condition"),
        ("a < (b = 5)", 7, "a number or a property beside <", "a condition"),
        ("a > NULL", 4, "a number or a property beside >", "a condition"),
        ("a = NULL", 4, "IS NULL or IS NOT NULL", "a comparison with NULL"),
        ("TRUE = 'x'", 7, "a truth value, as on the left", "a string"),
        ("a BETWEEN 5 AND 1", 16, "5 or more", "1"),
        ("a BETWEEN 5 AND 1.5", 16, "5 or more", "1.5"),
        ("a BETWEEN 1 5", 12, "AND", "'5'"),
        ("5", 0, "a condition", "a value that is neither true nor false"),
        ("a = 5 AND 'x'", 10, "a condition", "a value that is neither true nor false"),
        ("NOT 5", 4, "a condition", "a value that is neither true nor false"),
        ("a > 0.0", 4, "a decimal number between 4.9E-324 and 1.8E308", "0.0"),
        ("a > 1E400", 4, "a decimal number between 4.9E-324 and 1.8E308", "1E400"),
        ("a > 9223372036854775808", 4, "an integer up to 9223372036854775807", "92233720368547"),
    ],
)
def test_refuses(expression: str, position: int, expected: str, found: str) -> None:
    with pytest.raises(BadExpression) as error:
        Selector(expression)
    assert (error.value.position, error.value.expected) == (position, expected)
    assert error.value.found.startswith(found)
    assert str(error.value).startswith(f"at character {position + 1}: expected {expected}, found ")


def test_a_literal_that_fits_decides_how_a_property_is_read() -> None:
    assert not Selector("big > 2147483647").matches(MESSAGE)
    assert Selector("big > 2147483648").matches(MESSAGE)


@pytest.mark.parametrize("value", ["x", "5 ", "", "1_0", "5.0", "2147483648", "９x", "1" * 5000])
def test_text_that_is_no_integer_does_not_match(value: str) -> None:
    assert not Selector("v > 0 OR v <= 0").matches({"v": value})


@pytest.mark.parametrize(
    ("value", "equal_to"),
    [("1e1", "10.0"), (" 10 ", "10.0"), ("10d", "10.0"), ("10.f", "10.0"), ("0x1.4p3", "10.0")],
)
def test_decimals_are_read_as_java_does(value: str, equal_to: str) -> None:
    assert Selector(f"v = {equal_to}").matches({"v": value})


@pytest.mark.parametrize("value", ["x", "1_0.0", "0x10", "inf", "nan", "", "1e", "１.0"])
def test_text_that_is_no_decimal_does_not_match(value: str) -> None:
    assert not Selector("v > .5 OR v <= .5").matches({"v": value})


def test_odd_decimals_keep_javas_order() -> None:
    values = ["-Infinity", "-0.0", "0.0", "Infinity", "NaN"]
    for low, smaller in enumerate(values):
        for high, larger in enumerate(values):
            message = {"x": smaller, "y": larger}
            assert Selector("x < y").matches(message) is (low < high)
            assert Selector("x >= y").matches(message) is (low >= high)
    assert Selector("x > 1E308").matches({"x": "0x1p99999"})


def test_depth_and_length_are_bounded() -> None:
    inner = "(" * (DEPTH_MAX - 2) + "a = 5" + ")" * (DEPTH_MAX - 2)
    assert Selector(inner).matches(MESSAGE)
    for text in (
        "(" * 5000 + "a",
        "NOT " * 4000 + "a",
        "a " + "= a " * 3000,
        "- " * 5000 + "5 = a",
    ):
        with pytest.raises(BadExpression, match=r"at most 64 levels .*, found one more"):
            Selector(text)
    with pytest.raises(BadExpression, match=f"at most {LENGTH_MAX} characters"):
        Selector("a = '" + "x" * LENGTH_MAX + "'")


def test_how_much_is_allowed_can_be_said() -> None:
    limits = SqlLimits(length_max=20, depth_max=3, parts_max=7)
    assert Selector("((a = 5)) AND b = 2", limits)
    for text, bound in (
        ("a = 1 OR a = 2 OR a =3", "filterExpressionLengthMax"),
        ("(((a = 5)))", "filterExpressionDepthMax"),
        ("a=1 OR b=2 OR c=3", "filterExpressionPartsMax"),
    ):
        with pytest.raises(BadExpression, match=bound) as refused:
            Selector(text, limits)
        assert refused.value.bound == bound


def test_a_long_row_of_conditions_is_not_deep() -> None:
    assert Selector(" OR ".join(f"a = {n}" for n in range(1, 1400))).matches(MESSAGE)
    assert Selector(" AND ".join(f"a <> {n}" for n in range(6, 1200))).matches(MESSAGE)


def test_the_cost_grows_with_the_expression() -> None:
    assert Selector("a = 5").cost == 3
    assert Selector("a BETWEEN 1 AND b OR NOT (a IN ('x', 'y'))").cost == 10
