"""What a check finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """``UNKNOWN`` is what could not be looked at: it may be a problem. A note needs nothing to be done."""

    PROBLEM = "problem"
    UNKNOWN = "unknown"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """``name`` is for programs; ``remedy`` says how to close it."""

    level: Level
    name: str
    subject: str
    text: str
    remedy: str
