"""When log files go and when the disk counts as full, as tables."""

from __future__ import annotations

import datetime

import pytest

from cometmq.base.errors import ConfigError
from cometmq.store.store_config import RetentionConfig
from cometmq.store.upkeep.retention import (
    MANUAL_ROUNDS,
    Deletion,
    Retention,
    files_due,
    is_disk_full,
    local_hour,
    parse_hours,
    reason_to_delete,
)
from cometmq.testing.fake_clock import FakeClock

HOUR = 3_600_000
NOW = 1_700_000_000_000
DEFAULT = RetentionConfig()
NEVER_FORCED = RetentionConfig(clean_forcibly=False)


@pytest.mark.parametrize(
    ("used", "was_full", "expected"),
    [
        (0.50, False, False),
        (0.90, False, False),
        (0.91, False, True),
        (0.91, True, True),
        (0.88, False, False),
        (0.88, True, True),
        (0.86, True, True),
        (0.85, True, False),
        (0.20, True, False),
    ],
)
def test_a_full_disk_stays_full_until_it_is_well_below(
    used: float, was_full: bool, expected: bool
) -> None:
    assert is_disk_full(used, was_full, DEFAULT) is expected


@pytest.mark.parametrize(
    ("hour", "used", "manual", "config", "expected"),
    [
        (3, 0.10, False, DEFAULT, None),
        (4, 0.10, False, DEFAULT, "hour"),
        (3, 0.75, False, DEFAULT, None),
        (3, 0.76, False, DEFAULT, "disk"),
        (3, 0.10, True, DEFAULT, "manual"),
        (3, 0.86, False, DEFAULT, "forced"),
        (4, 0.86, True, DEFAULT, "forced"),
        (3, 0.86, False, NEVER_FORCED, "disk"),
        (3, 0.99, False, NEVER_FORCED, "disk"),
    ],
)
def test_reasons_to_delete(
    hour: int, used: float, manual: bool, config: RetentionConfig, expected: str | None
) -> None:
    assert reason_to_delete(hour, frozenset({4}), used, manual, config) == expected


@pytest.mark.parametrize(
    ("ages_hours", "ignore_age", "expected"),
    [
        ([], False, 0),
        ([100], False, 0),
        ([100], True, 0),
        ([100, 1], False, 1),
        ([100, 90, 80, 71, 100, 1], False, 3),
        ([72, 1], False, 0),
        ([73, 1], False, 1),
        ([1, 100, 1], False, 0),
        ([1, 1, 1], True, 2),
        ([100] * 30, False, 10),
        ([1] * 30, True, 10),
        ([100] * 11, False, 10),
        ([100] * 5, False, 4),
    ],
)
def test_files_go_from_the_oldest_to_the_first_that_is_young(
    ages_hours: list[int], ignore_age: bool, expected: int
) -> None:
    modified = [NOW - age * HOUR for age in ages_hours]
    assert files_due(modified, NOW, DEFAULT, ignore_age=ignore_age) == expected


@pytest.mark.parametrize(
    ("text", "hours"), [("04", {4}), ("04;16", {4, 16}), (" 0 ; 23;", {0, 23}), ("", set())]
)
def test_hours_of_delete_when(text: str, hours: set[int]) -> None:
    assert parse_hours(text) == hours


@pytest.mark.parametrize("text", ["24", "-1", "four", "4,5", "4.5", "٤"])
def test_bad_hours_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="deleteWhen"):
        parse_hours(text)


def clock_at_hour(hour: int) -> FakeClock:
    moment = datetime.datetime(2023, 11, 14, hour, 30).astimezone()
    return FakeClock(int(moment.timestamp() * 1000))


def test_the_hour_is_local() -> None:
    assert local_hour(clock_at_hour(4).wall_ms()) == 4


def test_a_run_at_the_hour_and_none_an_hour_later() -> None:
    clock = clock_at_hour(4)
    retention = Retention(DEFAULT, clock)
    old = [clock.wall_ms() - 100 * HOUR] * 3
    assert retention.plan(old, 0.1) == Deletion(2, "hour")
    clock.advance(3600)
    assert retention.plan(old, 0.1) == Deletion(0)


def test_a_request_by_hand_holds_for_some_rounds() -> None:
    clock = clock_at_hour(12)
    retention = Retention(DEFAULT, clock)
    old = [clock.wall_ms() - 100 * HOUR] * 3
    retention.ask()
    plans = [retention.plan(old, 0.1) for _ in range(MANUAL_ROUNDS + 1)]
    assert plans == [Deletion(2, "manual")] * MANUAL_ROUNDS + [Deletion(0)]


def test_a_filling_disk_is_noticed_and_forgotten() -> None:
    clock = clock_at_hour(12)
    retention = Retention(DEFAULT, clock)
    young = [clock.wall_ms()] * 4
    assert retention.plan(young, 0.80) == Deletion(0, "disk")
    assert retention.plan(young, 0.95) == Deletion(3, "forced")
    assert retention.is_disk_full
    retention.watch_disk(0.86)
    assert retention.is_disk_full
    retention.watch_disk(0.84)
    assert not retention.is_disk_full


def test_bad_new_settings_leave_the_old_in_force() -> None:
    clock = clock_at_hour(12)
    retention = Retention(RetentionConfig(delete_when="12"), clock)
    with pytest.raises(ConfigError):
        retention.apply(RetentionConfig(delete_when="noon"))
    old = [clock.wall_ms() - 100 * HOUR] * 2
    assert retention.plan(old, 0.1) == Deletion(1, "hour")
