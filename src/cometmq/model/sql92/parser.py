"""Expression text -> tree, by recursive descent; one method for each level of the grammar.

    or          and (OR and)*
    and         equality (AND equality)*
    equality    comparison ( = comparison | <> comparison | IS [NOT] NULL )*
    comparison  unary ( > >= < <= unary | [NOT] BETWEEN unary AND unary | [NOT] IN ( 'text', ... )
                      | [NOT] CONTAINS 'text' | [NOT] STARTSWITH 'text' | [NOT] ENDSWITH 'text' )*
    unary       + unary | - unary | NOT unary | primary
    primary     literal | NULL | property | ( or )

``NOT`` binds tighter than a comparison: ``NOT a = 1`` is ``(NOT a) = 1``. Anything after a complete expression is
ignored. Both are RocketMQ's behaviour.
"""

from __future__ import annotations

from typing import Final, NoReturn

from cometmq.model.sql92.errors import BadExpression, TooComplex
from cometmq.model.sql92.limits import DEFAULT_LIMITS, DEPTH_SETTING, LENGTH_SETTING, SqlLimits
from cometmq.model.sql92.tokens import Kind, Token, next_token
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
)

_ORDERS: Final = frozenset(order.value for order in Order)
_TEXT_TESTS: Final = frozenset(test.value for test in TextTest)
_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1


def parse(text: str, limits: SqlLimits = DEFAULT_LIMITS) -> Node:
    """The tree of an expression.

    Raises:
        BadExpression: it does not follow the grammar, or is too long or too deep.
    """
    if len(text) > limits.length_max:
        most = f"{limits.length_max} characters"
        raise TooComplex(limits.length_max, most, f"{len(text)}", LENGTH_SETTING)
    return _Parser(text, limits.depth_max).any_of()


