"""Coverage below a floor is told by package."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
TOOL = ROOT / "tools" / "coverage_floors.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("coverage_floors", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def report(**files: tuple[int, int, int, int]) -> dict[str, object]:
    names = ("num_statements", "covered_lines", "num_branches", "covered_branches")
    return {
        "files": {
            f"src/cometmq/{name.replace('__', '/')}.py": {
                "summary": dict(zip(names, numbers, strict=True))
            }
            for name, numbers in files.items()
        }
    }


def test_lines_and_branches_of_a_package_are_added_up(tool: ModuleType) -> None:
    counts = tool.counts_by_package(
        report(store__log=(10, 9, 4, 2), store__log__file=(6, 5, 0, 0), standalone=(1, 1, 0, 0))
    )
    assert tool.percent(counts["store"]) == pytest.approx(100 * (9 + 2 + 5) / (10 + 4 + 6))
    assert tool.percent(counts["standalone"]) == 100


def test_packages_below_or_without_a_floor_are_faults(tool: ModuleType) -> None:
    counts = tool.counts_by_package(
        report(base__a=(10, 9, 0, 0), store__b=(10, 8, 0, 0), new__c=(1, 1, 0, 0))
    )
    found = tool.faults(counts, {"base": 90, "store": 81, "old": 50})
    assert found == [
        "store: 80.0% is covered, and 81% is its floor",
        "new: set a floor in pyproject.toml",
        "old: has a floor, but no code",
    ]


def test_the_command_fails_below_the_floors_of_this_project() -> None:
    nothing = json.dumps(report(base__a=(10, 0, 0, 0)))
    done = subprocess.run(
        [sys.executable, TOOL], input=nothing, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "base: 0.0% is covered" in done.stderr


def test_every_package_has_a_floor() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = {path.stem for path in (ROOT / "src" / "cometmq").iterdir()} - {"__pycache__"}
    packages -= {"__init__", "py"}
    assert set(project["tool"]["cometmq"]["coverage-floors"]) - {"cometmq"} == packages
