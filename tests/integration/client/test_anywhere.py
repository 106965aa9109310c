"""The client needs nothing that only POSIX has, nor what only servers and commands need: it works on Windows, too."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "without_posix.py"

pytestmark = pytest.mark.slow


def test_the_library_works_without_posix(
    name_servers: str, create_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = create_topic("Anywhere", queues=1)
    assert run("library", name_servers, topic, str(tmp_path)).splitlines() == [
        "sent SEND_OK",
        "got with asyncio",
        "kept offsets.json",
        "sent SEND_OK",
        "got | blocking | with asyncio",
    ]


def test_produce_and_consume_work_without_posix(
    name_servers: str, create_topic: Callable[..., str]
) -> None:
    topic = create_topic("Anywhere", queues=1)
    run("produce", name_servers, topic, stdin="one\ntwo\n")
    assert run("consume", name_servers, topic) == "one\ntwo\n"


def run(*arguments: str, stdin: str = "") -> str:
    done = subprocess.run(
        [sys.executable, PROGRAM, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    # What fails in a callback ends no process: asyncio logs it, and the rest goes on.
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout
