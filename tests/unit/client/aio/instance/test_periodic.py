from __future__ import annotations

import asyncio
import logging

import pytest
from tests.eventually import turns

from cometmq.client.aio.instance.periodic import Periodic


class Counted:
    """Work that can be waited for."""

    def __init__(self, *, fails: bool = False, sooner: float | None = None) -> None:
        self.runs = 0
        self._fails = fails
        self._sooner = sooner
        self._ran = asyncio.Condition()

    async def __call__(self) -> float | None:
        async with self._ran:
            self.runs += 1
            self._ran.notify_all()
        if self._fails:
            raise RuntimeError("broken")
        return self._sooner

    async def wait_for(self, runs: int) -> None:
        async with asyncio.timeout(5), self._ran:
            await self._ran.wait_for(lambda: self.runs >= runs)


async def test_it_runs_again_and_again() -> None:
    work = Counted()
    task = Periodic("x", work, first=0.001, every=0.001)
    task.start()
    task.start()
    await work.wait_for(3)
    await task.stop()
    runs = work.runs
    await turns()
    assert work.runs == runs


async def test_it_runs_at_once_when_asked_and_once_more_when_asked_while_it_runs() -> None:
    work = Counted()
    task = Periodic("x", work, first=1000, every=1000)
    task.soon()
    task.soon()
    task.start()
    await work.wait_for(1)
    task.soon()
    await work.wait_for(2)
    await task.stop()
    assert work.runs == 2


async def test_it_may_want_to_run_sooner() -> None:
    work = Counted(sooner=0.001)
    task = Periodic("x", work, first=0.001, every=1000)
    task.start()
    await work.wait_for(3)
    await task.stop()


async def test_a_failure_is_logged_and_it_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "cometmq.client"):
        work = Counted(fails=True)
        task = Periodic("x", work, first=0.001, every=0.001)
        task.start()
        await work.wait_for(3)
        await task.stop()
    assert "periodic work failed name=x" in caplog.text
    assert "broken" in caplog.text
