"""``mqnamesrv`` as a process of its own: what it prints, how it stops, what it refuses."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.integration.commands import ask, free_port, process, run

from cometmq.cli import shutdown
from cometmq.protocol.command import Command

MODULE = "cometmq.namesrv"


def write_config(directory: Path, text: str = "") -> tuple[str, int]:
    port = free_port()
    path = directory / "namesrv.conf"
    path.write_text(f"listenPort={port}\nkvConfigPath={directory}/kv.json\n{text}")
    return str(path), port


def test_it_says_what_runs_where_and_keeps_key_values_over_a_restart(tmp_path: Path) -> None:
    path, port = write_config(tmp_path, "serverWorkerThreads=8\n")
    with process(MODULE, "-c", path) as (child, greeting):
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
    with process(MODULE, "-c", path) as (child, _):
        assert ask(port, Command(101, ext={"namespace": "n", "key": "k"})).ext == {"value": "v"}
        assert b"orderMessageEnable=true\n" in bytes(ask(port, Command(319)).body)
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=30) == 0


def test_idle_memory_is_small(tmp_path: Path) -> None:
    path, _ = write_config(tmp_path)
    with process(MODULE, "-c", path) as (child, _):
        status = Path(f"/proc/{child.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
        assert int(line.split()[1]) < 45_000


def test_mqshutdown_finds_and_stops_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = write_config(tmp_path)
    with process(MODULE, "-c", path) as (child, _):
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
        result = run(MODULE, "-c", path)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"Error: cannot listen on 127.0.0.1:{port}: Address already in use")


def test_the_configuration_is_printed(tmp_path: Path) -> None:
    path, port = write_config(tmp_path)
    result = run(MODULE, "-p", "-c", path, "-n", "ignored:1")
    assert (result.returncode, result.stderr) == (0, "")
    assert f"listenPort={port}\n" in result.stdout
    assert "bindAddress=127.0.0.1\n" in result.stdout


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("listnPort=1", "unknown setting 'listnPort'; did you mean 'listenPort'?"),
        ("waitSecondsForService=soon", "waitSecondsForService must be a whole number"),
        ("tls.config.file=/nowhere", "/nowhere"),
        ("bindAddress=256.0.0.1\nallowAnonymous=true", "cannot listen on 256.0.0.1"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    path, _ = write_config(tmp_path, text)
    result = run(MODULE, "-c", path)
    assert result.returncode == 1
    # Before it, the log may have said that the door is open.
    (line,) = [line for line in result.stderr.splitlines() if "WARNING" not in line]
    assert complaint in line


def test_it_does_not_run_without_its_assertions(tmp_path: Path) -> None:
    path, _ = write_config(tmp_path)
    result = run(MODULE, "-c", path, interpreter=("-O",))
    assert (result.returncode, "without python -O" in result.stderr) == (1, True)


def test_listening_beyond_loopback_is_said_loudly(tmp_path: Path) -> None:
    path, _ = write_config(tmp_path, "bindAddress=0.0.0.0\nallowAnonymous=true\n")
    log_file = tmp_path / "namesrv.log"
    with process(MODULE, "-c", path, "--log-file", str(log_file)) as (child, greeting):
        child.send_signal(signal.SIGTERM)
        _, err = child.communicate(timeout=30)
    assert any("WARNING         allowAnonymous" in line for line in greeting)
    assert err == ""
    assert "WARNING cometmq.namesrv name server listens beyond loopback" in log_file.read_text()
