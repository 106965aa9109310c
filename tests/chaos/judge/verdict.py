"""All checks by what they count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tests.chaos.judge import checkers, elections
from tests.chaos.judge.history import History
from tests.chaos.plan.modes import Count

CHECKS: Final[Mapping[Count, Callable[[History], list[str]]]] = {
    Count.LOST: checkers.lost,
    Count.MISSING: checkers.missing,
    Count.ALTERED: checkers.altered,
    Count.PHANTOM: checkers.phantom,
    Count.DUPLICATED: checkers.duplicated,
    Count.REORDERED: checkers.reordered,
    Count.EARLY: checkers.early,
    Count.OFFSET_BACK: checkers.offset_back,
    Count.DIVERGED: checkers.diverged,
    Count.UNEXPECTED: checkers.unexpected,
    Count.TWO_MASTERS: elections.two_masters,
    Count.LEFT_BEHIND: elections.left_behind,
    Count.EPOCH_BACK: elections.epoch_back,
    Count.LATE: elections.late,
}


def judge(history: History) -> dict[Count, list[str]]:
    return {count: check(history) for count, check in CHECKS.items()}
