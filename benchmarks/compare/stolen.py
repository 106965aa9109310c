"""Processor time that this machine asked for and its host gave to others: "steal" in ``/proc/stat``.

On a virtual machine that shares its processors, whole seconds of a round can be missing. Such a round says something
about the neighbours and nothing about a broker.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

STOLEN_MAX: Final = 0.03
"""A round of which the host took a greater share is run once more ..."""

TRIES_MAX: Final = 3
"""... but not more often than this in all; then the try that lost least counts."""

_STEAL_FIELD: Final = 7
# Those behind are parts of others, counted there.
_FIELDS: Final = 8


class ProcessorTimes(NamedTuple):
    """Of all processors together, since the machine started, in ticks."""

    total: int
    stolen: int

    def stolen_share_since(self, earlier: ProcessorTimes) -> float:
        total = self.total - earlier.total
        return (self.stolen - earlier.stolen) / total if total else 0.0


def parse(text: str) -> ProcessorTimes:
    """The first line of ``/proc/stat``, for example ``cpu  10 0 5 80 1 0 0 4 0 0``."""
    ticks = [int(field) for field in text.splitlines()[0].split()[1 : _FIELDS + 1]]
    return ProcessorTimes(sum(ticks), ticks[_STEAL_FIELD])


def processor_times() -> ProcessorTimes:
    return parse(Path("/proc/stat").read_text(encoding="ascii"))


def least_disturbed(run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What ``run`` gave, with its ``stolen_share``: the first try that lost little, or else the one that lost least."""
    tries: list[dict[str, Any]] = []
    while len(tries) < TRIES_MAX:
        tries.append(run())
        if tries[-1]["stolen_share"] <= STOLEN_MAX:
            return tries[-1]
    return min(tries, key=lambda result: float(result["stolen_share"]))
