"""``mqnamesrv`` as a process of its own: what it prints, how it stops, what it refuses."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.interop.servers import free_ports

from cometmq.cli import shutdown
from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient

COMMAND = [sys.executable, "-m", "cometmq.namesrv"]


def free_port() -> int:
    return free_ports(0)[0]


def write_config(directory: Path, text: str = "") -> tuple[str, int]:
    port = free_port()
    path = directory / "namesrv.conf"
    path.write_text(f"listenPort={port}\nkvConfigPath={directory}/kv.json\n{text}")
    return str(path), port


@contextmanager
def process(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The process and what it printed when it started."""
    with subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout is not None
            greeting = []
            for line in child.stdout:
                greeting.append(line.rstrip())
                if "to stop it" in line:
                    break
            yield child, greeting
        finally:
            child.kill()


def run(*arguments: str, interpreter: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [COMMAND[0], *interpreter, *COMMAND[1:], *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def ask(port: int, command: Command) -> Command:
    async def main() -> Command:
        client = RemotingClient()
        try:
            return await client.call(f"127.0.0.1:{port}", command)
        finally:
            await client.close()

    return asyncio.run(main())


def test_it_says_what_runs_where_and_keeps_key_values_over_a_restart(tmp_path: Path) -> None:
    path, port = write_config(tmp_path, "serverWorkerThreads=8\n")
    with process("-c", path) as (child, greeting):
        assert greeting[0].startswith("The Name Server boot success.")
        assert f"  listens on      127.0.0.1:{port}" in greeting
        assert f"  key-values in   {tmp_path}/kv.json" in greeting
        ask(port, Command(100, ext={"namespace": "n", "key": "k", "value": "v"}))
        ask(port, Command(318, body=b"orderMessageEnable=true"))
        child.send_signal(signal.SIGTERM)
        _, log = child.communicate(timeout=30)
        assert child.returncode == 0
        assert "settings without effect here keys=serverWorkerThreads" in log
        assert "Traceback" not in log
    with process("-c", path) as (child, _):
        assert ask(port, Command(101, ext={"namespace": "n", "key": "k"})).ext == {"value": "v"}
        assert b"orderMessageEnable=true\n" in bytes(ask(port, Command(319)).body)
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=30) == 0


def test_idle_memory_is_small(tmp_path: Path) -> None:
    path, _ = write_config(tmp_path)
    with process("-c", path) as (child, _):
        status = Path(f"/proc/{child.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
        assert int(line.split()[1]) < 45_000


def test_mqshutdown_finds_and_stops_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = write_config(tmp_path)
    with process("-c", path) as (child, _):
        found = list(shutdown.find("namesrv"))
        for server in found:
            if server.pid != child.pid:
                os.close(server.pidfd)  # Somebody else's, which this test must not stop.
        (own,) = [server for server in found if server.pid == child.pid]
        monkeypatch.setattr(shutdown, "find", lambda kind: iter((own,)))
        result = CliRunner().invoke(shutdown.main, ["namesrv"])
        assert result.exit_code == 0
        assert f"name server {child.pid} has stopped" in result.output
        assert child.wait(timeout=30) == 0


def test_a_taken_port_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    path, port = write_config(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        result = run("-c", path)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"Error: cannot listen on 127.0.0.1:{port}: Address already in use")


def test_the_configuration_is_printed(tmp_path: Path) -> None:
    path, port = write_config(tmp_path)
    result = run("-p", "-c", path, "-n", "ignored:1")
    assert (result.returncode, result.stderr) == (0, "")
    assert f"listenPort={port}\n" in result.stdout
    assert "bindAddress=127.0.0.1\n" in result.stdout


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("listnPort=1", "unknown setting 'listnPort'; did you mean 'listenPort'?"),
        ("waitSecondsForService=soon", "waitSecondsForService must be a whole number"),
        ("tls.config.file=/nowhere", "/nowhere"),
        ("bindAddress=256.0.0.1", "cannot listen on 256.0.0.1"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    path, _ = write_config(tmp_path, text)
    result = run("-c", path)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert complaint in line


def test_it_does_not_run_without_its_assertions(tmp_path: Path) -> None:
    path, _ = write_config(tmp_path)
    result = run("-c", path, interpreter=("-O",))
    assert (result.returncode, "without python -O" in result.stderr) == (1, True)


def test_listening_beyond_loopback_is_said_loudly(tmp_path: Path) -> None:
    path, _ = write_config(tmp_path, "bindAddress=0.0.0.0\n")
    log_file = tmp_path / "namesrv.log"
    with process("-c", path, "--log-file", str(log_file)) as (child, greeting):
        child.send_signal(signal.SIGTERM)
        _, err = child.communicate(timeout=30)
    assert any("WARNING         beyond loopback" in line for line in greeting)
    assert err == ""
    assert "WARNING cometmq.namesrv name server listens beyond loopback" in log_file.read_text()
