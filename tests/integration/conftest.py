"""What tests of connections share: each of them runs on both event loops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

import pytest
import uvloop

SECONDS_MAX: Final = 20

Run = Callable[[Callable[[], Coroutine[Any, Any, None]]], None]


@pytest.fixture(params=["uvloop", "asyncio"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a scenario, which has to leave nothing running."""

    def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async def checked() -> None:
            async with asyncio.timeout(SECONDS_MAX):
                await scenario()
            assert asyncio.all_tasks() == {asyncio.current_task()}

        if request.param == "uvloop":
            uvloop.run(checked())
        else:
            asyncio.run(checked())

    return run
