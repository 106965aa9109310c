"""The ``cometmq`` command itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Modules of the standard library are there already: they are for Linux, too.
ELSEWHERE = """
import asyncio, ssl, subprocess, sys
from cometmq.cli.main import main
sys.platform = sys.argv.pop(1)
main()
"""


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_up_says_in_one_line_that_servers_need_linux(platform: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, platform, "up"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "Error: the servers of CometMQ need Linux; its client works everywhere\n"
    )
