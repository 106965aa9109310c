"""Splits an expression into tokens, one at a time: RocketMQ never looks at text after a complete expression."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple

from cometmq.model.sql92.errors import BadExpression


class Kind(Enum):
    KEYWORD = "keyword"
    NAME = "property name"
    TEXT = "string"
    INTEGER = "integer"
    DECIMAL = "decimal number"
    SYMBOL = "symbol"
    END = "end"


class Token(NamedTuple):
    """``text`` is as written; keywords are in upper case."""

    kind: Kind
    text: str
    position: int

    def __str__(self) -> str:
        return "the end of the expression" if self.kind is Kind.END else repr(self.text)


KEYWORDS: Final = frozenset(
    [
        "NOT",
        "AND",
        "OR",
        "BETWEEN",
        "IN",
        "IS",
        "NULL",
        "TRUE",
        "FALSE",
        "CONTAINS",
        "STARTSWITH",
        "ENDSWITH",
    ]
)

# A comment to the end of the line needs a line end: without one, '--' is two minus signs.
_SKIPPED = re.compile(r"(?:[ \t\n\r\f]|--[^\n\r]*[\n\r]|/\*.*?\*/)+", re.DOTALL)
_TOKEN = re.compile(
    r"""
      (?P<DECIMAL>[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
    | (?P<INTEGER>[1-9][0-9]*[lL]?|0)
    | (?P<NAME>[A-Za-z_$][A-Za-z0-9_$]*)
    | (?P<TEXT>'(?:''|[^'])*')
    | (?P<SYMBOL><>|>=|<=|[=<>(),+-])
    """,
    re.VERBOSE,
)
_SHOWN_CHARS: Final = 20


def next_token(text: str, position: int) -> tuple[Token, int]:
    """The token at or after ``position``, and where to continue.

    Raises:
        BadExpression: no token can start there.
    """
    if skipped := _SKIPPED.match(text, position):
        position = skipped.end()
    if position == len(text):
        return Token(Kind.END, "", position), position
    found = _TOKEN.match(text, position)
    if found is None:
        rest = text[position : position + _SHOWN_CHARS]
        # The pattern accepts any closed string and any comment.
        expected = {"'": "a closing quote", "/": "a comment /* ... */"}.get(rest[0])
        raise BadExpression(position, expected or "a name, value or operator", repr(rest))
    word = found.group()
    assert found.lastgroup is not None
    kind = Kind[found.lastgroup]
    if kind is Kind.NAME and word.upper() in KEYWORDS:
        kind, word = Kind.KEYWORD, word.upper()
    return Token(kind, word, position), found.end()
