"""The Dockerfile's steps, carried out without Docker, and the servers of the image that they make."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.deploy.dockerfile import ROOT_USER, instructions, is_sent
from tests.deploy.image_trial import CANNOT, ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text()


@pytest.mark.slow
@pytest.mark.timeout(400)  # it fetches packages, twice
def test_the_image_is_built_and_serves_as_nobody(tmp_path: Path) -> None:
    if os.geteuid() != ROOT_USER or shutil.which("unshare") is None:
        pytest.skip("the Dockerfile is carried out in a chroot, which needs root and unshare")
    done = subprocess.run(
        [
            *("unshare", "--mount", "--pid", "--fork", "--kill-child"),
            *(sys.executable, "-m", "tests.deploy.image_trial", str(tmp_path)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == CANNOT or "Could not find a version" in done.stderr:
        pytest.skip(f"this machine cannot stand in for Docker: {done.stderr.strip()[-500:]}")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    said = done.stdout.splitlines()
    assert "user 10001" in said
    assert "home /var/lib/cometmq" in said
    assert any(line.startswith("no pip ") and "No module named pip" in line for line in said)
    assert "runs native" in said
    assert "consumed hello" in said
    assert "store of 10001" in said
    assert "broker ended with 0" in said
    assert "namesrv ended with 0" in said
    if (ROOT / "src/cometmq/monitor").exists():
        assert "health 0" in said
        assert "health of nobody 1" in said


def test_the_image_gets_what_it_needs_and_nothing_else() -> None:
    for name in (
        "hatch_build.py",
        "src/cometmq/cli/main.py",
        "deploy/start",
        "requirements-dev.lock",
        "LICENSE",
    ):
        assert is_sent(ROOT, name), name
    for name in ("tests/conftest.py", ".git/config", ".venv/bin/python", "docs/README.md"):
        assert not is_sent(ROOT, name), name
    assert not is_sent(ROOT, "src/cometmq/__pycache__/x.pyc")
    # Compiled for the Python of this machine.
    assert not is_sent(ROOT, "src/cometmq/native/sends.cpython-311-x86_64-linux-gnu.so")


def test_the_last_stage_is_small_and_nobodys() -> None:
    last = DOCKERFILE[DOCKERFILE.rindex("FROM ") :]
    words = dict(instructions(last))
    assert words["USER"] == "10001:10001"
    assert '"cometmq-start", "health"' in words["HEALTHCHECK"]
    assert "pip install" not in last
    assert "apt-get" not in DOCKERFILE
    assert re.match(r"FROM python:\$\{PYTHON\}-slim-", last)
    assert re.search(r"^ARG PYTHON=3\.\d+$", DOCKERFILE, re.MULTILINE)


def test_the_entry_point_puts_settings_together(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    server = tmp_path / "bin" / "mqnamesrv"
    server.write_text('#!/bin/sh\necho "$@"; cat "$2"\n')
    server.chmod(0o755)
    (tmp_path / "namesrv.conf").write_text("listenPort=1\nbindAddress=0.0.0.0")
    done = subprocess.run(
        [str(ROOT / "deploy" / "start"), "namesrv", "--log-level", "DEBUG"],
        env={
            "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
            "TMPDIR": str(tmp_path / "bin"),
            "COMETMQ_CONFIG_DIRECTORY": str(tmp_path),
            "COMETMQ_SET_listenPort": "2",
            "COMETMQ_SET_tls__config__file": "/tls/my__own.properties",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    first, *lines = done.stdout.splitlines()
    assert first == f"-c {tmp_path}/bin/namesrv.conf --log-level DEBUG"
    assert lines[:2] == ["listenPort=1", "bindAddress=0.0.0.0"]
    assert "listenPort=2" in lines[2:]
    assert "tls.config.file=/tls/my__own.properties" in lines[2:]


def test_other_commands_run_as_they_are() -> None:
    done = subprocess.run(
        [str(ROOT / "deploy" / "start"), "echo", "as", "it is"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "as it is\n"
