"""What all tests share: ``async def`` tests run on an event loop of their own, and leave nothing running on it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine
from random import Random
from typing import Any

import pytest
from hypothesis import settings
from tests import distribution

from cometmq.native import choice
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.network.fake_network import MemoryNetwork
from cometmq.testing.network.simulated_loop import SimulatedLoop

# Steps of tests that several modules share: a failed assertion is to show its values there, too.
pytest.register_assert_rewrite("tests.integration.admin.walk")

# No test depends on the machine's speed.
settings.register_profile("cometmq", deadline=None)
settings.load_profile("cometmq")

TURNS_MAX = 20
"""Turns of the loop in which what was cancelled or closed in the end may come to its own end."""


def pytest_report_header() -> str:
    return f"cometmq: {choice.NAME} implementation"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    return distribution.turn(item.nodeid, is_slow=item.get_closest_marker("slow") is not None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(
    config: pytest.Config, log: Any
) -> distribution.Distribution | None:
    # Other ways to spread the tests may be asked for.
    if config.getoption("dist") == "loadgroup":
        return distribution.Distribution(config, log, distribution.group_of)
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    run_test(
        pyfuncitem.obj(**arguments), jumps=bool(pyfuncitem.get_closest_marker("simulated_time"))
    )
    return True


def run_test(test: Coroutine[Any, Any, None], *, jumps: bool = False) -> None:
    """
    Args:
        jumps: nothing waits for real; time jumps to the next timer. For tests without sockets and threads.
    """
    with asyncio.Runner(loop_factory=_simulated_loop if jumps else None) as runner:
        runner.run(_run(test))


def _simulated_loop() -> asyncio.AbstractEventLoop:
    return SimulatedLoop(FakeClock(), MemoryNetwork(Random(0)))


async def _run(test: Coroutine[Any, Any, None]) -> None:
    await test
    for _ in range(TURNS_MAX):
        left = asyncio.all_tasks() - {asyncio.current_task()}
        if not left:
            return
        await asyncio.sleep(0)
    pytest.fail(f"the test left tasks running: {left}")
