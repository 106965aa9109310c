"""A process that one of our commands starts: told on standard input what to do, ended by closing that.

So what it is told does not show in the list of processes, and it ends when we end in whatever way. ``until_orphaned``
is the other side of it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cometmq.base.errors import ConfigError

_SERVICE_MANAGER: Final = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
"""Variables with which systemd speaks to us, and not to our children."""
_ANSWER_BYTES_MAX: Final = 64 * 1024
TOLD_BYTES_MAX: Final = 64 * 1024
"""What a pipe holds."""


class Child:
    """``start`` it once, ``stop`` it once.

    Args:
        command: module and arguments; who may list processes sees them.
        stop_seconds_max: how long it may take to end before it is killed.
    """

    def __init__(self, *command: str, stop_seconds_max: float) -> None:
        self._command = command
        self._stop_seconds_max = stop_seconds_max
        self._process: asyncio.subprocess.Process | None = None
        self._line: int | None = None

    async def start(
        self, told: Mapping[str, object], *, descriptors: Sequence[int] = (), answers: bool = False
    ) -> None:
        """Raises ConfigError: there is too much to tell.

        Args:
            descriptors: open files that it is given.
            answers: whether it says something on standard output.
        """
        environment = {key: os.environ[key] for key in os.environ if key not in _SERVICE_MANAGER}
        ear, self._line = os.pipe()
        try:
            # Before there is anybody who could hang up.
            _write_all(self._line, json.dumps(told).encode() + b"\n")
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", *self._command),
                stdin=ear,
                stdout=asyncio.subprocess.PIPE if answers else asyncio.subprocess.DEVNULL,
                pass_fds=descriptors,
                env=environment,
                limit=_ANSWER_BYTES_MAX,
                # Ctrl-C is for us; it is ended by us.
                start_new_session=True,
            )
        except BaseException:
            self._hang_up()
            raise
        finally:
            os.close(ear)

    async def answer(self) -> dict[str, Any] | None:
        """The next thing that it says; None if it has ended without a word."""
        assert self._process is not None
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        return json.loads(line) if line.endswith(b"\n") else None

    async def wait(self) -> int:
        """Until it has ended. Its exit code; negative is the signal that killed it."""
        assert self._process is not None
        code = await self._process.wait()
        self._hang_up()
        return code

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(number)

    async def stop(self) -> None:
        """Returns when it has ended."""
        self._hang_up()
        if self._process is None:
            return
        try:
            async with asyncio.timeout(self._stop_seconds_max):
                await self._process.wait()
        except TimeoutError:
            self.signal(signal.SIGKILL)
            await self._process.wait()

    def _hang_up(self) -> None:
        if self._line is not None:
            os.close(self._line)
            self._line = None


def _write_all(pipe: int, text: bytes) -> None:
    """At once, or not at all: nobody reads yet."""
    os.set_blocking(pipe, False)
    if len(text) > TOLD_BYTES_MAX or os.write(pipe, text) < len(text):
        raise ConfigError(
            f"a process cannot be told {len(text)} bytes of settings, {TOLD_BYTES_MAX} at most"
        )
