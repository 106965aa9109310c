"""The page on the architecture is what the import graph would be drawn as now."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "architecture.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("architecture", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its dataclass looks itself up there.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def graph(tool: ModuleType) -> Any:
    """Two houses; in the upper one, two rooms import from each other."""
    return tool.Graph(
        imports={
            "ground": frozenset(),
            "ground.stone": frozenset(),
            "upper": frozenset(),
            "upper.hall": frozenset({"upper.east.bed", "ground.stone"}),
            "upper.east": frozenset(),
            "upper.east.bed": frozenset({"upper.west.bath", "upper.east.lamp"}),
            "upper.east.lamp": frozenset({"ground.stone"}),
            "upper.west": frozenset(),
            "upper.west.bath": frozenset({"upper.east.lamp"}),
        },
        packages=frozenset({"ground", "upper", "upper.east", "upper.west"}),
    )


def test_the_page_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, TOOL, "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_rooms_and_doors_come_from_imports(graph: Any) -> None:
    assert graph.rooms == ["ground", "upper", "upper.east", "upper.west"]
    assert graph.doors["upper.east"] == {
        "upper.east.bed": {"upper"},
        "upper.east.lamp": {"upper.west"},
    }
    assert graph.doors["ground"] == {"ground.stone": {"upper", "upper.east"}}
    assert graph.doors["upper"] == {}
    assert graph.house_imports == {"ground": frozenset(), "upper": {"ground"}}


def test_houses_stand_above_what_they_import(tool: ModuleType, graph: Any) -> None:
    assert tool.draw_houses(graph) == [
        "+- upper ----+",
        "| east  west |",
        "+------------+",
        "        |",
        "        v",
        "+- ground -+",
        "+----------+",
    ]


def test_rooms_that_import_each_other_are_marked(tool: ModuleType, graph: Any) -> None:
    rooms = graph.rooms_in("upper")
    inside = {room: graph.room_imports[room] & set(rooms) for room in rooms}
    assert tool.draw_matrix(inside) == [
        "                 1  2  3",
        "  1  upper       .     x",
        "  2  upper/west     .  x",
        "  3  upper/east     o  .",
    ]


def test_a_package_without_a_docstring_is_named(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "cometmq" / "silent"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    monkeypatch.setattr(tool, "SOURCE", tmp_path)
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    with pytest.raises(tool.NoPurpose, match=r"silent/__init__\.py has no docstring"):
        tool.purpose_of("silent")
