"""How a process serves that ``Child`` has started: until SIGTERM, or until who started it is gone."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any

from cometmq.monitor import event_loop
from cometmq.monitor.event_loop import AnyServer


def read_told() -> dict[str, Any]:
    """What we are to do, from standard input. Ends the process if who started it is gone already."""
    line = sys.stdin.readline()
    if not line.endswith("\n"):
        raise SystemExit(1)
    told: dict[str, Any] = json.loads(line)
    return told


async def serve_until_orphaned(
    make: Callable[[], AnyServer], when_up: Callable[[AnyServer], None] = lambda server: None
) -> None:
    """Until SIGTERM, or until standard input is closed: who started us wants us to end, or is gone."""
    stop = event_loop.end_signal()
    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin, stop.set)
    server = make()
    await server.start()
    event_loop.settle()
    try:
        with event_loop.in_service(server.is_alive, server.dump):
            when_up(server)
            await stop.wait()
    finally:
        loop.remove_reader(sys.stdin)
        await server.stop()
