from __future__ import annotations

import pytest

from cometmq.broker.transaction.open_table import OpenHalf
from cometmq.broker.transaction.verdict import Verdict, immunity_ms, judge

HOUR = 3_600_000


def half(*, immunity: int = -1, checks: int = 0) -> OpenHalf:
    return OpenHalf(0, 0, 0, 1_000_000, immunity, checks, "PG", 0)


@pytest.mark.parametrize(
    ("age_ms", "immunity", "checks", "expected"),
    [
        (0, -1, 0, Verdict.WAIT),
        (5999, -1, 0, Verdict.WAIT),
        (6000, -1, 0, Verdict.CHECK),
        (7999, 8000, 0, Verdict.WAIT),
        (8000, 8000, 0, Verdict.CHECK),
        (1, 0, 0, Verdict.CHECK),
        # The sender's clock is ahead of ours.
        (-1, -1, 0, Verdict.CHECK),
        (9000, -1, 14, Verdict.CHECK),
        (9000, -1, 15, Verdict.DISCARD),
        (72 * HOUR, -1, 0, Verdict.CHECK),
        (72 * HOUR + 1, -1, 0, Verdict.DISCARD),
        (72 * HOUR + 1, 100 * HOUR, 0, Verdict.DISCARD),
    ],
)
def test_verdicts(age_ms: int, immunity: int, checks: int, expected: Verdict) -> None:
    found = judge(
        half(immunity=immunity, checks=checks),
        1_000_000 + age_ms,
        timeout_ms=6000,
        check_max=15,
        kept_ms=72 * HOUR,
    )
    assert found is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, -1), ("", -1), ("8", 8000), ("0", 0), ("-1", -1), ("1.5", -1), ("x", -1)],
)
def test_immunity(text: str | None, expected: int) -> None:
    assert immunity_ms(text) == expected
    assert immunity_ms("9" * 40) == -1
