"""asyncio on a fake clock, with processes that can be killed: nothing waits for real, and a seed repeats a run.

Time passes when nothing is left to do at the present moment, and jumps to the next timer. Everything that a process
starts carries its ``Process`` in its context; ``kill`` drops all of it without running another line, as kill -9 does.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
from collections.abc import Callable
from typing import Any

from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.network.fake_network import FakeServer, MemoryNetwork, Process, current_process


class Stuck(AssertionError):
    """Somebody waits, and nothing will ever happen."""


class SimulatedLoop(asyncio.BaseEventLoop):
    def __init__(self, clock: FakeClock, network: MemoryNetwork) -> None:
        super().__init__()
        self.clock = clock
        self._network = network
        network.loop = self
        # The two things that asyncio asks of what lies below it.
        self._selector = _Idle(clock)
        self._clock_resolution = 0.0005
        self.failures: list[BaseException | str] = []
        """What went wrong in callbacks, other than the death of a process."""
        self.expected: tuple[type[BaseException], ...] = ()
        self._graves: set[asyncio.Task[Any]] = set()
        self.set_exception_handler(self._note)

    def time(self) -> float:
        return self.clock.monotonic()

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none: the network uses timers."""

    def _write_to_self(self) -> None:
        """Nobody sleeps for real."""

    async def create_server(  # type: ignore[override]
        self, factory: Any, host: Any = None, port: Any = None, **_: Any
    ) -> Any:
        return FakeServer(self._network, current_process(), host, port, factory)

    async def create_connection(  # type: ignore[override]
        self, factory: Any, host: Any = None, port: Any = None, **_: Any
    ) -> Any:
        return await self._network.connect(current_process(), host, port, factory)

    def start(self, process: Process, main: Callable[[], Any]) -> asyncio.Task[Any]:
        """Run a coroutine function as part of a process."""
        return self.create_task(main(), context=process.context)

    def kill(self, process: Process, *, is_silent: bool) -> None:
        """
        Args:
            is_silent: nobody resets its connections; a machine without power does not.
        """
        process.is_dead = True
        # Nobody may collect a task that will never go on: its clean-up would run in the middle of something else.
        self._graves.update(asyncio.all_tasks(self))
        handles: list[Any] = [*self._ready, *self._scheduled]  # type: ignore[attr-defined]
        for handle in handles:
            context: contextvars.Context = handle._context
            if context.get(Process.current, None) is process:
                handle.cancel()
        self._network.died(process, is_silent=is_silent)

    def finish(self) -> None:
        """Close, whatever is still running."""
        for task in asyncio.all_tasks(self) | self._graves:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            coroutine: Any = task.get_coro()
            coroutine.close()
        self.close()

    def _note(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, self.expected):
            self.failures.append(error or str(context["message"]))


class _Idle:
    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise Stuck("nothing is left that could happen")
        if timeout > 0:
            self._clock.advance(max(math.ceil(timeout * 1000 - 1e-6), 1) / 1000)
        return []

    def close(self) -> None:
        """Nothing to close."""
