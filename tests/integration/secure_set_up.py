"""Servers that run from what ``cometmq init`` has written, as processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.interop.servers import free_ports

SECONDS_MAX = 60.0


class SecureSetUp:
    """Made by the command, on free ports."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        namesrv_port = free_ports(0)[0]
        broker_port = free_ports(0, -2, +1)[0]
        self.broker = f"127.0.0.1:{broker_port}"
        ports = ("--namesrv-port", str(namesrv_port), "--broker-port", str(broker_port))
        done = self.command("init", str(directory), *ports)
        assert done.returncode == 0, done.stderr
        [line] = [line for line in done.stdout.decode().splitlines() if line.startswith("secret")]
        self.secret = line.split()[1]

    def command(
        self, *words: str, given: bytes = b"", **environment: str
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "cometmq.cli", *words],
            input=given,
            capture_output=True,
            timeout=SECONDS_MAX,
            check=False,
            # The file is right, whatever the environment says.
            env={**os.environ, "NAMESRV_ADDR": "127.0.0.1:1", **environment},
        )


@contextmanager
def running(directory: Path) -> Iterator[SecureSetUp]:
    set_up = SecureSetUp(directory)
    with ExitStack() as stack:
        stack.enter_context(_server("cometmq.namesrv", directory / "namesrv.conf"))
        stack.enter_context(_server("cometmq.broker", directory / "broker.conf"))
        yield set_up


@contextmanager
def _server(module: str, file: Path) -> Iterator[None]:
    command = [sys.executable, "-m", module, "-c", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            greeting = []
            for line in child.stdout:
                greeting.append(line)
                if "to stop it" in line:
                    break
            assert "boot success" in "".join(greeting)
            assert "WARNING" not in "".join(greeting)
            yield
        finally:
            child.kill()
