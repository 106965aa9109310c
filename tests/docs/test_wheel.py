"""The wheel that ``make build`` makes is the one that the README installs, and has all that the software needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_wheel_can_be_installed_and_used(tmp_path: Path) -> None:
    assert "$(BIN)/python -m hatchling build -t wheel\n" in (ROOT / "Makefile").read_text()
    _run("-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path))
    [wheel] = tmp_path.glob("*.whl")
    assert f"pip install dist/{wheel.name}\n" in (ROOT / "README.md").read_text()

    # What it depends on is here already; where it would be fetched from is pip's business.
    site = tmp_path / "site"
    pip = ("-m", "pip", "install", "--disable-pip-version-check", "--no-deps", "--no-index")
    _run(*pip, "--target", str(site), str(wheel))
    said = _run("-m", "cometmq.cli", "pipeline", "list", path=site)
    assert "order-analytics" in said
    where = _run("-c", "import cometmq; print(cometmq.__file__)", path=site)
    assert where.strip() == str(site / "cometmq" / "__init__.py")
    assert {path.name for path in (site / "bin").iterdir()} >= {
        *("cometmq", "mqnamesrv", "mqbroker", "mqshutdown")
    }
    ours = {path.relative_to(ROOT / "src") for path in _files(ROOT / "src" / "cometmq")}
    installed = {path.relative_to(site) for path in _files(site / "cometmq")}
    assert installed == ours
    assert os.access(site / "cometmq" / "spark" / "jre" / "bin" / "java", os.X_OK)


def _files(directory: Path) -> list[Path]:
    return [
        path for path in directory.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]


def _run(*arguments: str, path: Path | None = None) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT if path is None else path,
        env={**os.environ, **({"PYTHONPATH": str(path)} if path else {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout
