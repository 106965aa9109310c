"""Orderly consumption: the messages of a queue one after the other; the next one only when the one before is done.

A failed message is tried again after a pause, and its queue waits for it; see ``core.consume.member.orderly_calls``.
One task per queue calls the listener; a plain one runs in a thread, which is given a stretch of messages at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Final

from cometmq.base.ports import Clock
from cometmq.client.aio.push.listener_call import ListenerCall
from cometmq.client.aio.push.send_back import SendBack
from cometmq.client.aio.push.workers import ThreadWorkers
from cometmq.client.core.consume.call_size import call_size
from cometmq.client.core.consume.member.held_queue import HeldQueue, Job
from cometmq.client.core.consume.member.instructions import Instructions
from cometmq.client.core.consume.member.orderly_calls import (
    CallPause,
    CallStep,
    Letter,
    OrderlyCalls,
)
from cometmq.client.core.consume.member.rules import MemberRules
from cometmq.client.core.consume.outcome import DEAD_LETTER_LEVEL, Verdict
from cometmq.model.messages.received_message import ReceivedMessage

logger = logging.getLogger("cometmq.client")

STRETCH_MESSAGES: Final = 64


class _Stretch(Job):
    """Messages for several calls of a listener in one thread, one after the other."""

    __slots__ = ("called", "calls", "consumed", "ended")

    def __init__(
        self, held: HeldQueue, calls: OrderlyCalls, messages: list[ReceivedMessage]
    ) -> None:
        super().__init__(held, messages)
        self.calls = calls
        self.consumed = self.called = 0
        """So many are consumed, and the listener was called for so many."""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class OrderlyListener:
    """Args:
    do: carries out instructions.
    """

    def __init__(
        self,
        call: ListenerCall,
        rules: MemberRules,
        *,
        group: str,
        worker_count: int,
        batch_max: int,
        send_back: SendBack,
        do: Callable[[Instructions], None],
        clock: Clock,
    ) -> None:
        self._call = call
        self._rules = rules
        self._group = group
        self._batch_max = batch_max if call.is_batch else 1
        self._send_back = send_back
        self._do = do
        self._monotonic = clock.monotonic
        self._tasks: set[asyncio.Task[None]] = set()
        self._arrived: dict[HeldQueue, asyncio.Event] = {}
        """Set when there is something new: messages, or the queue's end."""
        self._slots = asyncio.Semaphore(worker_count)
        self._threads = (
            None
            if call.is_async
            else ThreadWorkers(
                self._run_stretch, self._collect, worker_count, f"cometmq-consume-{group}"
            )
        )

    def start(self) -> None:
        if self._threads is not None:
            self._threads.start()

    def begin(self, held: HeldQueue) -> None:
        """A queue was taken. It has one job, which ends when the queue is dropped."""
        self._arrived[held] = asyncio.Event()
        held.jobs_open += 1
        task = asyncio.get_running_loop().create_task(
            self._consume(held), name=f"cometmq-consume-{self._group}-{held.queue}"
        )
        self._tasks.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            del self._arrived[held]
            if not task.cancelled() and (error := task.exception()) is not None:
                logger.error(
                    "orderly consumption ended group=%s queue=%s",
                    self._group,
                    held.queue,
                    exc_info=error,
                )
            self._do(held.close_jobs(1, self._monotonic()))

        task.add_done_callback(ended)

    def deliver(self, held: HeldQueue, messages: Sequence[ReceivedMessage]) -> None:
        """Messages of a queue can be consumed."""
        self._wake(held)

    def withdraw(self, held: HeldQueue) -> int:
        """Begin nothing more of a queue; its job ends soon."""
        self._wake(held)
        return 0

    async def close(self, timeout: float) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout)
        if self._threads is not None:
            await self._threads.close(timeout)

    async def sweep(self) -> None:
        """Nothing: a message that takes long holds its queue up, and may."""

    def _wake(self, held: HeldQueue) -> None:
        if (arrived := self._arrived.get(held)) is not None:
            arrived.set()

    async def _consume(self, held: HeldQueue) -> None:
        calls, arrived = OrderlyCalls(held, self._rules), self._arrived[held]
        while (step := calls.next(self._monotonic())) is not CallStep.END:
            if step is CallStep.CALL:
                async with self._slots:
                    await self._stretch(held, calls)
                continue
            arrived.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(step.seconds if isinstance(step, CallPause) else None):
                    await arrived.wait()

    async def _stretch(self, held: HeldQueue, calls: OrderlyCalls) -> None:
        """Consume some messages from the front."""
        if self._threads is None:
            await self._stretch_of_tasks(held, calls)
            return
        messages = calls.take_stretch(STRETCH_MESSAGES)
        job = _Stretch(held, calls, messages)
        job.started = self._monotonic()
        self._threads.submit([job])
        await job.ended
        verdict = job.returned
        assert verdict is None or isinstance(verdict, Verdict)
        called = messages[: job.called]
        await self._settle(held, calls, called, job.consumed, job.started, verdict)

    async def _stretch_of_tasks(self, held: HeldQueue, calls: OrderlyCalls) -> None:
        for _ in range(STRETCH_MESSAGES):
            started = self._monotonic()
            if not calls.may_go_on(started) or not (messages := calls.take(self._batch_max)):
                return
            verdict = await self._call.call(held.queue, messages)
            count = len(messages) if verdict is None else verdict.consumed_count
            await self._settle(held, calls, messages, count, started, verdict)
            if verdict is not None:
                return
        # A listener that never waits must not keep the loop to itself.
        await asyncio.sleep(0)

    def _run_stretch(self, job: Job) -> None:
        """In a thread."""
        assert isinstance(job, _Stretch)
        held, calls, messages = job.held, job.calls, job.messages
        while job.consumed < len(messages) and calls.may_go_on(self._monotonic()):
            job.called = job.consumed + call_size(messages, job.consumed, self._batch_max)
            part = messages[job.consumed : job.called]
            verdict = self._call.call_in_thread(held.queue, part)
            job.consumed += len(part) if verdict is None else verdict.consumed_count
            if verdict is not None:
                job.returned = verdict
                return

    def _collect(self, jobs: list[Job]) -> None:
        for job in jobs:
            assert isinstance(job, _Stretch)
            if not job.ended.done():
                job.ended.set_result(None)

    async def _settle(
        self,
        held: HeldQueue,
        calls: OrderlyCalls,
        messages: list[ReceivedMessage],
        consumed: int,
        started: float,
        verdict: Verdict | None,
    ) -> None:
        """The first messages are consumed. With a verdict the others failed."""
        ended = self._monotonic()
        buried = 0
        if verdict is not None:
            for message in messages[consumed:]:
                if not await self._is_buried(calls.letter(message, verdict), message, held):
                    break
                buried += 1
        todo = calls.settle(
            messages,
            consumed,
            buried,
            has_failed=verdict is not None,
            seconds=ended - started,
            now=ended if verdict is None else self._monotonic(),
        )
        if todo:
            self._do(todo)

    async def _is_buried(
        self, letter: Letter | None, message: ReceivedMessage, held: HeldQueue
    ) -> bool:
        """Whether a failed message is in the dead letter queue now."""
        if letter is Letter.SENT_BACK:
            return await self._send_back.send_back(message, held.queue, DEAD_LETTER_LEVEL)
        return letter is Letter.COPY and await self._send_back.send_dead_letter(message)
