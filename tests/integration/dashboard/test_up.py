"""The dashboard of ``cometmq up``: there from the first moment, gone with the servers, however those end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.eventually import wait_until


@contextmanager
def up(directory: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and the address that it prints for the dashboard."""
    command = [sys.executable, "-m", "cometmq.cli", "up", "--data", str(directory)]
    command += ["--namesrv-port", "0", "--broker-port", "0", "--log-level", "ERROR"]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines: list[str] = []
            while not lines or not lines[-1].startswith("stop"):
                lines.append(process.stdout.readline())
                assert lines[-1], "it did not start"
            [line] = [line for line in lines if line.startswith("dashboard")]
            yield process, line.split()[1]
        finally:
            process.kill()


def get(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=30) as answer:
        return json.load(answer)


def is_gone(address: str) -> bool:
    try:
        get(f"{address}api/v1/health")
    except urllib.error.URLError as error:
        return isinstance(error.reason, ConnectionRefusedError)
    except OSError:
        return False
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_the_servers(tmp_path: Path, number: signal.Signals) -> None:
    with up(tmp_path, "--dashboard-port", "0") as (process, address):
        # The port is open before the dashboard has started: the request waits for it.
        assert get(f"{address}api/v1/health")["ok"]
        wait_until(lambda: get(f"{address}api/v1/overview")["totals"]["brokers"], "a broker")
        process.send_signal(number)
        process.wait(60)
        wait_until(lambda: is_gone(address), "the dashboard has ended")


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with up(tmp_path / "first", "--dashboard-port", "0") as (_, address):
        port = address.rstrip("/").rpartition(":")[2]
        command = [sys.executable, "-m", "cometmq.cli", "up", "--data", str(tmp_path / "second")]
        command += ["--namesrv-port", "0", "--broker-port", "0", "--dashboard-port", port]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert f"the dashboard cannot listen on 127.0.0.1:{port}: " in done.stderr
