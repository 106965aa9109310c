"""Tree -> predicate: every node becomes one function, chosen by the types of its parts when the expression is compiled.

Properties hold text and literals have known types, so the way two sides are compared is known in advance; only the
values differ per message. Logic has three values: True, False and None for "unknown".
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from cometmq.model.sql92.errors import BadExpression, TooComplex
from cometmq.model.sql92.java_numbers import NotANumber, compare_doubles, double, int32, int64
from cometmq.model.sql92.limits import (
    DEFAULT_LIMITS,
    DEPTH_MAX,
    DEPTH_SETTING,
    PARTS_SETTING,
    SqlLimits,
)
from cometmq.model.sql92.parser import parse
from cometmq.model.sql92.tree import (
    NUMBERS,
    All,
    Any,
    Equal,
    IsNull,
    Literal,
    Negate,
    Node,
    Not,
    Null,
    OneOf,
    Order,
    Ordered,
    Property,
    TextMatch,
    TextTest,
    Type,
    is_boolean,
)


class Properties(Protocol):
    """A message's properties: a dict of strings, or another way to look them up."""

    def get(self, name: str, /) -> str | None: ...


Value = bool | int | float | str | None
Evaluate = Callable[[Properties], Value]
Logic = Callable[[Properties], bool | None]
Compare = Callable[[Value, Value], int]


class Incomparable(Exception):
    """Java throws for this pair of types; the message does not match."""


class Selector:
    """An expression ready for use. Immutable, so it may be shared."""

    __slots__ = ("_evaluate", "cost", "text", "tree")

    def __init__(self, text: str, limits: SqlLimits = DEFAULT_LIMITS) -> None:
        """
        Raises:
            BadExpression: RocketMQ would refuse it, or it is too long, too deep or too costly.
        """
        self.text = text
        self.tree = parse(text, limits)
        self._evaluate = _condition(self.tree, 0)
        self.cost = _cost(self.tree)
        """Maximum number of parts of the expression that are evaluated for a message."""
        if self.cost > limits.parts_max:
            raise TooComplex(0, f"{limits.parts_max} parts", f"{self.cost}", PARTS_SETTING)

    def matches(self, properties: Properties) -> bool:
        """Whether a message with these properties matches. Unknown, and incomparable values, do not match."""
        try:
            return self._evaluate(properties) is True
        except (NotANumber, Incomparable):
            return False

    def __repr__(self) -> str:
        return f"<Selector {self.text!r}>"


def _cost(node: Node) -> int:
    match node:
        case Negate(_, operand) | Not(_, operand) | IsNull(_, operand):
            return 1 + _cost(operand)
        case TextMatch():
            return 1 + _cost(node.operand)
        case Equal() | Ordered():
            return 1 + _cost(node.left) + _cost(node.right)
        case All(_, operands) | Any(_, operands):
            return 1 + sum(map(_cost, operands))
        case Literal() | Null() | Property() | OneOf():
            return 1


def _condition(node: Node, depth: int) -> Logic:
    """A node in a place where a truth value is needed."""
    if isinstance(node, Property):
        name = node.name
        # A value is text and never a truth value, not even 'true'.
        return lambda properties: None if properties.get(name) is None else False
    if not is_boolean(node):
        raise BadExpression(node.position, "a condition", "a value that is neither true nor false")
    evaluate, _ = _compile(node, depth)
    return evaluate  # type: ignore[return-value]


def _compile(node: Node, depth: int) -> tuple[Evaluate, Type | None]:
    """The function of a node and the type of its result other than None; no type: always None."""
    if depth > DEPTH_MAX:
        raise TooComplex(node.position, f"{DEPTH_MAX} levels", "one more", DEPTH_SETTING)
    depth += 1
    match node:
        case Literal(_, literal_type, value):
            return (lambda _: value), literal_type
        case Null():
            return (lambda _: None), None
        case Property(_, name):
            return (lambda properties: properties.get(name)), Type.TEXT
        case Negate(_, operand):
            return _negate(*_compile(operand, depth))
        case Not(_, operand):
            return _not(_condition(operand, depth)), Type.BOOLEAN
        case All(_, operands):
            return _all([_condition(part, depth) for part in operands]), Type.BOOLEAN
        case Any(_, operands):
            return _any([_condition(part, depth) for part in operands]), Type.BOOLEAN
        case IsNull(_, operand):
            evaluate, _ = _compile(operand, depth)
            return (lambda properties: evaluate(properties) is None), Type.BOOLEAN
        case Equal():
            return _equal(node, depth), Type.BOOLEAN
        case Ordered():
            return _ordered(node, depth), Type.BOOLEAN
        case OneOf():
            return _one_of(node), Type.BOOLEAN
        case TextMatch():
            return _text_match(node, depth), Type.BOOLEAN


def _negate(evaluate: Evaluate, of: Type | None) -> tuple[Evaluate, Type | None]:
    if of in NUMBERS:
        return (lambda properties: -evaluate(properties)), of  # type: ignore[operator]

    def nothing(properties: Properties) -> None:
        evaluate(properties)  # Called not for its value, but because a part may be incomparable.

    return nothing, None


def _not(condition: Logic) -> Logic:
    def evaluate(properties: Properties) -> bool | None:
        value = condition(properties)
        return None if value is None else not value

    return evaluate


def _all(conditions: list[Logic]) -> Logic:
    def evaluate(properties: Properties) -> bool | None:
        result: bool | None = True
        for condition in conditions:
            value = condition(properties)
            if value is False:
                return False
            if value is None:
                result = None
        return result

    return evaluate


