"""Our SQL92 expressions beside RocketMQ's own: the same are refused, and the same messages match.

Random expressions, wild and half-wrong ones included, are judged by the filter library of 4.9.7 and of 5.5.0 and by
ours. The seed is in the failure's text.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from cometmq.model.sql92.errors import BadExpression
from cometmq.model.sql92.selector import Selector

from .java import fetch_jars
from .report import TEST_SECONDS_MAX
from .single_java import SingleJava
from .systems import POMS, ROCKETMQ_4, ROCKETMQ_5

pytestmark = [pytest.mark.interop, pytest.mark.timeout(TEST_SECONDS_MAX)]

COUNT = 40_000
SEED = 20240817
SECONDS_MAX = 120.0

NAMES = ("a", "b", "c", "$d", "_e1", "A")
NUMBERS = (
    *("0", "1", "5", "10", "2147483647", "2147483648", "3000000000L", "9223372036854775807"),
    *("5.5", "5.", ".5", "1E2", "1.5E+1", "5L", "1e2"),
)
ODD_NUMBERS = ("0.0", "9223372036854775808", "007", "0L", "1E400", "1E-400", "0x10", "5.5L")
TEXTS = ("'x'", "'5'", "'it''s'", "''", "'true'", "'abc'", "'1.0'", "'ü'")
VALUES = (
    *("x", "abc", "it's", "true", "TRUE", "false", "ü", "-", "10", "0", "5", "5.0", "+5", "-5"),
    *(" 5", "1e1", "-0.0", "0.0", "3000000000", "9223372036854775808", "NaN", "Infinity"),
    *("0x1p3", "5d", "5f", "1.0", "1_0"),
)
COMPARISONS = ("=", "<>", ">", ">=", "<", "<=")
BLANKS = (" ", "  ", " /* c */ ", " -- c\n", "\n", "\t")
TEXT_TESTS = ("CONTAINS", "STARTSWITH", "ENDSWITH")
RUBBISH = ("NULL", "#", "'", "*", "a.b", "a-b", "==", "!=", ")", "(", "NOT", ",", "- -", "/*")


class Generator:
    def __init__(self, seed: int, *, text_tests: bool) -> None:
        self._random = random.Random(seed)
        self._text_tests = text_tests

    def case(self) -> tuple[str, dict[str, str]]:
        pick = self._random
        text = self._condition(pick.randint(0, 3))
        if pick.random() < 0.15:
            parts = text.split(" ")
            at = pick.randrange(len(parts))
            parts[at : at + pick.randint(0, 1)] = [pick.choice(RUBBISH + ODD_NUMBERS)]
            text = " ".join(parts)
        if pick.random() < 0.1:
            text = pick.choice(BLANKS).join(text.split(" "))
        names = pick.sample(NAMES, pick.randint(0, len(NAMES)))
        return text, {name: pick.choice(VALUES) for name in names}

    def _condition(self, depth: int) -> str:
        pick = self._random
        if depth == 0 or pick.random() < 0.2:
            return self._test()
        kind = pick.randrange(7)
        if kind == 0:
            return f"NOT ( {self._condition(depth - 1)} )"
        if kind == 1:
            return f"( {self._condition(depth - 1)} )"
        if kind == 2:
            return f"( {self._condition(depth - 1)} ) IS {pick.choice(('', 'NOT '))}NULL"
        if kind == 3:
            return f"( {self._condition(depth - 1)} ) {pick.choice(COMPARISONS)} {self._operand()}"
        if kind == 4:
            return f"{self._operand()} = ( {self._condition(depth - 1)} )"
        joint = pick.choice(("AND", "OR", "and", "Or"))
        return f"{self._condition(depth - 1)} {joint} {self._condition(depth - 1)}"

    def _test(self) -> str:
        pick = self._random
        kind = pick.randrange(8 if self._text_tests else 7)
        operand = self._operand()
        negation = pick.choice(("", "NOT "))
        if kind == 0:
            return f"{operand} IS {negation}NULL"
        if kind == 1:
            return f"{operand} {negation}BETWEEN {self._operand()} AND {self._operand()}"
        if kind == 2:
            low, high = sorted(pick.sample(range(20), 2))
            return f"{pick.choice(NAMES)} {negation}BETWEEN {low} AND {high}"
        if kind == 3:
            choices = " , ".join(pick.choice(TEXTS) for _ in range(pick.randint(1, 3)))
            return f"{self._left()} {negation}IN ( {choices} )"
        if kind == 4:
            return f"{negation}{self._operand()}"
        if kind == 7:
            return f"{self._left()} {negation}{pick.choice(TEXT_TESTS)} {pick.choice(TEXTS)}"
        return f"{operand} {pick.choice(COMPARISONS)} {self._operand()}"

    def _left(self) -> str:
        return self._random.choice(NAMES) if self._random.random() < 0.9 else self._operand()

    def _operand(self) -> str:
        pick = self._random
        kind = pick.randrange(20)
        if kind < 9:
            return pick.choice(NAMES)
        if kind < 14:
            return pick.choice(("", "", "- ", "+ ")) + pick.choice(NUMBERS)
        if kind < 17:
            return pick.choice(TEXTS)
        if kind == 17:
            return pick.choice(("TRUE", "FALSE", "true"))
        if kind == 18:
            return "- " + pick.choice(NAMES)
        return pick.choice(ODD_NUMBERS)


def judge(text: str, properties: dict[str, str]) -> str:
    try:
        selector = Selector(text)
    except BadExpression:
        return "refused"
    return str(selector.matches(properties)).lower()


def line_of(text: str, properties: dict[str, str]) -> str:
    parts = [text, *(part for pair in properties.items() for part in pair)]
    escaped = (
        part.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t") for part in parts
    )
    return "\t".join(escaped) + "\n"


@pytest.mark.parametrize("system", [ROCKETMQ_4, ROCKETMQ_5])
def test_rocketmq_judges_alike(system: str, tmp_path: Path) -> None:
    oracle = SingleJava("SelectorOracle", fetch_jars(POMS[system]))
    # The tests of text parts came with RocketMQ 5; their names are properties before.
    generator = Generator(SEED, text_tests=system == ROCKETMQ_5)
    cases = [generator.case() for _ in range(COUNT)]
    lines = "".join(line_of(*case) for case in cases)
    theirs = oracle.run(tmp_path, (), text=lines, seconds_max=SECONDS_MAX).splitlines()
    assert len(theirs) == COUNT
    differing = [
        f"{text!r} {properties}: {verdict} by {system}, {judge(text, properties)} by us"
        for (text, properties), verdict in zip(cases, theirs, strict=True)
        if judge(text, properties) != verdict
    ]
    assert not differing, f"seed {SEED}, {len(differing)} of {COUNT}:\n" + "\n".join(differing[:40])
    # A generator whose expressions are all refused, or never match, would show nothing.
    for verdict in ("refused", "true", "false"):
        assert theirs.count(verdict) > COUNT // 50, verdict
