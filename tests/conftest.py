"""What all tests share: ``async def`` tests run on an event loop of their own, and leave nothing running on it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import settings

# No test depends on the machine's speed.
settings.register_profile("cometmq", deadline=None)
settings.load_profile("cometmq")

TURNS_MAX = 20
"""Turns of the loop in which what was cancelled or closed in the end may come to its own end."""


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    run_test(pyfuncitem.obj(**arguments))
    return True


def run_test(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(_run(test))


async def _run(test: Coroutine[Any, Any, None]) -> None:
    await test
    for _ in range(TURNS_MAX):
        left = asyncio.all_tasks() - {asyncio.current_task()}
        if not left:
            return
        await asyncio.sleep(0)
    pytest.fail(f"the test left tasks running: {left}")
