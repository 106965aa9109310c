"""The parts of a parsed expression.

``BETWEEN`` and ``<>`` have no nodes: the parser expands them into comparisons. ``position`` is where a part begins in
the text, for error messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Type(StrEnum):
    """Type of a literal. An integer has the smallest type that holds it, which decides how a property is parsed."""

    BOOLEAN = "boolean"
    INT32 = "32-bit integer"
    INT64 = "64-bit integer"
    DOUBLE = "decimal number"
    TEXT = "string"


NUMBERS = (Type.INT32, Type.INT64, Type.DOUBLE)


@dataclass(frozen=True, slots=True)
class Literal:
    position: int
    type: Type
    value: bool | int | float | str


@dataclass(frozen=True, slots=True)
class Null:
    """``NULL``: an unknown condition."""

    position: int


@dataclass(frozen=True, slots=True)
class Property:
    position: int
    name: str


@dataclass(frozen=True, slots=True)
class Negate:
    position: int
    operand: Node


@dataclass(frozen=True, slots=True)
class Not:
    position: int
    operand: Node


@dataclass(frozen=True, slots=True)
class All:
    """``AND`` of two or more."""

    position: int
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """``OR`` of two or more."""

    position: int
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Equal:
    position: int
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class IsNull:
    position: int
    operand: Node


class Order(StrEnum):
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="


@dataclass(frozen=True, slots=True)
class Ordered:
    position: int
    order: Order
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class OneOf:
    """``[NOT] IN``."""

    position: int
    name: str
    choices: frozenset[str]
    negated: bool


class TextTest(StrEnum):
    CONTAINS = "CONTAINS"
    STARTS = "STARTSWITH"
    ENDS = "ENDSWITH"


@dataclass(frozen=True, slots=True)
class TextMatch:
    position: int
    test: TextTest
    operand: Node
    text: str
    negated: bool


Node = (
    Literal
    | Null
    | Property
    | Negate
    | Not
    | All
    | Any
    | Equal
    | IsNull
    | Ordered
    | OneOf
    | TextMatch
)

BOOLEAN_NODES = (Null, Not, All, Any, Equal, IsNull, Ordered, OneOf, TextMatch)


def is_boolean(node: Node) -> bool:
    """Whether a node can only be true, false or null. A property is not: it holds text."""
    return isinstance(node, BOOLEAN_NODES) or (
        isinstance(node, Literal) and node.type is Type.BOOLEAN
    )
