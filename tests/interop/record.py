"""Keeps what a run found, so that ``tools/compatibility.py`` can make a page of it.

A test that stands for a scenario of a client says so by ``record_property("scenario", (client, scenario))``. At the end
of the run the outcomes are merged into ``results/clients.json`` below the cache, so a run of a few tests renews a few
cells.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from . import features
from .java import cache_root

RESULTS = "results"


class Recorder:
    """A pytest plugin that collects outcomes by client and scenario."""

    def __init__(self) -> None:
        self._outcomes: dict[str, dict[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.outcome == "passed":
            return
        for name, value in report.user_properties:
            if name == "scenario" and isinstance(value, tuple | list):
                client, scenario = value
                self._outcomes.setdefault(client, {})[scenario] = report.outcome

    def pytest_sessionfinish(self) -> None:
        if self._outcomes:
            file = cache_root() / RESULTS / "clients.json"
            scenarios: dict[str, dict[str, str]] = read(file).get("scenarios", {})
            for client, outcomes in self._outcomes.items():
                scenarios.setdefault(client, {}).update(outcomes)
            write(file, {"scenarios": scenarios, **features.section(scenarios)})


def read(file: Path) -> dict[str, Any]:
    """What the last run left; empty when there was none."""
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return found


def write(file: Path, section: dict[str, Any]) -> None:
    """Replaces a section in one step, so that nobody reads half of it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    scratch = file.with_suffix(f".{os.getpid()}")
    scratch.write_text(json.dumps(section, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    scratch.replace(file)
