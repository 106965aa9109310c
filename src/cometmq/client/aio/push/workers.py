"""The workers that call listeners: tasks for coroutine functions, threads for plain ones. Both take jobs from a queue.

Handing a message over must cost far less than the fastest listener, so there is no task, future or thread wake-up
per message. New jobs wake one worker; a worker that leaves jobs behind wakes the next one and starts. If its listener
returns at once it takes the next job itself, long before the other gets a chance; if it waits, the other runs.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from queue import SimpleQueue
from typing import Final, Protocol

from cometmq.client.core.consume.member.held_queue import HeldQueue, Job

YIELD_AFTER_MESSAGES: Final = 32
"""A task whose listener never waits yields to others after this many messages."""


class Workers(Protocol):
    running: list[Job | None]
    """What each worker is working on."""

    def start(self) -> None: ...

    def submit(self, jobs: Sequence[Job]) -> None: ...

    def withdraw(self, held: HeldQueue) -> int:
        """Take back the jobs of a queue that were not begun. Returns how many."""
        ...

    async def close(self, timeout: float) -> None:
        """End the workers; a task that is still at work is cancelled, a thread is left to itself."""
        ...


class TaskWorkers:
    """``run`` calls the listener and settles the job; it raises nothing."""

    def __init__(self, run: Callable[[Job], Awaitable[None]], count: int, name: str) -> None:
        self._run = run
        self._name = name
        self._ready: deque[Job] = deque()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._is_waking = False
        self._tasks: list[asyncio.Task[None]] = []
        self.running: list[Job | None] = [None] * count

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._work(number), name=f"{self._name}-{number}")
            for number in range(len(self.running))
        ]

    def submit(self, jobs: Sequence[Job]) -> None:
        self._ready.extend(jobs)
        self._wake()

    def submit_next(self, jobs: Sequence[Job]) -> None:
        """Before all others."""
        self._ready.extendleft(reversed(jobs))
        self._wake()

    def withdraw(self, held: HeldQueue) -> int:
        kept = [job for job in self._ready if job.held is not held]
        count = len(self._ready) - len(kept)
        self._ready.clear()
        self._ready.extend(kept)
        return count

    async def close(self, timeout: float) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout)

    def _wake(self) -> None:
        while self._idle and not self._is_waking:
            waiter = self._idle.popleft()
            if not waiter.done():
                waiter.set_result(None)
                self._is_waking = True

    async def _work(self, number: int) -> None:
        ready, running, run = self._ready, self.running, self._run
        loop = asyncio.get_running_loop()
        in_a_row = 0
        while True:
            if not ready:
                in_a_row = 0
                waiter = loop.create_future()
                self._idle.append(waiter)
                await waiter
                self._is_waking = False
                continue
            job = ready.popleft()
            if ready and self._idle:
                self._wake()
            running[number] = job
            in_a_row += len(job.messages)
            await run(job)
            running[number] = None
            if in_a_row >= YIELD_AFTER_MESSAGES:
                in_a_row = 0
                await asyncio.sleep(0)


class ThreadWorkers:
    """``run`` calls the listener in a thread; ``collect`` gets the jobs that ended, on the event loop."""

    def __init__(
        self,
        run: Callable[[Job], None],
        collect: Callable[[list[Job]], None],
        count: int,
        name: str,
    ) -> None:
        self._run = run
        self._collect = collect
        self._name = name
        self._ready: deque[Job] = deque()
        self._ended: deque[Job] = deque()
        # One token wakes one thread; None ends it.
        self._tokens: SimpleQueue[bool | None] = SimpleQueue()
        self._is_waking = False
        self._is_told = False
        self._is_closed = False
        self._loop = asyncio.get_running_loop()
        self._threads = [
            threading.Thread(
                target=self._work, args=(number,), name=f"{name}-{number}", daemon=True
            )
            for number in range(count)
        ]
        self.running: list[Job | None] = [None] * count

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def submit(self, jobs: Sequence[Job]) -> None:
        self._ready.extend(jobs)
        self._wake()

    def withdraw(self, held: HeldQueue) -> int:
        # Threads take from the same queue meanwhile: each job is either theirs or ours, never both.
        kept: list[Job] = []
        count = 0
        while True:
            try:
                job = self._ready.popleft()
            except IndexError:
                break
            if job.held is held:
                count += 1
            else:
                kept.append(job)
        self.submit(kept)
        return count

    async def close(self, timeout: float) -> None:
        self._is_closed = True
        self._ready.clear()
        for _ in self._threads:
            self._tokens.put(None)
        deadline = self._loop.time() + timeout
        while any(thread.is_alive() for thread in self._threads):
            if self._loop.time() >= deadline:
                return
            await asyncio.sleep(0.005)

    def _wake(self) -> None:
        # A thread clears the mark before it looks at the queue. So whoever finds it set has put its jobs there in time
        # to be seen, and whoever finds it cleared wakes another thread.
        if self._ready and not self._is_waking:
            self._is_waking = True
            self._tokens.put(True)

    def _work(self, number: int) -> None:
        ready, running, run = self._ready, self.running, self._run
        while self._tokens.get():
            self._is_waking = False
            while True:
                try:
                    job = ready.popleft()
                except IndexError:
                    break
                if ready:
                    self._wake()
                running[number] = job
                run(job)
                running[number] = None
                self._ended.append(job)
                if not self._is_told:
                    self._is_told = True
                    self._tell()

    def _tell(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._take_ended)
        except RuntimeError:
            # The loop is closed: nobody is left to hear of it.
            self._is_closed = True

    def _take_ended(self) -> None:
        # As in _wake: cleared before the queue is read, so nothing stays behind unseen.
        self._is_told = False
        ended: list[Job] = []
        while True:
            try:
                ended.append(self._ended.popleft())
            except IndexError:
                break
        if ended:
            self._collect(ended)
