"""The wheel that ``make build`` makes is the one that the README installs, and has all that the software needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from tests.docs.page_walk import quick_steps, work_through
from tests.docs.reader import reader
from tools.portable_wheel import NotPortable, make_portable

from cometmq.native import choice

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial" / "first-consumer.md"
OPERATIONS = ROOT / "docs" / "howto" / "operations.md"
CLIENT_NEEDS = {"lz4", "msgspec", "zstandard"}
COMMANDS_NEED = {"click"}
DASHBOARD_NEEDS = {"starlette", "uvicorn"}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    # The tool that builds it is here already.
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(directory), str(ROOT))
    [wheel] = directory.glob("*.whl")
    return wheel


def test_the_readme_installs_what_make_builds(wheel: Path) -> None:
    makefile, readme = (ROOT / "Makefile").read_text(), (ROOT / "README.md").read_text()
    assert "COMETMQ_IMPL=python $(BIN)/python -m hatchling build -t wheel\n" in makefile
    assert "$(BIN)/python -m hatchling build -t wheel\n" in makefile
    assert "$(BIN)/python tools/portable_wheel.py dist\n" in makefile
    _, version, *_ = wheel.name.split("-")
    for line in (
        f"dist/cometmq-{version}-py3-none-any.whl",
        f"dist/cometmq-{version}-cp311-cp311-manylinux_2_17_x86_64.whl",
        f"$ pip install --find-links dist cometmq=={version}",
    ):
        assert f"{line}\n" in readme


def test_what_was_compiled_is_told_by_the_name_of_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        twins = {Path(name).stem for name in archive.namelist() if name.endswith(".pyx")}
        compiled = {Path(name).name for name in archive.namelist() if name.endswith(".so")}
    if wheel.name.endswith("-py3-none-any.whl"):
        assert choice.NAME == choice.PYTHON
        assert compiled == set()
    else:
        python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
        assert f"-{python}-{python}-linux_" in wheel.name
        assert compiled == {f"{twin}{sysconfig.get_config_var('EXT_SUFFIX')}" for twin in twins}
    assert twins == set(choice.TWINS)


def test_a_compiled_wheel_is_named_for_all_machines_with_its_c_library(
    wheel: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copy(wheel, tmp_path))
    if copy.name.endswith("-py3-none-any.whl"):
        assert make_portable(tmp_path) == []
        assert copy.exists()
        return
    [portable] = make_portable(tmp_path)
    assert "manylinux" in portable.name
    assert not copy.exists()
    with zipfile.ZipFile(wheel) as before, zipfile.ZipFile(portable) as after:
        assert set(before.namelist()) <= set(after.namelist())


def test_a_wheel_that_is_none_is_not_replaced(tmp_path: Path) -> None:
    broken = tmp_path / "cometmq-0.1.0-cp311-cp311-linux_x86_64.whl"
    broken.write_bytes(b"no archive")
    with pytest.raises(NotPortable, match=re.escape(broken.name)):
        make_portable(tmp_path)
    assert broken.exists()


def test_the_wheel_says_who_needs_what(wheel: Path) -> None:
    metadata = _metadata(wheel)
    required = metadata.get_all("Requires-Dist", [])
    always = {_name(one) for one in required if ";" not in one}
    assert always == CLIENT_NEEDS | COMMANDS_NEED | DASHBOARD_NEEDS
    where_it_exists = [
        one for one in required if "extra ==" not in one and _name(one) not in always
    ]
    [isal, uvloop] = sorted(where_it_exists)
    assert _name(isal) == "isal"
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
        *("cometmq", "mqnamesrv", "mqbroker", "mqcontroller", "mqshutdown", "mqadmin")
    }
    ours = {path.relative_to(ROOT / "src") for path in _files(ROOT / "src" / "cometmq")}
    installed = {path.relative_to(site) for path in _files(site / "cometmq")}
    if wheel.name.endswith("-py3-none-any.whl"):
        ours = {path for path in ours if path.suffix != ".so"}
    assert installed == ours
    assert os.access(site / "cometmq" / "spark" / "jre" / "bin" / "java", os.X_OK)


@pytest.mark.timeout(300)  # it fetches packages
def test_alone_in_an_empty_environment_it_runs_tutorial_and_operations(
    wheel: Path, tmp_path: Path
) -> None:
    python = _empty_environment(tmp_path / "environment")
    try:
        _pip("--python", str(python), "install", str(wheel))
    except PipFailed as failure:
        _skip_if_there_is_no_index(tmp_path, failure)
        raise
    directory = tmp_path / "reader"
    directory.mkdir()
    with reader(directory, python) as one:
        for page in (TUTORIAL, OPERATIONS):
            work_through(page, quick_steps(page), one)


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
