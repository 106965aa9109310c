"""A server as a process that can be killed, paused, stopped and started again."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.chaos.world.network import Place
from tests.interop.java import clean_environment, tail

READY_SECONDS_MAX: Final = 90.0
STOP_SECONDS_MAX: Final = 60.0
POLL_SECONDS: Final = 0.05


class ServerFailed(Exception):
    """It did not start or stop as it has to; the message has the end of its log."""


class ServerProcess:
    def __init__(
        self, name: str, command: list[str], environment: Mapping[str, str], directory: Path
    ) -> None:
        self.name = name
        self.command = command
        self.environment = dict(environment)
        self.log = directory / f"{name}.log"
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    async def start(self, is_ready: Callable[[], bool]) -> None:
        """Raises ServerFailed when it ends before it is ready, or takes too long."""
        self._launch()
        try:
            async with asyncio.timeout(READY_SECONDS_MAX):
                while not await asyncio.to_thread(is_ready):
                    if not self.is_running:
                        raise ServerFailed(f"{self.name} ended: {tail(self.log)}")
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            raise ServerFailed(f"{self.name} was not ready in time: {tail(self.log)}") from None

    def _launch(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                cwd=self._directory,
                env=clean_environment() | self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    async def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)
            self._process = None

    async def stop(self) -> None:
        """As an operator does it. Raises ServerFailed when it does not end."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            await asyncio.to_thread(self._process.wait, STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            await self.kill()
            raise ServerFailed(f"{self.name} did not end: {tail(self.log)}") from None
        self._process = None

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)


def accepts(place: Place) -> bool:
    """Whether the server there listens."""
    # Not by way of the proxy, which accepts for a dead server, too.
    address = place.address if place.command else place.bind
    try:
        socket.create_connection((address, place.port), timeout=2).close()
    except OSError:
        return False
    return True
