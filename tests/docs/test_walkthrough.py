"""The documents name files, settings and commands that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "cometmq"
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]

_PACKAGE_FILE = re.compile(r"`((?:[a-z_]+/)*[a-z_]+\.py)`")
_PACKAGE_DIRECTORY = re.compile(r"`((?:[a-z_]+/)+)`")
_LINK = re.compile(r"\]\(([^)#]+)\)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_named_in_a_document_exist(document: Path) -> None:
    text = document.read_text()
    named = _PACKAGE_FILE.findall(text)
    missing = [
        name for name in named if not (PACKAGE / name).is_file() and not (ROOT / name).is_file()
    ]
    assert not missing


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    links = [link for link in _LINK.findall(document.read_text()) if "://" not in link]
    missing = [link for link in links if not (document.parent / link).exists()]
    assert not missing


def test_the_life_of_a_message_names_most_of_the_data_path() -> None:
    text = (ROOT / "docs" / "life-of-a-message.md").read_text()
    named = set(_PACKAGE_FILE.findall(text))
    rooms = ("remoting", "store", "broker/processors", "protocol", "client/aio", "client/core")
    for room in (*rooms, "broker/schedule", "broker/timer", "broker/transaction"):
        assert any(name.startswith(f"{room}/") for name in named), room


def test_names_table_points_at_rooms_that_exist() -> None:
    text = (ROOT / "docs" / "names.md").read_text()
    missing = [name for name in _PACKAGE_DIRECTORY.findall(text) if not (PACKAGE / name).is_dir()]
    assert not missing
