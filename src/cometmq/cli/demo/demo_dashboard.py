"""The dashboard's part of ``cometmq demo``: it looks on from the beginning, and at the end says what it saw."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections.abc import Callable
from typing import Any, Final

from cometmq.base.errors import CometError
from cometmq.cli.children.dashboard_process import DashboardProcess
from cometmq.monitor.event_loop import end_signal

SEEN_SECONDS_MAX: Final = 60.0
STEP_SECONDS: Final = 0.2

Line = Callable[[str], None]


class NotShown(CometError):
    """The dashboard does not show what was done."""


def demo_dashboard(name_server: str) -> DashboardProcess:
    settings = {"namesrvAddr": name_server, "sampleInterval": "1000"}
    return DashboardProcess(port=None, settings=settings, account=None, log_level="ERROR")


async def show(url: str, topic: str, messages: int, group: str, line: Line) -> None:
    """Raises NotShown."""
    deadline = time.monotonic() + SEEN_SECONDS_MAX
    while True:
        try:
            seen = await asyncio.to_thread(_get, f"{url}api/v1/topics/{topic}")
            await asyncio.to_thread(_get, f"{url}api/v1/groups/{group}")
        except OSError as error:
            seen, problem = {"messages": 0}, str(error)
        else:
            problem = f"it shows {seen['messages']} messages in {topic}, not {messages}"
        if seen["messages"] == messages:
            line(f"{url} shows the {messages} messages in {topic}, and the group {group}")
            return
        if time.monotonic() > deadline:
            raise NotShown(f"the dashboard at {url}: {problem}")
        await asyncio.sleep(STEP_SECONDS)


async def stay(line: Line) -> None:
    """Until Ctrl-C or SIGTERM."""
    told = end_signal()
    line("servers and dashboard stay until Ctrl-C")
    await told.wait()


def _get(address: str) -> Any:
    """Raises OSError; a refusal is one, too."""
    with urllib.request.urlopen(address, timeout=10) as answer:
        return json.load(answer)
