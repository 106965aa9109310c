"""Makes a release ready: dates its section of the changelog, builds wheels and sdist into dist/, looks at them.

    python -m tools.release            # `make release`
    python -m tools.release --dry-run  # the same checks, leaving the changelog and dist/ alone

The version is that of src/cometmq/__init__.py. Nothing is committed, tagged or uploaded: what is left to do is printed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Final

from tools.portable_wheel import NotPortable, make_portable

ROOT: Final = Path(__file__).parents[1]
CHANGELOG: Final = ROOT / "CHANGELOG.md"
KINDS: Final = ("Added", "Changed", "Fixed")
UNRELEASED: Final = "unreleased"

_VERSION = re.compile(r'^__version__ = "(\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?)"$', re.MULTILINE)
_SECTION = re.compile(r"^## (\S+) \((.+)\)$", re.MULTILINE)
_KIND = re.compile(r"^### (.+)$", re.MULTILINE)
_PINNED = re.compile(r"cometmq(?:\[[\w,]+\])?==(\d[\w.]*)")
_WHEEL_NAME = re.compile(r"cometmq-(\d[\w.]*)-[\w.]+-[\w.]+-[\w.]+\.whl")

NEXT_STEPS = """
{version} is ready in dist/:
{files}

What is left to do:
  1. make test                                   # if it was not run on this tree
  2. git commit -m "Release {version}" CHANGELOG.md
  3. git tag -a v{version} -m "CometMQ {version}"
  4. push both, and upload the files to the package index with a tool of your choice
  5. for what comes next: raise __version__ in src/cometmq/__init__.py, and begin CHANGELOG.md with
     "## <that version> (unreleased)"
"""


class NotReady(Exception):
    """What has to be mended first, a line each."""


def main(*, is_dry: bool) -> None:
    version = version_of((ROOT / "src" / "cometmq" / "__init__.py").read_text())
    changelog = CHANGELOG.read_text()
    _refuse([*changelog_faults(changelog, version), *document_faults(documents(), version)])
    if is_dry:
        with tempfile.TemporaryDirectory() as directory:
            build_and_look(Path(directory), version)
        print(f"{version} could be released")
        return
    today = datetime.now(UTC).date().isoformat()
    CHANGELOG.write_text(dated(changelog, version, today))
    try:
        built = build_and_look(ROOT / "dist", version)
    except BaseException:
        CHANGELOG.write_text(changelog)
        raise
    files = "\n".join(f"  {path.name}" for path in built)
    print(NEXT_STEPS.format(version=version, files=files))


def version_of(module: str) -> str:
    """Raises NotReady when the module has none, or one that is no version."""
    found = _VERSION.search(module)
    if found is None:
        raise NotReady('src/cometmq/__init__.py: there is no line __version__ = "1.2.3"')
    return found[1]


def changelog_faults(changelog: str, version: str) -> Iterator[str]:
    """The newest section is this version's, unreleased, and sorted by kinds of change."""
    sections = list(_SECTION.finditer(changelog))
    if not sections or sections[0][1] != version:
        newest = sections[0][1] if sections else "none"
        yield f"CHANGELOG.md: the newest section is {newest}, but the version is {version}"
        return
    if sections[0][2] != UNRELEASED:
        yield f"CHANGELOG.md: {version} was released before, on {sections[0][2]}: raise __version__"
    end = sections[1].start() if len(sections) > 1 else len(changelog)
    yield from _section_faults(changelog[sections[0].end() : end])


def dated(changelog: str, version: str, date: str) -> str:
    return changelog.replace(f"## {version} ({UNRELEASED})\n", f"## {version} ({date})\n", 1)


