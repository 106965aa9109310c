"""The documents name files, settings and commands that exist."""

from __future__ import annotations

import re
import subprocess
import sys
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


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_page_that_names_mqadmin_says_where_it_comes_from(document: Path) -> None:
    told = ROOT / "docs" / "operating.md"
    assert "\n## mqadmin\n" in told.read_text()
    # Both have a chapter on it; the others are lists of changes, names and decisions for maintainers.
    skipped = {told, ROOT / "docs" / "compatibility.md", ROOT / "CHANGELOG.md"}
    skipped |= set((ROOT / "docs" / "reference").iterdir())
    skipped |= set((ROOT / "docs" / "decisions").iterdir())
    text = document.read_text()
    if "mqadmin" in text and document not in skipped:
        assert "operating.md#mqadmin)" in text


def test_the_broker_starts_with_the_file_that_the_readme_names() -> None:
    [name] = re.findall(r"mqbroker .*-c (\S+)", (ROOT / "README.md").read_text())
    done = subprocess.run(
        [Path(sys.executable).parent / "mqbroker", "-c", name, "-p"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "brokerName=" in done.stdout


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
