"""The last values of each series in memory: the tiny charts beside the rows of a list."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Final

POINTS: Final = 30
SERIES_MAX: Final = 20_000


class Trends:
    """A value for each round; a series that is missing in one goes on with its last value when it is back."""

    def __init__(self) -> None:
        # Thousands of them: an array has a tenth of what a list of floats takes.
        self._values: dict[str, array[float]] = {}

    def add(self, values: Mapping[str, float]) -> None:
        for gone in [name for name in self._values if name not in values]:
            del self._values[gone]
        for name, value in values.items():
            if not _is_shown(name):
                continue
            known = self._values.get(name)
            if known is None:
                if len(self._values) >= SERIES_MAX:
                    continue
                known = self._values[name] = array("d")
            if len(known) == POINTS:
                del known[0]
            known.append(value)

    def of(self, name: str) -> list[float]:
        known = self._values.get(name)
        return known.tolist() if known is not None else []


def _is_shown(name: str) -> bool:
    """Whether rows of a list have it."""
    return name.startswith("topic:") or name.endswith((":lag", ":put_tps"))
