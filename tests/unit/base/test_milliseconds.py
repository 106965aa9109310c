from __future__ import annotations

from dataclasses import dataclass

import pytest

from cometmq.base.milliseconds import begun_ms, passed_ms


@dataclass
class Instant:
    seconds: float

    def monotonic(self) -> float:
        return self.seconds

    def wall_ms(self) -> int:
        raise AssertionError("nobody asks")


@pytest.mark.parametrize("whole_ms", [0, 1, 1001, 4503, 86_400_001, 9_999_999_999])
def test_a_whole_millisecond_is_itself(whole_ms: int) -> None:
    clock = Instant(whole_ms / 1000)
    assert (passed_ms(clock), begun_ms(clock)) == (whole_ms, whole_ms)


@pytest.mark.parametrize("part", [0.01, 0.5, 0.99])
def test_a_part_of_one_has_begun_and_not_passed(part: float) -> None:
    clock = Instant((4503 + part) / 1000)
    assert (passed_ms(clock), begun_ms(clock)) == (4503, 4504)
