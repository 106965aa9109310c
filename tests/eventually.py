"""Waiting for what other parts, threads or processes do: for a condition, never for a time.

``eventually`` in coroutines, ``wait_until`` elsewhere. Both give what the probe found in the end. ``turns`` is for what
must not happen.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar, overload

T = TypeVar("T")

SECONDS_MAX: Final = 30.0
TURNS: Final = 50
"""Turns of the loop before the first pause: most of what a test's own loop does is done by then."""
PAUSE_SECONDS: Final = 0.01

What = str | Callable[[], str]
"""What is waited for, in words; or how things are, to be asked for when it did not happen."""


@overload
async def eventually(
    probe: Callable[[], Awaitable[T | None]], what: What = "", seconds: float = SECONDS_MAX
) -> T: ...


@overload
async def eventually(
    probe: Callable[[], T | None], what: What = "", seconds: float = SECONDS_MAX
) -> T: ...


async def eventually(
    probe: Callable[[], object], what: What = "", seconds: float = SECONDS_MAX
) -> object:
    """Ask a function, or a coroutine function, until the answer is true. AssertionError when that takes too long."""
    deadline = time.monotonic() + seconds
    turns = 0
    while True:
        answer = probe()
        if is_asked := inspect.isawaitable(answer):
            answer = await answer
        if answer:
            return answer
        assert time.monotonic() < deadline, _story(what, seconds)
        turns += 1
        await asyncio.sleep(PAUSE_SECONDS if is_asked or turns > TURNS else 0)


async def turns(count: int = TURNS) -> None:
    """Let the loop do what it has to do: after this, what did not happen was not about to."""
    for _ in range(count):
        await asyncio.sleep(0)


def wait_until(probe: Callable[[], T | None], what: What = "", seconds: float = SECONDS_MAX) -> T:
    """The same where nothing can be awaited."""
    deadline = time.monotonic() + seconds
    while not (found := probe()):
        assert time.monotonic() < deadline, _story(what, seconds)
        time.sleep(PAUSE_SECONDS)
    return found


def _story(what: What, seconds: float) -> str:
    return f"not within {seconds:g} s: {what() if callable(what) else what}"
