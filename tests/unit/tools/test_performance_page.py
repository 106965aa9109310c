"""What the page of figures says about masters and slaves."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOOL = Path(__file__).parents[3] / "tools" / "performance_page.py"
CATCH_UP = {
    "bytes": 5_000_000_000,
    "disk_mb_per_second": [400.0, 500.0],
    "tcp_mb_per_second": 450.0,
    "log_mb_per_second": 300.4,
    "queues_mb_per_second": 120.0,
    "goal_mb_per_second": 250,
    "met": True,
}
FAIL_OVER = {
    "kills": 50,
    "rate": 1000,
    "acknowledged": 100_000,
    "lost": 0,
    "not_at_slave": 0,
    "median_seconds": 0.3,
    "worst_seconds": 6.0,
    "goal_seconds": 5.0,
}
METADATA = {
    "topics": 10_000,
    "slaves": 2,
    "stall_cpu_ms": 14.6,
    "stall_ms": 33.0,
    "goal_ms": 20.0,
    "met": True,
}


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("performance_page", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    results = {"catch_up": CATCH_UP, "fail_over": FAIL_OVER, "metadata_sync": METADATA}
    for name, result in results.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(result))
    return module


def compared(directory: Path, *goals: dict[str, Any]) -> None:
    (directory / "compare.json").write_text(json.dumps({"goals": goals}))


def test_goals_of_masters_and_slaves_are_told(tool: ModuleType, tmp_path: Path) -> None:
    shares = {"ratio": 0.91, "rival_ratio": 0.8, "met": True}
    compared(
        tmp_path,
        {"row": "copied-1k-4x64", "wanted": 0.85, **shares},
        {"row": "copied-sync-1k-4x64", "wanted": 0.6, "ratio": 0.5, "met": False},
    )
    text = tool.replication()
    assert text.count("met |") == 4
    for line in (
        "| ≥ 0.85, ≥ rocketmq-4.9.7's | 0.91, rocketmq-4.9.7's 0.80 | met |",
        "| ≥ 0.6 | 0.50 | **missed** |",
        "| a slave that is 5 GB behind: log | ≥ 250 MB/s | 300 MB/s | met |",
        "| 400 and 500 MB/s |",
        "| 0 | 0 of 100,000 acknowledged | met |",
        "| ≤ 5 s | 6.00 s, median 0.30 | **missed** |",
        "| ≤ 20 ms | 15 ms of processor time, 33 by the clock | met |",
    ):
        assert line in text


def test_goals_under_a_controller_are_told(tool: ModuleType, tmp_path: Path) -> None:
    rows = {
        "elections": {"what": "lost", "goal": "0", "measured": "0 of 9", "met": True},
        "many_groups": {"what": "cost", "goal": "< 10%", "measured": "12%", "met": False},
    }
    for name, goal in rows.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"goals": [goal]}))
    lost, cost = tool.controlled().splitlines()[2:]
    assert lost == "| lost | 0 | 0 of 9 | met |"
    assert cost == "| cost | < 10% | 12% | **missed** |"


def test_listings_are_told_with_their_goals(tool: ModuleType, tmp_path: Path) -> None:
    goals = [
        {"what": "mqadmin topicList", "goal": "below 2 s", "measured": "0.20 s", "met": True},
        {"what": "admin.topics.rows", "goal": "below 2 s", "measured": "2.10 s", "met": False},
    ]
    sizes = {"topics": 1000, "groups": 2000, "brokers": 3, "rounds": 5}
    (tmp_path / "admin.json").write_text(json.dumps({"sizes": sizes, "goals": goals}))
    *_, listed, rows = tool.listings().splitlines()
    assert listed == "| `mqadmin topicList` | below 2 s | 0.20 s | met |"
    assert rows == "| `admin.topics.rows` | below 2 s | 2.10 s | **missed** |"


def test_rows_that_were_not_compared_are_left_out(tool: ModuleType, tmp_path: Path) -> None:
    compared(tmp_path)
    assert "rate of" not in tool.replication()


def test_the_page_has_a_place_for_each_part(tool: ModuleType) -> None:
    text = tool.PAGE.read_text()
    for name in (
        "brokers",
        "replication",
        "controlled",
        "listings",
        "clients",
        "steps",
        "spark-readers",
        "spark-goals",
    ):
        assert tool.fill(text, name, "x") != text


def test_what_was_not_measured_says_how(tool: ModuleType) -> None:
    assert "benchmarks.growth" in tool.growth()
    assert "benchmarks.others" in tool.others()


def test_curves_tell_how_much_is_kept(tool: ModuleType, tmp_path: Path) -> None:
    curves = {
        "topics": {
            "x_title": "topics",
            "points": [[1, 100_000, 2.5], [100, 70_000, None], [50_000, 80_000, 5.0]],
        }
    }
    (tmp_path / "growth.json").write_text(json.dumps(curves))
    text = tool.growth()
    assert "| topics: 1 to 50,000 | 100,000 to 80,000 | 2.50 to 5.00 | 0.80 |" in text
    assert "(growth.svg)" in text


def test_other_queues_have_medians(tool: ModuleType, tmp_path: Path) -> None:
    columns = ("send cache", "receive cache", "send disk", "receive disk")
    rates = {column: [100.0, 300.0, 200.0] for column in columns}
    (tmp_path / "others.json").write_text(json.dumps({"redis": rates}))
    assert "| redis | 200 | 200 | 200 | 200 |" in tool.others()