def _any(conditions: list[Logic]) -> Logic:
    def evaluate(properties: Properties) -> bool | None:
        result: bool | None = False
        for condition in conditions:
            value = condition(properties)
            if value is True:
                return True
            if value is None:
                result = None
        return result

    return evaluate


def _equal(node: Equal, depth: int) -> Logic:
    left, right = node.left, node.right
    for side in (left, right):
        if isinstance(side, Null):
            raise BadExpression(side.position, "IS NULL or IS NOT NULL", "a comparison with NULL")
    if (
        isinstance(left, Literal)
        and isinstance(right, Literal)
        and left.type is Type.BOOLEAN
        and right.type is not Type.BOOLEAN
    ):
        raise BadExpression(right.position, "a truth value, as on the left", f"a {right.type}")
    left_of, left_type = _compile(left, depth)
    right_of, right_type = _compile(right, depth)
    compare = _comparer(left_type, right_type)

    def evaluate(properties: Properties) -> bool | None:
        first, second = left_of(properties), right_of(properties)
        if first is None:
            return True if second is None else None
        if second is None:
            return False
        return compare(first, second) == 0

    if left_type is right_type is Type.TEXT:
        # The most frequent case, without a function call for the comparison.
        def evaluate_texts(properties: Properties) -> bool | None:
            first, second = left_of(properties), right_of(properties)
            if first is None:
                return True if second is None else None
            return first == second

        return evaluate_texts
    return evaluate


_ORDERS: Final[Mapping[Order, Callable[[int, int], bool]]] = {
    Order.LESS: operator.lt,
    Order.LESS_OR_EQUAL: operator.le,
    Order.GREATER: operator.gt,
    Order.GREATER_OR_EQUAL: operator.ge,
}


def _ordered(node: Ordered, depth: int) -> Logic:
    for side in (node.left, node.right):
        if is_boolean(side) or (isinstance(side, Literal) and side.type not in NUMBERS):
            raise BadExpression(
                side.position,
                f"a number or a property beside {node.order}",
                "a string"
                if isinstance(side, Literal) and side.type is Type.TEXT
                else "a condition",
            )
    left_of, left_type = _compile(node.left, depth)
    right_of, right_type = _compile(node.right, depth)
    # Strings have no order: both sides must be numbers.
    are_texts = left_type is right_type is Type.TEXT
    compare = _compare_as(double, double) if are_texts else _comparer(left_type, right_type)
    holds = _ORDERS[node.order]

    def evaluate(properties: Properties) -> bool | None:
        first = left_of(properties)
        if first is None:
            return None
        second = right_of(properties)
        if second is None:
            return None
        return holds(compare(first, second), 0)

    return evaluate


def _one_of(node: OneOf) -> Logic:
    name, choices, negated = node.name, node.choices, node.negated

    def evaluate(properties: Properties) -> bool | None:
        value = properties.get(name)
        return None if value is None else (value in choices) is not negated

    return evaluate


_TEXT_TESTS: Final[Mapping[TextTest, Callable[[str, str], bool]]] = {
    TextTest.CONTAINS: operator.contains,
    TextTest.STARTS: str.startswith,
    TextTest.ENDS: str.endswith,
}


def _text_match(node: TextMatch, depth: int) -> Logic:
    operand, operand_type = _compile(node.operand, depth)
    text, negated, test = node.text, node.negated, _TEXT_TESTS[node.test]
    never = not text or operand_type is not Type.TEXT

    def evaluate(properties: Properties) -> bool | None:
        value = operand(properties)
        # False and not unknown, also with NOT.
        if never or value is None:
            return False
        return test(value, text) is not negated  # type: ignore[arg-type]

    return evaluate


def _comparer(left: Type | None, right: Type | None) -> Compare:
    """How values of two types are compared: text is parsed as the other's type, the narrower number is widened."""
    if left is None or right is None:
        return _less  # Never called: one side is always None.
    if left is right:
        if left is Type.DOUBLE:
            return compare_doubles  # type: ignore[return-value]
        return _compare_plain
    if left is Type.BOOLEAN:
        return _fail if right is Type.TEXT else _less
    if left is Type.TEXT:
        return _compare_as(_READERS[right], None)
    if right is Type.TEXT:
        return _compare_as(None, _READERS[left])
    if right is Type.BOOLEAN:
        return _less
    if Type.DOUBLE in (left, right):
        return _compare_widened
    return _compare_plain


def _boolean(text: str) -> bool:
    return text.lower() == "true"


_READERS: Final[Mapping[Type, Callable[[str], bool | int | float]]] = {
    Type.BOOLEAN: _boolean,
    Type.INT32: int32,
    Type.INT64: int64,
    Type.DOUBLE: double,
}


def _compare_as(
    read_left: Callable[[str], Value] | None, read_right: Callable[[str], Value] | None
) -> Compare:
    is_double = double in (read_left, read_right)

    def compare(left: Value, right: Value) -> int:
        first = read_left(left) if read_left is not None else left  # type: ignore[arg-type]
        second = read_right(right) if read_right is not None else right  # type: ignore[arg-type]
        if is_double:
            return compare_doubles(first, second)  # type: ignore[arg-type]
        return _compare_plain(first, second)

    return compare


def _compare_widened(left: Value, right: Value) -> int:
    return compare_doubles(float(left), float(right))  # type: ignore[arg-type]


def _compare_plain(left: Value, right: Value) -> int:
    return (left > right) - (left < right)  # type: ignore[operator]


def _less(left: Value, right: Value) -> int:
    """RocketMQ's result for types that cannot be compared."""
    return -1


def _fail(left: Value, right: Value) -> int:
    raise Incomparable(f"a truth value with {right!r}")
