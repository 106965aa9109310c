"""Long work on the event loop in portions, between which others are served."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from time import monotonic
from typing import Final, TypeVar

Step = TypeVar("Step")

WORK_SECONDS: Final = 0.004
"""How long a portion is; a step of the work comes on top."""
REST_SECONDS: Final = 0.002


async def in_portions(steps: Iterator[Step]) -> list[Step]:
    """What the steps yield, all of it. A step should take a millisecond at most."""
    found: list[Step] = []
    until = monotonic() + WORK_SECONDS
    for step in steps:
        found.append(step)
        if monotonic() > until:
            # Not sleep(0): on a busy loop the work would be done at once, turn by turn.
            await asyncio.sleep(REST_SECONDS)
            until = monotonic() + WORK_SECONDS
    return found
