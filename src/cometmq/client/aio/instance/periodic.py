"""A task that does something periodically, and sooner when asked to."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

logger = logging.getLogger("cometmq.client")


class Periodic:
    """Runs ``work`` after ``first`` seconds, and then ``every`` seconds after its end.

    Args:
        work: may return the seconds after which it wants to run again, if that is sooner. Exceptions are logged, and
            it runs again at its usual time.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], Awaitable[float | None]],
        *,
        first: float,
        every: float,
    ) -> None:
        assert every > 0, every
        self._name = name
        self._work = work
        self._first = min(first, every)
        self._every = every
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(
                self._run(), name=f"cometmq-client-{self._name}"
            )

    def soon(self) -> None:
        """Run at once, or once more if it is running right now."""
        self._wanted.set()

    async def stop(self) -> None:
        """Cancel the work. Returns when the task has ended."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _run(self) -> None:
        delay = self._first
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._wanted.wait()
            self._wanted.clear()
            delay = self._every
            try:
                sooner = await self._work()
                if sooner is not None:
                    delay = min(sooner, self._every)
            except Exception:
                logger.exception("periodic work failed name=%s", self._name)
