"""How a server process runs: on uvloop where there is one, until it is told to end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


def run(serving: Coroutine[Any, Any, None]) -> None:
    """Run to the end on a new event loop."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(serving)
    else:
        uvloop.run(serving)


def end_signal() -> asyncio.Event:
    """An event that SIGINT or SIGTERM sets. Ask before anything is started, or an early signal kills the process."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    return told
