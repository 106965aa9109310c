"""Worker processes that judge messages by the operator's functions. Not one of them runs in the broker itself.

    judge --a free worker, started when there is none--> batch out, verdicts in --> worker free again
                                                         too slow, or dead     --> killed; the next judge starts another

What a function does to its worker is its own affair: a message that it fails for counts as not wanted, and the queue
goes on. One batch at a time per function, so that a slow one holds up one worker at most. Owned by the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import sys
from collections import Counter
from pathlib import Path
from typing import Final

from cometmq.base.errors import CometError
from cometmq.base.ports import Clock
from cometmq.broker.filters.filter_config import FiltersConfig
from cometmq.broker.filters.functions.protocol import (
    LENGTH_BYTES,
    Answer,
    Batch,
    Fault,
    FunctionMessage,
    Loaded,
    Ready,
    Unusable,
    Verdict,
    answer_of,
    frame,
)
from cometmq.model.subscription import is_function_name

log = logging.getLogger("cometmq.broker")

START_SECONDS_MAX: Final = 20.0
WAITING_MAX: Final = 1000
"""Batches that wait for a worker."""
LOG_SECONDS: Final = 10.0
"""Faults of one function are logged this often; all are counted."""
ALARM_FACTOR: Final = 3


class FunctionUnusable(CometError):
    """There is no such function, or its file cannot be run."""


class FunctionsBusy(CometError):
    """Too many batches wait, or no worker can be started."""

    retryable = True


class WorkerEnded(Exception):
    """A worker died, or was killed for being slow."""


class FilterFunctions:
    """Args:
    config: where the functions are, and the limits.
    """

    def __init__(self, config: FiltersConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._idle: list[Worker] = []
        self._workers: set[Worker] = set()
        self._slots = asyncio.Semaphore(config.function_workers)
        self._turns: dict[str, Turn] = {}
        self._waiting = 0
        self._logged_at: dict[str, float] = {}
        self._is_stopped = False
        self.faults: Counter[str] = Counter()
        """Messages that a function failed for, by function."""
        self.restarts = 0
        """Workers that died or were killed."""

    @property
    def is_enabled(self) -> bool:
        return bool(self._config.function_directory)

    def fault_of(self, name: str) -> str | None:
        """Why there can be no function of that name; None when its file is there."""
        if not is_function_name(name):
            return f"expected the name of a filter function, found {name[:100]!r}"
        if not (Path(self._config.function_directory) / f"{name}.py").is_file():
            return f"there is no filter function {name}"
        return None

    async def judge(self, name: str, messages: list[FunctionMessage]) -> list[bool]:
        """Which of the messages are wanted; perhaps only for the first of them, but at least for one.

        Raises:
            FunctionUnusable: the function cannot be had; no message was judged.
            FunctionsBusy: not now.
        """
        assert messages
        if self._waiting >= WAITING_MAX or self._is_stopped:
            raise FunctionsBusy(f"{self._waiting} batches wait for filter functions")
        self._waiting += 1
        turn = self._turns.setdefault(name, Turn())
        turn.users += 1
        try:
            async with turn.lock, self._slots:
                return await self._judge(name, messages)
        finally:
            self._waiting -= 1
            turn.users -= 1
            if not turn.users:
                del self._turns[name]

    async def stop(self) -> None:
        """End all workers."""
        self._is_stopped = True
        for worker in list(self._workers):
            await self._end(worker)

    async def _judge(self, name: str, messages: list[FunctionMessage]) -> list[bool]:
        worker = await self._worker()
        verdicts: list[bool] = []
        was_slow = is_loaded = False
        try:
            async with asyncio.timeout(self._config.function_batch_ms / 1000):
                await worker.send(Batch(name, messages))
                await worker.load()
                is_loaded = True
                while len(verdicts) < len(messages):
                    verdicts.append(self._verdict(name, await worker.answer()))
        except FunctionUnusable:
            self._idle.append(worker)
            raise
        except (TimeoutError, WorkerEnded) as error:
            was_slow = isinstance(error, TimeoutError)
            await self._replace(worker, name, was_slow=was_slow)
        except BaseException:
            # Cancelled in the middle of a batch: its answers would be taken for those of the next.
            await self._end(worker)
            raise
        else:
            self._idle.append(worker)
            return verdicts
        if not is_loaded:
            what = "took too long" if was_slow else "ended its process"
            raise FunctionUnusable(f"filter function {name} {what} while it was loaded")
        # Whoever is slow with all messages is not to be blamed for the one it was interrupted at: that one comes again,
        # as the first of a batch.
        if not was_slow or not verdicts:
            reason = "too slow" if was_slow else "the worker died"
            verdicts.append(self._verdict(name, Fault(reason)))
        return verdicts

    def _verdict(self, name: str, answer: Answer) -> bool:
        if isinstance(answer, Verdict):
            return answer.wanted
        assert isinstance(answer, Fault), answer
        self.faults[name] += 1
        now = self._clock.monotonic()
        if now - self._logged_at.get(name, -math.inf) >= LOG_SECONDS:
            self._logged_at[name] = now
            log.warning(
                "filter function failed name=%s faults=%d reason=%s",
                name,
                self.faults[name],
                answer.reason,
            )
        return False

    async def _worker(self) -> Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.is_alive:
                return worker
            await self._end(worker)
        if self._is_stopped:
            raise FunctionsBusy("the broker stops")
        config = self._config
        seconds = math.ceil(config.function_batch_ms / 1000 * ALARM_FACTOR) + 1
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "cometmq.broker.filters.functions.worker",
                config.function_directory,
                str(config.function_memory_bytes),
                str(seconds),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                # A signal from the terminal is meant for the broker, which will end its workers.
                start_new_session=True,
            )
        except OSError as error:
            raise FunctionsBusy(f"no process for filter functions: {error}") from error
        worker = Worker(process)
        self._workers.add(worker)
        try:
            async with asyncio.timeout(START_SECONDS_MAX):
                answer = await worker.answer()
            assert isinstance(answer, Ready), answer
        except (TimeoutError, WorkerEnded) as error:
            await self._end(worker)
            raise FunctionsBusy("a process for filter functions did not start") from error
        except BaseException:
            await self._end(worker)
            raise
        return worker

    async def _replace(self, worker: Worker, name: str, *, was_slow: bool) -> None:
        self.restarts += 1
        log.warning(
            "filter worker ended function=%s pid=%d slow=%s", name, worker.process.pid, was_slow
        )
        await self._end(worker)

    async def _end(self, worker: Worker) -> None:
        self._workers.discard(worker)
        if worker in self._idle:
            self._idle.remove(worker)
        await worker.end()

    def __repr__(self) -> str:
        return f"<FilterFunctions {len(self._workers)} workers, {self._waiting} batches>"


class Turn:
    """Whose batch a function works on; kept while somebody waits."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0


class Worker:
    """One process. Used for one batch at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self._input = process.stdin
        self._output = process.stdout

    @property
    def is_alive(self) -> bool:
        return self.process.returncode is None

    async def send(self, batch: Batch) -> None:
        """Raises WorkerEnded."""
        try:
            self._input.write(frame(batch))
            await self._input.drain()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise WorkerEnded from error

    async def load(self) -> None:
        """Wait until the function is there. Raises FunctionUnusable, WorkerEnded."""
        answer = await self.answer()
        if isinstance(answer, Unusable):
            raise FunctionUnusable(answer.reason)
        assert isinstance(answer, Loaded), answer

    async def answer(self) -> Answer:
        """Raises WorkerEnded."""
        try:
            length = await self._output.readexactly(LENGTH_BYTES)
            return answer_of(await self._output.readexactly(int.from_bytes(length, "big")))
        except (asyncio.IncompleteReadError, ConnectionResetError) as error:
            raise WorkerEnded from error

    async def end(self) -> None:
        """Kill it and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self._input.close()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            await self._input.wait_closed()
        # What it had said and nobody will read must not keep its pipe open.
        await self._output.read()
        await self.process.wait()
