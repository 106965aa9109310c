"""Parses property values as numbers the way Java does."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

_INTEGER = re.compile(r"[+-]?\d+")
_DOUBLE = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?P<suffix>[fFdD])?)"
)
_HEX = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+(?P<suffix>[fFdD])?"
)
# Java's trim() removes every character up to the blank.
_BLANKS = "".join(map(chr, range(33)))


class NotANumber(Exception):
    """Text that Java cannot parse as the number it is compared with."""


def int32(text: str) -> int:
    """Raises NotANumber."""
    return _integer(text, -(2**31), 2**31 - 1)


def int64(text: str) -> int:
    """Raises NotANumber."""
    return _integer(text, -(2**63), 2**63 - 1)


def double(text: str) -> float:
    """Raises NotANumber."""
    stripped = text.strip(_BLANKS)
    read: Callable[[str], float] = float
    found = _DOUBLE.fullmatch(stripped)
    if found is None:
        read = float.fromhex
        found = _HEX.fullmatch(stripped)
    if found is None:
        raise NotANumber(text)
    try:
        return read(stripped[:-1] if found["suffix"] else stripped)
    except OverflowError:
        return math.copysign(math.inf, -1 if stripped[0] == "-" else 1)


def compare_doubles(left: float, right: float) -> int:
    """Negative, 0 or positive. Java's total order: -0.0 below 0.0, NaN above all and equal to itself."""
    if left < right:
        return -1
    if left > right:
        return 1
    if left == right:
        if left != 0:
            return 0
        return int(math.copysign(1, left) - math.copysign(1, right))
    return math.isnan(left) - math.isnan(right)


def _integer(text: str, low: int, high: int) -> int:
    if _INTEGER.fullmatch(text) is None:
        raise NotANumber(text)
    try:
        value = int(text)
    except ValueError as error:
        # More than 4300 digits, the most that Python converts by default.
        raise NotANumber(text[:40]) from error
    if not low <= value <= high:
        raise NotANumber(text)
    return value
