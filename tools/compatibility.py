#!/usr/bin/env python3
"""Renders docs/compatibility.md from what the last interop runs found.

``make interop`` leaves one JSON file for each section below ``results/`` in its cache:

    title    heading of the section
    order    sections come in this order
    intro    optional: a paragraph below the heading
    columns  headings of a table
    rows     its rows, one text for each column
    notes    optional: lines for a list below the table

Keys beyond these are the run's own business. ``--check`` writes nothing and fails when the page is not what the results
say.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent.parent / "docs" / "compatibility.md"

HEAD = """\
# Compatibility, as last run

Written by `make compatibility` from the results of `make interop`, which drives our name server and broker with
software that is not ours. Do not edit: change the tests under `tests/interop/`, run them, and render this page again.
"""


def results_directory() -> Path:
    """Where ``make interop`` leaves its findings."""
    cache = os.environ.get("COMETMQ_CACHE") or Path.home() / ".cache" / "cometmq"
    return Path(cache) / "interop" / "results"


def load_sections(directory: Path) -> list[dict[str, Any]]:
    """All sections that runs have left, in the order of the page."""
    files = sorted(directory.glob("*.json"))
    sections = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    return sorted(sections, key=lambda section: (section["order"], section["title"]))


def render(sections: list[dict[str, Any]]) -> str:
    """The whole page."""
    return "\n".join([HEAD, *map(_section, sections)])


def _section(section: dict[str, Any]) -> str:
    parts = [f"## {section['title']}\n"]
    if section.get("intro"):
        parts.append(f"{section['intro']}\n")
    columns = section["columns"]
    lines = [_row(columns), _row(["---"] * len(columns)), *map(_row, section["rows"])]
    parts.append("\n".join(lines) + "\n")
    if section.get("notes"):
        parts.append("\n".join(f"- {note}" for note in section["notes"]) + "\n")
    return "\n".join(parts)


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description="Render docs/compatibility.md.")
    parser.add_argument("--check", action="store_true", help="only say whether the page is current")
    check = parser.parse_args().check
    sections = load_sections(results_directory())
    if not sections:
        print(f"no results below {results_directory()}; run `make interop` first", file=sys.stderr)
        return 1
    page = render(sections)
    if not check:
        PAGE.write_text(page, encoding="utf-8")
        return 0
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        print(
            f"{PAGE.name} is not what the last run found; run `make compatibility`", file=sys.stderr
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
