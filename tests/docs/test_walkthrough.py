"""Files, links and anchors named in the documents exist."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "cometmq"
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "examples" / "README.md",
    ROOT / "benchmarks" / "README.md",
    *sorted((ROOT / "tests").glob("*/README.md")),
]

_PACKAGE_FILE = re.compile(r"`((?:[a-z_]+/)*[a-z_]+\.py)`")
_PACKAGE_DIRECTORY = re.compile(r"`((?:[a-z_]+/)+)`")
_CODE = re.compile(r"`([^`]+)`")
_LOCK = re.compile(r"\bthreading\.(Lock|RLock|Condition|Semaphore|BoundedSemaphore|Barrier)\(")
_LINK = re.compile(r"\]\(([^)#]*)(?:#([^)]+))?\)")
_CODE_BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_named_in_a_document_exist(document: Path) -> None:
    text = document.read_text()
    named = _PACKAGE_FILE.findall(text)
    places = (PACKAGE, ROOT, document.parent)
    missing = [name for name in named if not any((place / name).is_file() for place in places)]
    assert not missing


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    broken = []
    for path, anchor in _LINK.findall(_CODE_BLOCK.sub("", document.read_text())):
        if "://" in path:
            continue
        target = document.parent / path if path else document
        if not target.exists() or (anchor and anchor not in _anchors(target.read_text())):
            broken.append(f"{path}#{anchor}")
    assert not broken


def test_anchors_are_those_that_a_code_host_makes_from_headings() -> None:
    text = "# Broker (`broker.conf`)\n\n```sh\n# not a heading\n```\n\n## In use\n\n## In use\n"
    assert _anchors(text) == {"broker-brokerconf", "in-use", "in-use-1"}


def test_every_decision_is_listed() -> None:
    directory = ROOT / "docs" / "decisions"
    listed = [path for path, _ in _LINK.findall((directory / "README.md").read_text())]
    assert listed == sorted(path.name for path in directory.glob("0*.md"))


def test_every_page_is_in_the_table_of_contents() -> None:
    """`make docs` refuses to build a page that nobody finds."""
    contents = ROOT / "docs" / "README.md"
    listed = {(contents.parent / path).resolve() for path, _ in _LINK.findall(contents.read_text())}
    decisions = set((ROOT / "docs" / "decisions").glob("0*.md"))
    assert set(DOCUMENTS) - listed - decisions == {ROOT / "README.md", contents}


def test_every_twin_is_in_the_decision_about_them() -> None:
    """What each takes and leaves is said there, in a row that begins with its file."""
    text = (ROOT / "docs" / "decisions" / "0043-compiled-twins.md").read_text()
    rows = re.findall(r"^\| `(\w+)\.pyx` \|", text, re.MULTILINE)
    assert sorted(rows) == sorted(path.stem for path in (PACKAGE / "native").glob("*.pyx"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_page_that_names_mqadmin_says_where_it_comes_from(document: Path) -> None:
    told = ROOT / "docs" / "operating.md"
    assert "\n## mqadmin\n" in told.read_text()
    # Both have a chapter on it; the others are lists of changes, names and decisions for maintainers.
    skipped = {told, ROOT / "docs" / "compatibility.md", ROOT / "CHANGELOG.md"}
    skipped |= set((ROOT / "docs" / "reference").iterdir())
    skipped |= set((ROOT / "docs" / "decisions").iterdir())
    skipped.add(ROOT / "tests" / "interop" / "README.md")
    skipped.add(ROOT / "docs" / "architecture.md")
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


def test_names_table_points_at_rooms_that_exist() -> None:
    text = (ROOT / "docs" / "names.md").read_text()
    missing = [name for name in _PACKAGE_DIRECTORY.findall(text) if not (PACKAGE / name).is_dir()]
    assert not missing


def test_names_table_names_what_is_there() -> None:
    """Every word in code of the second column stands in the files of the third."""
    missing = []
    for line in (ROOT / "docs" / "names.md").read_text().splitlines():
        if len(cells := line.strip("|").split(" | ")) != 3:
            continue
        _, here, where = cells
        files = [file for place in _CODE.findall(where) for file in _modules(PACKAGE / place)]
        text = "\n".join([*map(str, files), *(file.read_text() for file in files)])
        missing += [
            f"{name} in {where.strip()}"
            for name in _CODE.findall(here)
            if not all(re.search(rf"\b{re.escape(part)}\b", text) for part in name.split("."))
        ]
    assert not missing


def test_every_lock_is_in_the_lock_order() -> None:
    named = set(_PACKAGE_FILE.findall((ROOT / "docs" / "lock-order.md").read_text()))
    with_locks = {
        str(file.relative_to(PACKAGE))
        for file in _modules(PACKAGE)
        if _LOCK.search(file.read_text())
    }
    # Fakes for tests.
    assert {name for name in with_locks if not name.startswith("testing/")} <= named


def _modules(place: Path) -> list[Path]:
    return [place] if place.is_file() else sorted(place.rglob("*.py"))


def _anchors(text: str) -> set[str]:
    anchors: set[str] = set()
    for heading in _HEADING.findall(_CODE_BLOCK.sub("", text)):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        repeated = (f"{slug}-{number}" for number in itertools.count(1))
        anchors.add(slug if slug not in anchors else next(r for r in repeated if r not in anchors))
    return anchors
