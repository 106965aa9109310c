"""The hooks of pre-commit are the commands of ``make check``, run by the tools of this environment."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]


def hooks() -> list[dict[str, Any]]:
    [repository] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"
    found: list[dict[str, Any]] = repository["hooks"]
    return found


def test_nothing_is_fetched_from_elsewhere() -> None:
    for hook in hooks():
        assert hook["language"] == "system"
        assert hook["entry"].startswith(".venv/bin/")


def test_each_command_of_make_check_is_a_hook() -> None:
    makefile = (ROOT / "Makefile").read_text()
    [recipe] = re.findall(r"^check: .*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    checked = {_tool(line.replace("$(BIN)/", "")) for line in recipe.splitlines()}
    assert {"mypy", "ruff check"} <= checked
    assert checked <= {_tool(hook["entry"].removeprefix(".venv/bin/")) for hook in hooks()}


def _tool(command: str) -> str:
    """Without options and paths."""
    return " ".join(word for word in command.split() if word != "." and not word.startswith("-"))
