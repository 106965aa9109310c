"""Sums up branch coverage by package, and fails where a package has less than its floor.

    coverage json -q -o - | python tools/coverage_floors.py

The floors stand in pyproject.toml, under tool.cometmq.coverage-floors. A floor is
what there was when it was set, rounded down: raise it when tests are added, never lower it for a change.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = "cometmq"
COUNTED: Final = ("num_statements", "covered_lines", "num_branches", "covered_branches")


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    floors = project["tool"][PACKAGE]["coverage-floors"]
    counts = counts_by_package(json.load(sys.stdin))
    print(f"\n{'package':12} {'lines':>7} {'branches':>9} {'covered':>8} {'floor':>6}")
    for package, count in sorted(counts.items()):
        floor = floors.get(package, "none")
        print(
            f"{package:12} {count['num_statements']:7} {count['num_branches']:9}"
            f" {percent(count):7.1f}% {floor:>6}"
        )
    found = faults(counts, floors)
    print(*found, sep="\n", file=sys.stderr)
    return 1 if found else 0


def counts_by_package(report: Mapping[str, Any]) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {}
    for file, of_file in report["files"].items():
        package = _package(file)
        summary = of_file["summary"]
        counts.setdefault(package, Counter()).update({key: summary[key] for key in COUNTED})
    return counts


def percent(count: Mapping[str, int]) -> float:
    """Of lines and branches together, as coverage itself counts."""
    total = count["num_statements"] + count["num_branches"]
    return 100 * (count["covered_lines"] + count["covered_branches"]) / total if total else 100.0


def faults(counts: Mapping[str, Mapping[str, int]], floors: Mapping[str, int]) -> list[str]:
    below = [
        f"{package}: {percent(count):.1f}% is covered, and {floors[package]}% is its floor"
        for package, count in sorted(counts.items())
        if percent(count) < floors.get(package, 0)
    ]
    without = [f"{package}: set a floor in pyproject.toml" for package in counts.keys() - floors]
    gone = [f"{package}: has a floor, but no code" for package in floors.keys() - counts]
    return [*below, *sorted(without), *sorted(gone)]


def _package(file: str) -> str:
    """The directory or module below the package; its own files are counted under its name."""
    parts = PurePath(file).parts
    below = parts[len(parts) - parts[::-1].index(PACKAGE) :]
    name = PurePath(below[0]).stem
    return PACKAGE if name == "__init__" else name


if __name__ == "__main__":
    sys.exit(main())
