"""The page about compatibility: sections from JSON files, in their order, as tables."""

from __future__ import annotations

import json
from pathlib import Path

from tools.compatibility import load_sections, render

CLIENTS = {
    "title": "Clients",
    "order": 1,
    "columns": ["feature", "Go"],
    "rows": [["a | b", "passes"], ["view by id", "–"]],
    "notes": ["Go, view by id: the client has no call for it."],
    "scenarios": {"Go": {"x": "passed"}},
}
TOOLS = {"title": "mqadmin", "order": 2, "intro": "Why.", "columns": ["command"], "rows": [["x"]]}


def test_sections_come_in_their_order_whatever_the_files_are_called(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(json.dumps(CLIENTS), encoding="utf-8")
    (tmp_path / "a.json").write_text(json.dumps(TOOLS), encoding="utf-8")
    assert [section["title"] for section in load_sections(tmp_path)] == ["Clients", "mqadmin"]


def test_a_section_is_a_heading_a_table_and_notes() -> None:
    _, _, page = render([CLIENTS, TOOLS]).partition("\n## ")
    assert page.splitlines() == [
        "Clients",
        "",
        "| feature | Go |",
        "| --- | --- |",
        r"| a \| b | passes |",
        "| view by id | – |",
        "",
        "- Go, view by id: the client has no call for it.",
        "",
        "## mqadmin",
        "",
        "Why.",
        "",
        "| command |",
        "| --- |",
        "| x |",
    ]
