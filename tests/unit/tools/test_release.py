"""A release is refused for what would be wrong in it, with a line for each fault."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from email.parser import Parser
from pathlib import Path
from types import ModuleType

import pytest

import cometmq

ROOT = Path(__file__).parents[3]

GOOD = """\
# Changelog

## 0.2.0 (unreleased)

### Added

Client:

- One thing.

### Fixed

- Another.

## 0.1.0 (2026-11-20)

### Added: long ago

- Everything.
"""


@pytest.fixture(scope="module")
def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_version_stands_in_one_place(release: ModuleType) -> None:
    text = (ROOT / "src" / "cometmq" / "__init__.py").read_text()
    assert release.version_of(text) == cometmq.__version__
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/cometmq/__init__.py"
    copies = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "src").rglob("*.py")
        if f'"{cometmq.__version__}"' in path.read_text()
    ]
    assert copies == ["src/cometmq/__init__.py"]


@pytest.mark.parametrize("text", ["", '__version__ = "next"', '__version__ = "1.2"'])
def test_what_is_no_version_is_refused(release: ModuleType, text: str) -> None:
    with pytest.raises(release.NotReady, match="__version__"):
        release.version_of(text)


def test_this_changelog_and_these_documents_are_ready(release: ModuleType) -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    faults = [
        fault
        for fault in release.changelog_faults(text, cometmq.__version__)
        # Between a release and the next rise of the version.
        if "was released before" not in fault
    ]
    assert faults == []
    assert list(release.document_faults(release.documents(), cometmq.__version__)) == []


def test_a_changelog_by_kinds_of_change_is_taken_and_dated(release: ModuleType) -> None:
    assert list(release.changelog_faults(GOOD, "0.2.0")) == []
    dated = release.dated(GOOD, "0.2.0", "2026-12-01")
    assert dated == GOOD.replace("0.2.0 (unreleased)", "0.2.0 (2026-12-01)")
    [fault] = release.changelog_faults(dated, "0.2.0")
    assert "0.2.0 was released before, on 2026-12-01" in fault


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("## 0.2.0", "## 0.3.0", "newest section is 0.3.0"),
        ("### Fixed", "### Removed", "'Removed'"),
        ("### Fixed", "### Added", "once, in this order"),
        ("### Fixed\n\n- Another.", "### Fixed\n", "nothing below Fixed"),
    ],
)
def test_a_changelog_with_a_fault_is_refused(
    release: ModuleType, old: str, new: str, fault: str
) -> None:
    [found] = release.changelog_faults(GOOD.replace(old, new, 1), "0.2.0")
    assert fault in found


def test_a_changelog_without_kinds_is_refused(release: ModuleType) -> None:
    without = re.sub(r"### .*\n", "", GOOD)
    [found] = release.changelog_faults(without, "0.2.0")
    assert "no heading" in found


def test_a_page_that_names_another_wheel_is_found(release: ModuleType) -> None:
    pages = {
        "README.md": "pip install dist/cometmq-0.2.0-py3-none-any.whl",
        "docs/pinned.md": "pip install --find-links dist 'cometmq[spark]==0.1.0'",
        "docs/new.md": "dist/cometmq-0.2.0-cp311-cp311-linux_x86_64.whl",
        "docs/old.md": "pip install 'dist/cometmq-0.1.0-py3-none-any.whl[spark]'",
    }
    found = list(release.document_faults(pages, "0.2.0"))
    assert [fault.split(":")[0] for fault in found] == ["docs/pinned.md", "docs/old.md"]
    assert found[1].startswith("docs/old.md: names the wheel of 0.1.0")


def test_a_compiled_wheel_is_the_other_one_and_its_twins(release: ModuleType) -> None:
    pure = {"cometmq/__init__.py", "cometmq/native/sends.pyx", "cometmq/native/pulls.pyx"}
    sends, pulls = (f"cometmq/native/{name}.cpython-311-x86_64.so" for name in ("sends", "pulls"))
    assert list(release.compiled_faults(pure | {sends, pulls}, pure)) == []
    [fault] = release.compiled_faults(pure | {sends}, pure)
    assert fault == "the compiled wheel lacks cometmq/native/pulls"
    [fault] = release.compiled_faults(pure | {sends, pulls, "cometmq/more.py"}, pure)
    assert "cometmq/more.py" in fault


def test_metadata_that_lacks_something_is_refused(release: ModuleType) -> None:
    whole = (
        "Name: cometmq\nVersion: 0.2.0\nSummary: s\nLicense-Expression: Apache-2.0\n"
        "Requires-Python: >=3.11\nClassifier: c\nDescription-Content-Type: text/markdown\n\n# Text\n"
    )
    assert list(release.metadata_faults(Parser().parsestr(whole), "0.2.0")) == []
    for line in whole.splitlines()[:7]:
        cut = Parser().parsestr(whole.replace(f"{line}\n", ""))
        assert len(list(release.metadata_faults(cut, "0.2.0"))) == 1, line
    assert list(release.metadata_faults(Parser().parsestr(whole), "0.3.0"))
