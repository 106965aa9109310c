"""A unit and its server agree: what systemd would start says that it is ready, and that it is well."""

from __future__ import annotations

import shlex
import socket
import subprocess
from pathlib import Path

from click.testing import CliRunner

from cometmq.cli.main import main

SECONDS_MAX = 60.0


def test_a_server_tells_systemd_what_its_unit_waits_for(tmp_path: Path) -> None:
    conf = tmp_path / "namesrv.conf"
    conf.write_text(f"listenPort=0\nkvConfigPath={tmp_path}/kv.json\n")
    options = ["-c", str(conf), "--data", str(tmp_path), "--dry-run"]
    unit = CliRunner().invoke(main, ["service", "install", "namesrv", *options]).stdout
    settings = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line)
    assert settings["Type"] == "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(SECONDS_MAX)
        environment = {
            "HOME": str(tmp_path),
            "NOTIFY_SOCKET": str(tmp_path / "notify"),
            # A sixtieth of what the unit says.
            "WATCHDOG_USEC": str(int(settings["WatchdogSec"]) * 1_000_000 // 60),
        }
        server = subprocess.Popen(
            shlex.split(settings["ExecStart"]), env=environment, stderr=subprocess.DEVNULL
        )
        try:
            told = [manager.recv(4096), manager.recv(4096), manager.recv(4096)]
            server.terminate()
            while b"STOPPING=1" not in told[-1]:
                told.append(manager.recv(4096))
            assert server.wait(SECONDS_MAX) == 0
        finally:
            server.kill()
            server.wait()
    assert b"READY=1" in told[0]
    assert told.count(b"WATCHDOG=1") >= 2
