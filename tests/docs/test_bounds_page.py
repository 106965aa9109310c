"""The page of bounds is what the software would write now, and the tests that it names exist."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from tools.bounds_page import FIXED, TABLES, Bound, settings

ROOT = Path(__file__).parents[2]
BOUNDS = [bound for _, bounds in TABLES for bound in bounds]


def test_the_page_of_bounds_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.bounds_page", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("bound", [*BOUNDS, *FIXED], ids=lambda bound: bound.what)
def test_the_test_of_a_bound_exists(bound: Bound) -> None:
    file, _, name = bound.test.partition("::")
    tree = ast.parse((ROOT / "tests" / file).read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: bound.what)
def test_the_setting_of_a_bound_exists(bound: Bound) -> None:
    assert bound.setting in settings()