class _Parser:
    def __init__(self, text: str, depth_max: int) -> None:
        self._text = text
        self._depth_max = depth_max
        self._nesting = 0
        self._token, self._end = next_token(text, 0)

    def any_of(self) -> Node:
        operands = [self._all_of()]
        position = self._token.position
        while self._took("OR"):
            operands.append(self._all_of())
        return operands[0] if len(operands) == 1 else Any(position, tuple(operands))

    def _all_of(self) -> Node:
        operands = [self._equality()]
        position = self._token.position
        while self._took("AND"):
            operands.append(self._equality())
        return operands[0] if len(operands) == 1 else All(position, tuple(operands))

    def _equality(self) -> Node:
        left = self._comparison()
        while True:
            position = self._token.position
            if self._took("="):
                left = Equal(position, left, self._comparison())
            elif self._took("<>"):
                left = Not(position, Equal(position, left, self._comparison()))
            elif self._took("IS"):
                negated = self._took("NOT")
                self._need("NULL")
                left = IsNull(position, left)
                left = Not(position, left) if negated else left
            else:
                return left

    def _comparison(self) -> Node:
        left = self._unary()
        while True:
            token = self._token
            if token.kind is Kind.SYMBOL and token.text in _ORDERS:
                self._advance()
                left = Ordered(token.position, Order(token.text), left, self._unary())
            elif token.kind is Kind.KEYWORD and token.text in ("BETWEEN", "IN", *_TEXT_TESTS):
                left = self._test(left, negated=False)
            elif token.kind is Kind.KEYWORD and token.text == "NOT":
                self._advance()
                left = self._test(left, negated=True)
            else:
                return left

    def _test(self, left: Node, *, negated: bool) -> Node:
        position = self._token.position
        if self._took("BETWEEN"):
            low = self._unary()
            self._need("AND")
            return _between(position, left, low, self._unary(), negated)
        word = self._token.text
        if self._took("IN"):
            if not isinstance(left, Property):
                raise BadExpression(left.position, "a property on the left of IN", "something else")
            name = left.name
            self._need("(")
            choices = [self._need_text()]
            while self._took(","):
                choices.append(self._need_text())
            self._need(")")
            return OneOf(position, name, frozenset(choices), negated)
        if self._token.kind is Kind.KEYWORD and word in _TEXT_TESTS:
            self._advance()
            return TextMatch(position, TextTest(word), left, self._need_text(), negated)
        self._fail("BETWEEN, IN, CONTAINS, STARTSWITH or ENDSWITH behind NOT")

    def _unary(self) -> Node:
        position = self._token.position
        self._nesting += 1
        if self._nesting > self._depth_max:
            raise TooComplex(position, f"{self._depth_max} levels", "one more", DEPTH_SETTING)
        if self._took("+"):
            node = self._unary()
        elif self._took("-"):
            node = Negate(position, self._unary())
        elif self._took("NOT"):
            node = Not(position, self._unary())
        else:
            node = self._primary()
        self._nesting -= 1
        return node

    def _primary(self) -> Node:
        token = self._token
        position = token.position
        if self._took("("):
            inner = self.any_of()
            self._need(")")
            return inner
        if self._took("TRUE"):
            return Literal(position, Type.BOOLEAN, True)
        if self._took("FALSE"):
            return Literal(position, Type.BOOLEAN, False)
        if self._took("NULL"):
            return Null(position)
        if token.kind is Kind.TEXT:
            return Literal(position, Type.TEXT, self._need_text())
        if token.kind is Kind.NAME:
            self._advance()
            return Property(position, token.text)
        if token.kind is Kind.INTEGER:
            self._advance()
            return _integer(token)
        if token.kind is Kind.DECIMAL:
            self._advance()
            return _decimal(token)
        self._fail("a value, a property or '('")

    def _need_text(self) -> str:
        token = self._token
        if token.kind is not Kind.TEXT:
            self._fail("a string such as 'text'")
        self._advance()
        return token.text[1:-1].replace("''", "'")

    def _took(self, word: str) -> bool:
        """Consume a keyword or symbol if it comes next."""
        token = self._token
        if token.text != word or token.kind not in (Kind.KEYWORD, Kind.SYMBOL):
            return False
        self._advance()
        return True

    def _need(self, word: str) -> None:
        if not self._took(word):
            self._fail(word)

    def _advance(self) -> None:
        self._token, self._end = next_token(self._text, self._end)

    def _fail(self, expected: str) -> NoReturn:
        raise BadExpression(self._token.position, expected, str(self._token))


def _between(position: int, value: Node, low: Node, high: Node, negated: bool) -> Node:
    if negated:
        below = Ordered(position, Order.LESS, value, low)
        return Any(position, (below, Ordered(position, Order.GREATER, value, high)))
    if isinstance(low, Literal) and isinstance(high, Literal):
        _check_borders(low, high)
    least = Ordered(position, Order.GREATER_OR_EQUAL, value, low)
    return All(position, (least, Ordered(position, Order.LESS_OR_EQUAL, value, high)))


def _check_borders(low: Literal, high: Literal) -> None:
    """RocketMQ checks this for BETWEEN but not for NOT BETWEEN. Types are checked as in any comparison."""
    if low.type in NUMBERS and high.type in NUMBERS and low.value > high.value:  # type: ignore[operator]
        raise BadExpression(high.position, f"{low.value} or more", str(high.value))


def _integer(token: Token) -> Literal:
    value = int(token.text.rstrip("lL")) if len(token.text) <= 20 else _INT64_MAX + 1
    if value > _INT64_MAX:
        raise BadExpression(token.position, f"an integer up to {_INT64_MAX}", token.text[:40])
    return Literal(token.position, Type.INT32 if value <= _INT32_MAX else Type.INT64, value)


def _decimal(token: Token) -> Literal:
    value = float(token.text)
    # Java's smallest positive double is the lower limit, so zero itself is refused.
    if not 0 < value < float("inf"):
        raise BadExpression(
            token.position, "a decimal number between 4.9E-324 and 1.8E308", token.text[:40]
        )
    return Literal(token.position, Type.DOUBLE, value)
