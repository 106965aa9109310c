"""Our commands as processes: started until they greet, or run to their end; their ports, and what they answer."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.interop.servers import free_ports

from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient

RUN_SECONDS_MAX: Final = 30


@contextmanager
def process(module: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The process and what it printed when it started."""
    with subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
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


def run(
    module: str, *arguments: str, interpreter: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """
    Args:
        interpreter: options of Python itself.
    """
    command = [sys.executable, *interpreter, "-m", module, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=RUN_SECONDS_MAX, check=False
    )


def free_port() -> int:
    return free_ports(0)[0]


def ask(port: int, command: Command) -> Command:
    async def main() -> Command:
        client = RemotingClient()
        try:
            return await client.call(f"127.0.0.1:{port}", command)
        finally:
            await client.close()

    return asyncio.run(main())
