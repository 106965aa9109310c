"""What was planned and what came of it, as plain values: rounds fill them, the report reads them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.compare.cases import OURS, RIVAL, Case, is_judged
from benchmarks.compare.stolen import STOLEN_MAX

CALM_MIN: Final = 3
"""Rounds from which on a median says something."""

JUDGED_TIMES: Final = 3
"""So many times the rounds for rows with a goal: on a machine whose speed changes within seconds, a few rounds are a
game of chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long and how often."""

    systems: Sequence[str]
    cases: Sequence[Case]
    rounds: int
    seconds: float
    warm_seconds: float

    def rounds_of(self, case: Case) -> int:
        return self.rounds * (JUDGED_TIMES if is_judged(case) else 1)

    def systems_in(self, number: int) -> list[str]:
        """Who takes part in a round: in those that only a goal needs, the two that it compares."""
        return list(self.systems) if number < self.rounds else self.judged_systems

    @property
    def judged_systems(self) -> list[str]:
        return [system for system in self.systems if system in (OURS, RIVAL)]


@dataclass(slots=True)
class Row:
    """One line of the table: the figures of every round, by system."""

    name: str
    title: str
    unit: str
    lower_is_better: bool
    values: dict[str, list[float]] = field(default_factory=dict)
    stolen_shares: dict[str, list[float]] = field(default_factory=dict)

    def add(self, system: str, value: float, stolen_share: float) -> None:
        self.values.setdefault(system, []).append(value)
        self.stolen_shares.setdefault(system, []).append(stolen_share)

    def counted(self, system: str) -> list[float]:
        """The figures of rounds that the machine's host left alone; all of them where these are too few."""
        values, shares = self.values.get(system, []), self.stolen_shares.get(system, [])
        calm = [value for value, share in zip(values, shares, strict=True) if share <= STOLEN_MAX]
        return calm if len(calm) >= CALM_MIN else values

    def median(self, system: str) -> float | None:
        values = self.counted(system)
        return statistics.median(values) if values else None


@dataclass
class Outcome:
    """Everything that was measured."""

    rows: dict[str, Row] = field(default_factory=dict)
    details: list[dict[str, Any]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def add(self, system: str, value: float, row: Row, stolen_share: float = 0.0) -> None:
        self.rows.setdefault(row.name, row).add(system, value, stolen_share)

    def take_over(self, newer: Outcome) -> None:
        """Rows that were measured again, in the place of what they were before."""
        cases = {detail["case"] for detail in newer.details}
        self.rows.update(newer.rows)
        self.details = [one for one in self.details if one["case"] not in cases] + newer.details
        self.failures = newer.failures

    def busy_notes(self) -> list[str]:
        """Rounds in which a broker refused sends as "busy": their figure alone would flatter it."""
        return [
            f"{detail['system']}, {detail['case']}: {detail['busy']:,} requests refused as busy, "
            f"{detail['requests']:,} served"
            for detail in self.details
            if detail["busy"]
        ]
