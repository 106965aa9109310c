"""``cometmq demo --stay``: what the demo did can be looked at until somebody stops it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

WAIT_SECONDS_MAX = 60


def test_dashboard_and_servers_stay_until_ctrl_c(tmp_path: Path) -> None:
    # Without Java on the path the demo leaves its pipeline out, which takes the longest.
    environment = {key: text for key, text in os.environ.items() if key != "JAVA_HOME"}
    environment |= {"PATH": str(tmp_path), "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "cometmq.cli", "demo", "--stay", "--messages", "10"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as demo:
        try:
            assert demo.stdout is not None
            lines: list[str] = []
            for line in demo.stdout:
                lines.append(line)
                if "stay until Ctrl-C" in line:
                    break
            shown = next(
                (line for line in lines if " shows the 21 messages in Orders" in line), None
            )
            assert shown is not None, "".join(lines)
            with urllib.request.urlopen(shown.split()[0], timeout=WAIT_SECONDS_MAX) as page:
                assert page.status == 200
            demo.send_signal(signal.SIGINT)
            rest, _ = demo.communicate(timeout=WAIT_SECONDS_MAX)
            assert demo.returncode == 0, rest
        finally:
            demo.kill()
    assert list(tmp_path.iterdir()) == []
