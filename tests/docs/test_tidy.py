"""Nothing in the repository ties it to one machine, one workplace or one registry."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Assembled from pieces, so that this file does not contain what it looks for.
FORBIDDEN = [
    re.compile("/".join(("", "work", ""))),
    re.compile("/".join(("", "root", ""))),
    re.compile(
        r"\b(pypi\.org|files\.pythonhosted|repo1?\.maven|registry\.npmjs|proxy\.golang)" + ""
    ),
]


def _tracked_text_files() -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    names = [name for name in listing.stdout.decode().split("\0") if name]
    skipped = {"tests/docs/test_tidy.py"}
    return [
        ROOT / name
        for name in names
        if name not in skipped and not name.startswith("tests/golden/") and (ROOT / name).is_file()
    ]


def test_no_machine_paths_and_no_registry_hosts() -> None:
    found = []
    for path in _tracked_text_files():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {p.pattern}" for p in FORBIDDEN if p.search(text)]
    assert not found


def test_every_python_module_has_a_purpose() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "src" / "cometmq").rglob("*.py")
        if not path.read_text().startswith('"""')
    ]
    assert not silent


def test_no_package_is_a_long_list() -> None:
    """A reader takes in some fifteen names at a glance; what is more becomes packages by feature."""
    modules_max = 15
    entries = {"__init__.py", "__main__.py"}
    long = {}
    for package in (ROOT / "src" / "cometmq").rglob("__init__.py"):
        modules = [path for path in package.parent.glob("*.py") if path.name not in entries]
        if len(modules) > modules_max:
            long[str(package.parent.relative_to(ROOT))] = len(modules)
    assert not long
