"""Rounds that the machine's host disturbed are run once more, and the least disturbed try counts."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.compare.stolen import (
    STOLEN_MAX,
    TRIES_MAX,
    ProcessorTimes,
    least_disturbed,
    parse,
    processor_times,
)


def test_shares_come_from_the_first_line() -> None:
    before = parse("cpu  10 0 5 80 1 0 0 4 0 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    assert before == ProcessorTimes(total=100, stolen=4)
    # A guest's time, the last but one, is in the first field already.
    after = parse("cpu  60 0 5 80 1 0 0 54 7 0\n")
    assert after.stolen_share_since(before) == 0.5
    assert after.stolen_share_since(after) == 0.0


def test_this_machine_has_such_a_line() -> None:
    times = processor_times()
    assert 0 <= times.stolen < times.total


@pytest.mark.parametrize(
    ("shares", "counts"),
    [
        ([STOLEN_MAX], 0),
        ([0.5, 0.01], 1),
        ([0.5, 0.2, 0.3], 1),
        ([0.5, 0.6, 0.0], 2),
    ],
)
def test_the_least_disturbed_try_counts(shares: list[float], counts: int) -> None:
    tries: list[dict[str, Any]] = []

    def run() -> dict[str, Any]:
        tries.append({"stolen_share": shares[len(tries)]})
        return tries[-1]

    assert least_disturbed(run) is tries[counts]
    assert len(tries) == len(shares) <= TRIES_MAX
