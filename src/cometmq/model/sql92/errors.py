"""What can be wrong with an expression."""

from __future__ import annotations

from cometmq.base.errors import UsageError


class BadExpression(UsageError):
    """An expression that cannot be used. ``position`` counts characters from 0."""

    def __init__(self, position: int, expected: str, found: str) -> None:
        super().__init__(f"at character {position + 1}: expected {expected}, found {found}")
        self.position = position
        self.expected = expected
        self.found = found


class TooComplex(BadExpression):
    """It is longer, deeper or has more parts than is allowed. ``bound``: the broker's setting that says how much."""

    def __init__(self, position: int, most: str, found: str, bound: str) -> None:
        super().__init__(position, f"at most {most} ({bound})", found)
        self.bound = bound
