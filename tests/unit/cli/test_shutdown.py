from __future__ import annotations

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from cometmq.cli import shutdown


@pytest.mark.parametrize(
    "line",
    [
        "/opt/bin/mqnamesrv -c n.conf",
        "/opt/.venv/bin/python3 /opt/.venv/bin/mqnamesrv",
        "python -m cometmq.namesrv -c x",
        "/usr/bin/python3.12 -X dev -W error -u -m cometmq.namesrv.__main__",
        "python src/cometmq/namesrv/__main__.py",
    ],
)
def test_a_name_server_is_recognised_however_it_was_started(line: str) -> None:
    assert shutdown.is_server(line.split(), "namesrv")
    assert not shutdown.is_server(line.split(), "broker")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "grep mqnamesrv",
        "vim /opt/.venv/bin/mqnamesrv",
        "python",
        "python -c mqnamesrv",
        "python -m cometmq.namesrv.namesrv_config",
        "python other.py mqnamesrv",
        "bash -c mqnamesrv",
    ],
)
def test_other_processes_are_left_alone(line: str) -> None:
    assert not shutdown.is_server(line.split(), "namesrv")


def test_none_running_is_said_with_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutdown, "find", lambda kind: iter(()))
    result = CliRunner().invoke(shutdown.main, ["broker"])
    assert result.exit_code == 1
    assert "no broker of this user is running" in result.output


def test_one_that_does_not_stop_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    stubborn = (
        "import signal,time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", stubborn], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = shutdown.Server(process.pid, os.pidfd_open(process.pid), "stubborn")
        monkeypatch.setattr(shutdown, "find", lambda kind: iter((found,)))
        result = CliRunner().invoke(shutdown.main, ["namesrv", "--timeout", "0.05"])
        process.kill()
    assert result.exit_code == 1
    assert f"still running after 0.05 s: {process.pid}" in result.output


def test_a_list_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        found = shutdown.Server(process.pid, os.pidfd_open(process.pid), "mqbroker -c one.conf")
        monkeypatch.setattr(shutdown, "find", lambda kind: iter((found,)))
        result = CliRunner().invoke(shutdown.main, ["broker", "--list"])
        assert process.poll() is None
        process.kill()
    assert result.exit_code == 0
    assert result.output == f"broker {process.pid}: mqbroker -c one.conf\n"