def documents() -> dict[str, str]:
    """Name and text of the README and of every page."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {str(page.relative_to(ROOT)): page.read_text() for page in pages}


def document_faults(pages: dict[str, str], version: str) -> Iterator[str]:
    """Where a page names a wheel, it is this one."""
    for name, text in pages.items():
        named = {*_WHEEL_NAME.findall(text), *_PINNED.findall(text)}
        for found in sorted(named - {version}):
            yield f"{name}: names the wheel of {found}, but the version is {version}"


def build_and_look(directory: Path, version: str) -> list[Path]:
    """Raises NotReady."""
    wheel = directory / f"cometmq-{version}-py3-none-any.whl"
    sdist = directory / f"cometmq-{version}.tar.gz"
    for stale in directory.glob("cometmq-*.whl"):
        stale.unlink()
    _build(ROOT, directory, "-t", "sdist", "-t", "wheel")
    _build(ROOT, directory, "-t", "wheel", implementation="python")
    # Without a C compiler both are one.
    try:
        compiled = make_portable(directory)
    except NotPortable as error:
        raise NotReady(str(error)) from None
    with tempfile.TemporaryDirectory() as other:
        shutil.unpack_archive(sdist, other)
        source = Path(other) / f"cometmq-{version}"
        _build(source, Path(other), "-t", "wheel", implementation="python")
        from_sdist = _names(Path(other) / wheel.name)
    faults = list(metadata_faults(_metadata(wheel), version))
    if from_sdist != _names(wheel):
        differing = ", ".join(sorted(from_sdist ^ _names(wheel)))
        faults.append(
            f"the wheel made from the sdist is another one; only one of both has {differing}"
        )
    for one in compiled:
        faults += compiled_faults(_names(one), _names(wheel))
    _refuse(faults)
    return [wheel, *compiled, sdist]


def metadata_faults(metadata: Message, version: str) -> Iterator[str]:
    """What an index would refuse, or show to nobody's use."""
    if metadata["Version"] != version:
        yield f"metadata: version {metadata['Version']}, but it is {version}"
    for key in ("Name", "Summary", "License-Expression", "Requires-Python", "Classifier"):
        if not metadata[key]:
            yield f"metadata: no {key}"
    if metadata["Description-Content-Type"] != "text/markdown" or not metadata.get_payload():
        yield "metadata: no description in Markdown"


def compiled_faults(compiled: set[str], pure: set[str]) -> Iterator[str]:
    """A compiled wheel has the compiled twins besides, and nothing else."""
    twins = {name for name in pure if name.endswith(".pyx")}
    stems = {name.partition(".")[0] for name in compiled - pure}
    if missing := {name.removesuffix(".pyx") for name in twins} - stems:
        yield f"the compiled wheel lacks {', '.join(sorted(missing))}"
    others = {name for name in compiled ^ pure if not name.endswith(".so")}
    if others:
        yield f"only one of both wheels has {', '.join(sorted(others))}"


def _section_faults(section: str) -> Iterator[str]:
    found = _KIND.findall(section)
    for kind in found:
        if kind not in KINDS:
            yield f"CHANGELOG.md: a heading {kind!r}; expected {', '.join(KINDS)}"
    if not found:
        yield f"CHANGELOG.md: no heading of {', '.join(KINDS)}"
    known = [kind for kind in found if kind in KINDS]
    if known != [kind for kind in KINDS if kind in known]:
        yield f"CHANGELOG.md: each of {', '.join(KINDS)} once, in this order"
    for kind, text in zip(found, _KIND.split(section)[2::2], strict=True):
        if "\n- " not in text:
            yield f"CHANGELOG.md: nothing below {kind}"


def _build(source: Path, directory: Path, *targets: str, implementation: str = "auto") -> None:
    """
    Args:
        implementation: ``python`` leaves the compiled twins out.
    """
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", *targets, "-d", str(directory)],
        cwd=source,
        env={**os.environ, "COMETMQ_IMPL": implementation},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NotReady(f"the build failed:\n{done.stdout}{done.stderr}")


def _names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


def _refuse(faults: list[str]) -> None:
    if faults:
        raise NotReady("\n".join(faults))


if __name__ == "__main__":
    try:
        main(is_dry="--dry-run" in sys.argv[1:])
    except NotReady as fault:
        raise SystemExit(f"not ready for a release:\n{fault}") from None
