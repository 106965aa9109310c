"""What a server is doing at this moment, for SIGUSR1: tasks, waiting requests, figures. Bounded."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

logger = logging.getLogger("cometmq.monitor")

TASKS_MAX: Final = 200
LINES_MAX: Final = 1000
LINE_CHARACTERS_MAX: Final = 500
LOG_LINES_MAX: Final = 15
"""Fewer than the log passes of one cause without leaving any out."""
FILE_BYTES_MAX: Final = 16 << 20

Facts = Callable[[], Iterator[str]]
"""Lines about one subject."""


def dump_lines(facts: Mapping[str, Facts]) -> list[str]:
    """The dump. What goes wrong in one subject is told in its place."""
    lines: list[str] = []
    for subject, tell in {**facts, "tasks": _tasks}.items():
        lines.append(f"[{subject}]")
        try:
            lines += islice(tell(), LINES_MAX)
        except Exception as error:  # noqa: BLE001 - a dump must not end what it looks at
            lines.append(f"not told: {error!r}")
    return [line[:LINE_CHARACTERS_MAX] for line in lines]


def dump(facts: Mapping[str, Facts], path: str) -> None:
    """Append it to a file, or log its beginning if there is none."""
    lines = dump_lines(facts)
    if not path:
        for line in lines[:LOG_LINES_MAX]:
            logger.warning("dump %s", line)
        if len(lines) > LOG_LINES_MAX:
            logger.warning(
                "dump ends here; set dumpPath for %d lines more", len(lines) - LOG_LINES_MAX
            )
        return
    stamp = time.strftime("%Y-%m-%d %H:%M:%S %z")
    text = "\n".join([f"=== {stamp} pid {os.getpid()}", *lines]) + "\n"
    try:
        # Owner only, like the store: names of topics and addresses of clients are in it.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        if Path(path).exists() and Path(path).stat().st_size > FILE_BYTES_MAX:
            flags |= os.O_TRUNC
        number = os.open(path, flags, 0o600)
        with os.fdopen(number, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        logger.error("dump not written path=%s reason=%s", path, error)
    else:
        logger.warning("dump written path=%s lines=%d", path, len(lines))


def _tasks() -> Iterator[str]:
    """Tasks by what they run and where they wait, the most frequent first."""
    places = Counter(map(_place, asyncio.all_tasks()))
    yield f"count={places.total()}"
    for place, count in places.most_common(TASKS_MAX):
        yield f"{count} x {place}"


def _place(task: asyncio.Task[Any]) -> str:
    coroutine = task.get_coro()
    name = getattr(coroutine, "__qualname__", repr(coroutine))
    frames = task.get_stack(limit=1)
    if not frames:
        return name
    code = frames[-1].f_code
    return f"{name} at {Path(code.co_filename).name}:{frames[-1].f_lineno}"
