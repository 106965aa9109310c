"""How long, how deep and how costly an expression may be, with the settings of a broker that say so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

LENGTH_SETTING: Final = "filterExpressionLengthMax"
DEPTH_SETTING: Final = "filterExpressionDepthMax"
PARTS_SETTING: Final = "filterExpressionPartsMax"

LENGTH_MAX: Final = 16 * 1024
DEPTH_MAX: Final = 64
"""Each level costs seven calls of the parser and one per evaluated message: many more, and Python's stack ends."""
PARTS_MAX: Final = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlLimits:
    """
    Args:
        length_max: characters.
        depth_max: nesting of operators and parentheses.
        parts_max: what is evaluated for a message: operators, properties, values.
    """

    length_max: int = LENGTH_MAX
    depth_max: int = DEPTH_MAX
    parts_max: int = PARTS_MAX


DEFAULT_LIMITS: Final = SqlLimits()
