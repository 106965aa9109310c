"""The options of one call, as text, numbers, truth and times. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import overload

from cometmq.base.errors import UsageError

_TIME_FORM = "%Y-%m-%d#%H:%M:%S"


@dataclass(frozen=True, slots=True)
class Arguments:
    """``found`` has the options that were given, by key, and their values."""

    found: Mapping[str, str]

    def __contains__(self, key: str) -> bool:
        return key in self.found

    def raw(self, key: str) -> str | None:
        """As it was given, with blanks around it."""
        return self.found.get(key)

    @overload
    def text(self, key: str) -> str | None: ...
    @overload
    def text(self, key: str, default: str) -> str: ...
    def text(self, key: str, default: str | None = None) -> str | None:
        """Without blanks around it. An empty value counts as none."""
        return (self.found.get(key) or "").strip() or default

    def needed(self, key: str) -> str:
        """Raises UsageError if it is not given, or empty."""
        text = self.text(key)
        if text is None:
            raise UsageError(f"expected a value for the option -{key}, got an empty one")
        return text

    @overload
    def number(self, key: str, *, low: int | None = ...) -> int | None: ...
    @overload
    def number(self, key: str, default: int, *, low: int | None = ...) -> int: ...
    def number(self, key: str, default: int | None = None, *, low: int | None = None) -> int | None:
        """Raises UsageError for what is no whole number, or below ``low``."""
        text = self.text(key)
        if text is None:
            return default
        if not re.fullmatch(r"[+-]?\d{1,19}", text):
            raise UsageError(f"expected a whole number for the option -{key}, got {text!r}")
        if low is not None and int(text) < low:
            raise UsageError(f"expected at least {low} for the option -{key}, got {text}")
        return int(text)

    @overload
    def truth(self, key: str) -> bool | None: ...
    @overload
    def truth(self, key: str, default: bool) -> bool: ...
    def truth(self, key: str, default: bool | None = None) -> bool | None:
        """Raises UsageError for what is neither true nor false, which RocketMQ's tool takes for false."""
        text = self.text(key)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            raise UsageError(f"expected true or false for the option -{key}, got {text!r}")
        return text.lower() == "true"

    def time(self, key: str) -> int | None:
        """Milliseconds since 1970. Raises UsageError for what is no time."""
        text = self.text(key)
        if text is None:
            return None
        try:
            return milliseconds(text)
        except UsageError as error:
            raise UsageError(f"option -{key}: {error}") from None

    def names(self, key: str) -> list[str]:
        """The parts of a comma list."""
        return [part.strip() for part in self.text(key, "").split(",") if part.strip()]


def milliseconds(text: str) -> int:
    """A time as milliseconds since 1970, or like ``2026-05-17#20:15:00:000`` in the zone of this machine."""
    if re.fullmatch(r"-?\d{1,19}", text):
        return int(text)
    date, _, fraction = text.replace(" ", "#").replace("T", "#").rpartition(":")
    try:
        if not re.fullmatch(r"\d{3}", fraction):
            date, fraction = text.replace(" ", "#").replace("T", "#"), "0"
        moment = datetime.strptime(date, _TIME_FORM).astimezone()
    except ValueError:
        raise UsageError(
            "expected a time as milliseconds since 1970, or like 2026-05-17#20:15:00:000 in local time, "
            f"got {text!r}"
        ) from None
    return int(moment.timestamp()) * 1000 + int(fraction)
