"""``cometmq up`` as a separate process on free ports: for the demo, and for tests that kill it."""

from __future__ import annotations

import asyncio
import random
import signal
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack

from cometmq.base.errors import CometError

START_SECONDS_MAX = 30.0
STOP_SECONDS_MAX = 30.0

# Below those that the system gives to outgoing connections, above RocketMQ's own and apart from those of other tests:
# nobody takes one of them while the servers are down.
_PORTS = range(12_000, 20_000, 5)
_TRIES_MAX = 100


class ServerFailed(CometError):
    """The process did not start or stop as it should."""


class ServerProcess:
    """Starts, kills and restarts the servers on the same directory and the same ports."""

    def __init__(self, directory: str, *, settings: Mapping[str, str] | None = None) -> None:
        self._directory = directory
        namesrv_port, broker_port = _free_ports()
        self.name_server = f"127.0.0.1:{namesrv_port}"
        self.broker = f"127.0.0.1:{broker_port}"
        self._command = [
            *(
                sys.executable,
                "-m",
                "cometmq.cli",
                "up",
                "--no-dashboard",
                "--log-level",
                "WARNING",
            ),
            *("--data", directory),
            *("--namesrv-port", str(namesrv_port), "--broker-port", str(broker_port)),
        ]
        for key, value in (settings or {}).items():
            self._command += ("--set", f"{key}={value}")
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def start(self) -> float:
        """Returns the seconds from the start of the process until the broker serves. Raises ServerFailed."""
        started = time.perf_counter()
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdout=asyncio.subprocess.PIPE
        )
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(START_SECONDS_MAX):
                while line := await self._process.stdout.readline():
                    if line.startswith(b"stop"):
                        return time.perf_counter() - started
        except TimeoutError:
            await self.kill()
        raise ServerFailed(f"the servers did not start; their data is in {self._directory}")

    async def kill(self) -> None:
        """SIGKILL: no chance to clean up."""
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    async def stop(self) -> None:
        """Send SIGTERM and wait for the exit; does nothing if it is not running. Raises ServerFailed."""
        if self._process is None or self._process.returncode is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await self._process.wait()
        except TimeoutError:
            await self.kill()
            raise ServerFailed(f"no end {STOP_SECONDS_MAX:.0f} s after SIGTERM") from None


def _free_ports() -> tuple[int, int]:
    """For a name server and for a broker, whose VIP port is two below and whose port for slaves is one above."""
    for base in random.sample(_PORTS, _TRIES_MAX):
        namesrv_port, broker_port = base, base + 3
        with ExitStack() as stack:
            try:
                for port in (namesrv_port, broker_port, broker_port - 2, broker_port + 1):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return namesrv_port, broker_port
    raise ServerFailed(f"no free ports in {_TRIES_MAX} places from {_PORTS[0]} to {_PORTS[-1]}")
