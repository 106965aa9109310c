"""The wheel that ``make build`` makes is the one that the README installs, and has all that the software needs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from tests.docs.page_walk import quick_steps, work_through
from tests.docs.reader import reader

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial" / "first-consumer.md"
CLIENT_NEEDS = {"lz4", "msgspec", "zstandard"}
COMMANDS_NEED = {"click"}

pytestmark = [
    pytest.mark.slow,
    # In one worker, so that there is one wheel.
    pytest.mark.xdist_group("wheel"),
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    # The tool that builds it is here already.
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(directory), str(ROOT))
    [wheel] = directory.glob("*.whl")
    return wheel


def test_the_readme_installs_what_make_builds(wheel: Path) -> None:
    assert "$(BIN)/python -m hatchling build -t wheel\n" in (ROOT / "Makefile").read_text()
    assert f"pip install dist/{wheel.name}\n" in (ROOT / "README.md").read_text()


def test_the_wheel_says_who_needs_what(wheel: Path) -> None:
    metadata = _metadata(wheel)
    required = metadata.get_all("Requires-Dist", [])
    always = {_name(one) for one in required if ";" not in one}
    assert always == CLIENT_NEEDS | COMMANDS_NEED
    where_it_exists = [
        one for one in required if "extra ==" not in one and _name(one) not in always
    ]
    [uvloop] = where_it_exists
    assert _name(uvloop) == "uvloop"
    assert "sys_platform != 'win32'" in uvloop.replace('"', "'")
    assert {"spark", "java", "otel"} <= set(metadata.get_all("Provides-Extra", []))


def test_the_wheel_has_every_file(wheel: Path, tmp_path: Path) -> None:
    # What it depends on is here already.
    site = tmp_path / "site"
    _pip("install", "--no-deps", "--no-index", "--target", str(site), str(wheel))
    said = _run("-m", "cometmq.cli", "pipeline", "list", path=site)
    assert "order-analytics" in said
    where = _run("-c", "import cometmq; print(cometmq.__file__)", path=site)
    assert where.strip() == str(site / "cometmq" / "__init__.py")
    assert {path.name for path in (site / "bin").iterdir()} >= {
        *("cometmq", "mqnamesrv", "mqbroker", "mqcontroller", "mqshutdown")
    }
    ours = {path.relative_to(ROOT / "src") for path in _files(ROOT / "src" / "cometmq")}
    installed = {path.relative_to(site) for path in _files(site / "cometmq")}
    assert installed == ours
    assert os.access(site / "cometmq" / "spark" / "jre" / "bin" / "java", os.X_OK)


@pytest.mark.timeout(300)  # it fetches packages
def test_alone_in_an_empty_environment_it_runs_the_tutorial(wheel: Path, tmp_path: Path) -> None:
    python = _empty_environment(tmp_path / "environment")
    try:
        _pip("--python", str(python), "install", str(wheel))
    except PipFailed as failure:
        _skip_if_there_is_no_index(tmp_path, failure)
        raise
    directory = tmp_path / "reader"
    directory.mkdir()
    with reader(directory, python) as one:
        work_through(TUTORIAL, quick_steps(TUTORIAL), one)


class PipFailed(Exception):
    """What it said."""


def _empty_environment(directory: Path) -> Path:
    # Without pip: that of the tests can install into it, and this takes a tenth of the time.
    venv.create(directory, symlinks=True)
    return directory / "bin" / "python"


def _skip_if_there_is_no_index(tmp_path: Path, failure: PipFailed) -> None:
    try:
        _pip("download", "--no-deps", "--dest", str(tmp_path), "msgspec")
    except PipFailed:
        reason = str(failure).strip().splitlines()[-1]
        pytest.skip(f"no packages to be had from an index: {reason}")


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


def _name(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    assert found
    return found[0]


def _files(directory: Path) -> list[Path]:
    return [
        path for path in directory.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PipFailed(f"{done.stdout}\n{done.stderr}")


def _run(*arguments: str, path: Path) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=path,
        env={**os.environ, "PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout
