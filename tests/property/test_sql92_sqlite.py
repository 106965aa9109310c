"""Generated expressions, judged by SQLite as well: a second opinion on grammar, precedence and three-valued logic.

The two languages agree on a part of each. What is left out, and why:

- Property values are text; SQLite compares text and numbers by storage class, RocketMQ reads the text as a number. So
  every property here is numeric (its column holds the number) or a word, and is compared with its own kind only.
- ``x = NULL``: RocketMQ refuses the literal; with ``x`` absent on one side its ``=`` knows False and True where SQL
  knows only NULL. So no two properties are compared for equality, and a literal stands on the right.
- ``NOT`` binds tighter than comparisons in RocketMQ, looser in SQL: it is always followed by a parenthesis.
- ``=`` binds looser than ``<`` in both, but RocketMQ has ``IN``, ``BETWEEN`` and the orders on one level, SQL has not:
  the sides of a comparison are never comparisons without parentheses.
- Values that are no numbers make a RocketMQ comparison fail, which ends the whole expression: none are generated.
- Words have no order in RocketMQ. A bare property is False there and depends on its value in SQL.
- ``0.0`` is no literal; NaN, hexadecimal numbers, suffixes and 32-bit overflow are Java's own; ``TRUE`` is 1 in SQLite.
- CONTAINS, STARTSWITH and ENDSWITH do not exist in SQL, nor do ``NULL`` as a condition and text behind the expression.
"""

from __future__ import annotations

import sqlite3

from hypothesis import given
from hypothesis import strategies as st

from cometmq.model.sql92.selector import Selector

NUMBERS = ("n1", "n2", "n3")
WORDS = ("w1", "w2")
WORD_VALUES = ("x", "it's", "abc", "", "ü")

integers = st.integers(0, 20).map(str)
signed = st.one_of(integers, st.integers(1, 20).map(lambda value: f"-{value}"))
words = st.sampled_from(WORD_VALUES).map(lambda word: "'" + word.replace("'", "''") + "'")
negations = st.sampled_from(["", "NOT "])
numbers = st.sampled_from(NUMBERS)


def borders(name: str, negation: str, one: int, other: int) -> str:
    return f"{name} {negation}BETWEEN {min(one, other)} AND {max(one, other)}"


comparisons = st.one_of(
    st.builds(
        "{} {} {}".format, numbers, st.sampled_from(["=", "<>", ">", ">=", "<", "<="]), signed
    ),
    st.builds("{} {} {}".format, numbers, st.sampled_from([">", ">=", "<", "<="]), numbers),
    st.builds("{} {} {}".format, signed, st.sampled_from([">", ">=", "<", "<="]), numbers),
    st.builds("{} {} {}".format, st.sampled_from(WORDS), st.sampled_from(["=", "<>"]), words),
    st.builds("{} IS {}NULL".format, st.sampled_from(NUMBERS + WORDS), negations),
    st.builds(borders, numbers, negations, st.integers(0, 20), st.integers(0, 20)),
    st.builds(
        lambda name, negation, choices: f"{name} {negation}IN ({', '.join(choices)})",
        st.sampled_from(WORDS),
        negations,
        st.lists(words, min_size=1, max_size=3),
    ),
)
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.builds("{} AND {}".format, inner, inner),
        st.builds("{} OR {}".format, inner, inner),
        st.builds("({})".format, inner),
        st.builds("NOT ({})".format, inner),
        st.builds("({}) IS {}NULL".format, inner, negations),
    ),
    max_leaves=12,
)
rows = st.fixed_dictionaries(
    {},
    optional={
        **{name: st.integers(-20, 20) for name in NUMBERS},
        # An empty value cannot be stored with a message.
        **{name: st.sampled_from([word for word in WORD_VALUES if word]) for name in WORDS},
    },
)


@given(condition=conditions, row=rows)
def test_sqlite_judges_alike(condition: str, row: dict[str, int | str]) -> None:
    columns = ", ".join(f"? AS {name}" for name in NUMBERS + WORDS)
    query = f"SELECT ({condition}) FROM (SELECT {columns})"
    with sqlite3.connect(":memory:") as connection:
        values = [row.get(name) for name in NUMBERS + WORDS]
        ((verdict,),) = connection.execute(query, values).fetchall()
    connection.close()
    message = {name: str(value) for name, value in row.items()}
    assert Selector(condition).matches(message) is (verdict == 1)
    # Unknown and false are told apart, too.
    assert Selector(f"({condition}) IS NULL").matches(message) is (verdict is None)
