"""The hour before the pictures are taken, as the dashboard would have kept it: charts need a past."""

from __future__ import annotations

import math
import shutil
import time
from pathlib import Path
from typing import Final

from cometmq.dashboard.dashboard_config import FIRST_SITE
from cometmq.dashboard.watch.history import History

HOUR_MS: Final = 3_600_000
STEP_MS: Final = 15_000
STOPPED_MS: Final = 20 * 60_000
"""So long ago the consumers of ``billing`` stopped."""


def write_past(directory: Path) -> None:
    """Into the data directory of a dashboard that has not started yet."""
    history = History(directory / "history.db", keep_ms=24 * HOUR_MS)
    now_ms = int(time.time() * 1000)
    disk = shutil.disk_usage(directory)
    for at_ms in range(now_ms - HOUR_MS, now_ms, STEP_MS):
        values = _values(at_ms, now_ms - at_ms, disk.used / (disk.used + disk.free))
        history.add(at_ms, {f"{FIRST_SITE}/{name}": value for name, value in values.items()})
    history.close()


def _values(at_ms: int, before_ms: int, disk_ratio: float) -> dict[str, float]:
    tide = math.sin(at_ms / 400_000) + 0.3 * math.sin(at_ms / 37_000)
    lag = 160 * max(0.0, 1 - before_ms / STOPPED_MS)
    sent = 26 + 4 * tide
    return {
        "put_tps": sent,
        "get_tps": 1.2 * sent + (8 if before_ms > STOPPED_MS else 0),
        "lag": round(lag),
        "disk_ratio": disk_ratio,
        "group:billing:lag": round(lag),
        "group:billing:tps": 0.0 if before_ms < STOPPED_MS else 2 + 0.6 * tide,
        "topic:Orders:tps": 2 + 0.5 * tide,
        "broker:standalone:put_tps": sent / 2,
        "broker:standalone:get_tps": 0.6 * sent,
        "broker:standalone:disk_ratio": disk_ratio,
    }
