from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from cometmq.client.aio.send.unique_key_month import month_of


@pytest.fixture(params=["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ZoneInfo]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield ZoneInfo(request.param)
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(("year", "month"), [(2026, 11), (2026, 12), (2024, 2), (2026, 3)])
def test_a_month_is_that_of_the_machines_time_zone(zone: ZoneInfo, year: int, month: int) -> None:
    begin = datetime(year, month, 1, tzinfo=zone)
    end = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=zone)
    expected = (int(begin.timestamp()) * 1000, int(end.timestamp()) * 1000)
    assert month_of(expected[0]) == expected
    assert month_of(expected[0] + 86_400_000 * 14 + 7) == expected
    assert month_of(expected[1] - 1) == expected
