"""Turns an ``Outcome`` into a table, a verdict on the goals, and the file that is kept."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.compare.cases import GOALS, OURS, RIVAL, SYSTEMS, Goal
from benchmarks.compare.outcome import JUDGED_TIMES, Outcome, Plan, Row
from benchmarks.compare.stolen import STOLEN_MAX, TRIES_MAX


@dataclass(frozen=True, slots=True)
class Verdict:
    """A goal and what became of it.

    Args:
        rival_ratio: RIVAL's own ratio of the two rows, where the goal asks for it and it was measured.
    """

    goal: Goal
    ratio: float
    is_met: bool
    rival_ratio: float | None = None

    def __str__(self) -> str:
        sign = "met" if self.is_met else "MISSED"
        if self.rival_ratio is None:
            return f"{self.goal.ratio:g}: {sign}"
        if self.goal.shows_rivals:
            kept = f"ours keeps {self.ratio:.2f}, {RIVAL} {self.rival_ratio:.2f}"
            return f"{self.goal.ratio:g}: {sign} ({kept})"
        return f"{self.goal.ratio:g} and {RIVAL}'s {self.rival_ratio:.2f}: {sign}"


def table(outcome: Outcome, systems: Sequence[str]) -> str:
    """A Markdown table: medians, and ours divided by each other system's."""
    others = [system for system in systems if system != OURS] if OURS in systems else []
    head = ["what", "unit", *systems, *(f"ours : {system}" for system in others), "goal"]
    verdicts = {verdict.goal.row: verdict for verdict in judge(outcome)}
    lines = [head]
    for row in outcome.rows.values():
        ratios = [_ratio_text(row.median(OURS), row.median(system)) for system in others]
        verdict = verdicts.get(row.name)
        goal = f"{'≤' if row.lower_is_better else '≥'} {verdict}" if verdict else ""
        values = [_number(row.median(system)) for system in systems]
        lines.append([row.title, row.unit, *values, *ratios, goal])
    return _markdown(lines)


def judge(outcome: Outcome, goals: Sequence[Goal] = GOALS) -> list[Verdict]:
    """The goals for which both figures are there."""
    verdicts = []
    for goal in goals:
        row = outcome.rows.get(goal.row)
        ratio = _ratio(outcome, goal, OURS)
        if row is None or ratio is None:
            continue
        is_met = ratio <= goal.ratio if row.lower_is_better else ratio >= goal.ratio
        is_told = goal.is_rivals_too or goal.shows_rivals
        rival_ratio = _ratio(outcome, goal, RIVAL) if is_told else None
        if rival_ratio is not None and goal.is_rivals_too:
            is_met &= ratio <= rival_ratio if row.lower_is_better else ratio >= rival_ratio
        verdicts.append(Verdict(goal, ratio, is_met, rival_ratio))
    return verdicts


def _ratio(outcome: Outcome, goal: Goal, system: str) -> float | None:
    """A system's figure divided by its own in the other row, or else by RIVAL's in the same."""
    row, reference = outcome.rows.get(goal.row), outcome.rows.get(goal.against_row or goal.row)
    if row is None or reference is None:
        return None
    value, other = row.median(system), reference.median(system if goal.against_row else RIVAL)
    return value / other if value is not None and other else None


def as_json(outcome: Outcome, plan: Plan, limits: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that was measured and on what, without a word about whose machine it was."""
    return {
        "machine": _machine(),
        "plan": {
            # Rows that are kept from another run may have more of them.
            "systems": [
                system
                for system in SYSTEMS
                if any(system in row.values for row in outcome.rows.values())
            ],
            "rounds": plan.rounds,
            "rounds_with_goal": plan.rounds * JUDGED_TIMES,
            "stolen_share_wanted_at_most": STOLEN_MAX,
            "tries_of_a_round_with_goal_at_most": TRIES_MAX,
            "seconds": plan.seconds,
            "warm_seconds": plan.warm_seconds,
        },
        "load_program_limits": dict(limits),
        "goals": [
            {
                "row": v.goal.row,
                "wanted": v.goal.ratio,
                "ratio": round(v.ratio, 3),
                "met": v.is_met,
                **({"rival_ratio": round(v.rival_ratio, 3)} if v.rival_ratio is not None else {}),
            }
            for v in judge(outcome)
        ],
        "rows": {row.name: _row_json(row) for row in outcome.rows.values()},
        "rounds": outcome.details,
        "failures": outcome.failures,
    }


def from_json(kept: Mapping[str, Any]) -> Outcome:
    """What ``as_json`` has kept."""
    rows = {
        name: Row(
            name,
            row["title"],
            row["unit"],
            row["lower_is_better"],
            row["values"],
            row["stolen_shares"],
        )
        for name, row in kept["rows"].items()
    }
    return Outcome(rows, kept["rounds"], kept["failures"])


def _row_json(row: Row) -> dict[str, Any]:
    return {
        "title": row.title,
        "unit": row.unit,
        "lower_is_better": row.lower_is_better,
        "medians": {system: row.median(system) for system in row.values},
        "values": row.values,
        "stolen_shares": row.stolen_shares,
        "rounds_counted": {system: len(row.counted(system)) for system in row.values},
    }


def _machine() -> dict[str, Any]:
    cpus = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in cpus if line.startswith("model name")]
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "java": _java_version(),
    }


def _java_version() -> str:
    if shutil.which("java") is None:
        return "none"
    told = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    return told.splitlines()[0] if told else "unknown"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def _ratio_text(ours: float | None, theirs: float | None) -> str:
    return f"{ours / theirs:.2f}" if ours is not None and theirs else "-"


def _markdown(lines: list[list[str]]) -> str:
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    aligned = [
        [
            text.ljust(width) if column == 0 else text.rjust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        for line in lines
    ]
    rule = [
        "-" * width if column == 0 else "-" * (width - 1) + ":"
        for column, width in enumerate(widths)
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in [aligned[0], rule, *aligned[1:]])
