"""Waiting for something that nobody tells."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

WAIT_SECONDS_MAX: Final = 30.0
READY_SECONDS_MAX: Final = 60.0
LOOK_SECONDS: Final = 0.02


async def until(condition: Callable[[], bool], what: str, *, is_needed: bool = True) -> None:
    """Raises SystemExit when it is needed and does not come true."""
    deadline = time.monotonic() + (READY_SECONDS_MAX if is_needed else WAIT_SECONDS_MAX)
    while not condition():
        if time.monotonic() > deadline:
            if is_needed:
                raise SystemExit(f"waited {READY_SECONDS_MAX:.0f} s in vain: {what}")
            return
        await asyncio.sleep(LOOK_SECONDS)
