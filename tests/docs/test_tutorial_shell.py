"""The shell commands of the tutorial print what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from cometmq.testing import cluster

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "first-consumer.md"


def test_produce_and_consume_print_what_the_tutorial_says() -> None:
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL)
    [session] = [block for block in blocks if "cometmq produce" in block]
    steps = re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", session, re.MULTILINE)
    assert len(steps) == 2
    scripts = str(Path(sys.executable).parent)
    with cluster() as servers:
        for command, expected in steps:
            done = subprocess.run(
                ["bash", "-c", f"{command} 2>&1"],
                env={
                    **os.environ,
                    "NAMESRV_ADDR": servers.name_servers,
                    "PATH": f"{scripts}:{os.environ['PATH']}",
                },
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
            )
            assert done.returncode == 0, done.stdout
            assert done.stdout == expected
