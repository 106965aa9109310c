"""Goals of a benchmark, as they are printed, stored and shown on the page of figures."""

from __future__ import annotations

from typing import TypedDict


class Goal(TypedDict):
    what: str
    goal: str
    measured: str
    met: bool


def show_goals(goals: list[Goal]) -> None:
    for one in goals:
        verdict = "met" if one["met"] else "MISSED"
        print(f"{one['what']:76} goal {one['goal']:16} {one['measured']}: {verdict}")
