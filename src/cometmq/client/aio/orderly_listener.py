"""Orderly consumption: the messages of a queue one after the other; the next one only when the one before is done.

A failed message is tried again after a pause, and its queue waits for it. One task per queue takes messages from the
front; a plain listener runs in a thread, which is given a stretch of messages at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from cometmq.base.ports import Clock
from cometmq.client.aio.held_queue import HeldQueue, Job
from cometmq.client.aio.listener_call import ListenerCall
from cometmq.client.aio.send_back import SendBack
from cometmq.client.aio.workers import ThreadWorkers
from cometmq.client.core.call_size import call_size
from cometmq.client.core.outcome import DEAD_LETTER_LEVEL, Verdict
from cometmq.model.properties import RETRY_TOPIC
from cometmq.model.received_message import ReceivedMessage

logger = logging.getLogger("cometmq.client")

STRETCH_MESSAGES: Final = 64
UNLOCKED_SECONDS: Final = 0.1
"""How soon a queue whose lock has run out looks whether it was renewed."""


class _Stretch(Job):
    """Messages for several calls of a listener in one thread, one after the other."""

    __slots__ = ("called", "consumed", "ended")

    def __init__(self, held: HeldQueue, messages: list[ReceivedMessage]) -> None:
        super().__init__(held, messages)
        self.consumed = self.called = 0
        """So many are consumed, and the listener was called for so many."""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class OrderlyListener:
    """Args:
    lock_seconds: how long a queue lock is trusted; None when broadcasting, where there are no locks.
    suspend_seconds: the pause after a failure.
    reconsume_times_max: with so many retries behind it a message becomes a dead letter; None: never.
    """

    def __init__(
        self,
        call: ListenerCall,
        *,
        group: str,
        worker_count: int,
        batch_max: int,
        suspend_seconds: float,
        reconsume_times_max: int | None,
        lock_seconds: float | None,
        send_back: SendBack,
        unwrap_topic: Callable[[str], str],
        clock: Clock,
    ) -> None:
        self._call = call
        self._group = group
        self._batch_max = batch_max if call.is_batch else 1
        self._suspend_seconds = suspend_seconds
        self._reconsume_times_max = reconsume_times_max
        self._lock_seconds = lock_seconds
        self._send_back = send_back
        self._unwrap_topic = unwrap_topic
        self._monotonic = clock.monotonic
        self._tasks: set[asyncio.Task[None]] = set()
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
        task = asyncio.get_running_loop().create_task(
            self._consume(held), name=f"cometmq-consume-{self._group}-{held.queue}"
        )
        held.opened(1)
        self._tasks.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            held.closed()
            if not task.cancelled() and (error := task.exception()) is not None:
                logger.error(
                    "orderly consumption ended group=%s queue=%s",
                    self._group,
                    held.queue,
                    exc_info=error,
                )

        task.add_done_callback(ended)

    def deliver(self, held: HeldQueue, messages: Sequence[ReceivedMessage]) -> None:
        if held.is_retry:
            for message in messages:
                origin = message.properties.get(RETRY_TOPIC)
                if origin is not None:
                    message.topic = self._unwrap_topic(origin)
        held.arrived.set()

    async def drain(self, held: HeldQueue, timeout: float) -> bool:
        """Wait until the dropped queue's task has ended; False when that takes too long."""
        return await held.rest(timeout)

    async def close(self, timeout: float) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout)
        if self._threads is not None:
            await self._threads.close(timeout)

    async def sweep(self) -> None:
        """Nothing: a message that takes long holds its queue up, and may."""

    async def _consume(self, held: HeldQueue) -> None:
        process = held.orderly
        while not held.is_dropped:
            if not process.waiting_count:
                held.arrived.clear()
                await held.arrived.wait()
            elif not self._may_consume(held):
                await asyncio.sleep(UNLOCKED_SECONDS)
            else:
                async with self._slots:
                    is_failed = await self._stretch(held)
                if is_failed:
                    await self._pause(held)

    async def _stretch(self, held: HeldQueue) -> bool:
        """Consume some messages from the front; True when the first one left is to be tried again later."""
        if self._threads is None:
            return await self._stretch_of_tasks(held)
        process = held.orderly
        messages = process.take(STRETCH_MESSAGES)
        job = _Stretch(held, messages)
        job.started = self._monotonic()
        self._threads.submit([job])
        await job.ended
        verdict = job.returned
        assert verdict is None or isinstance(verdict, Verdict)
        return await self._settle(held, messages[: job.called], job.consumed, job.started, verdict)

    async def _stretch_of_tasks(self, held: HeldQueue) -> bool:
        process = held.orderly
        for _ in range(STRETCH_MESSAGES):
            if held.is_dropped or not process.waiting_count or not self._may_consume(held):
                return False
            started = self._monotonic()
            messages = process.take(self._batch_max)
            messages = messages[: call_size(messages, 0, self._batch_max)]
            verdict = await self._call.call(held.queue, messages)
            count = len(messages) if verdict is None else verdict.consumed_count
            if await self._settle(held, messages, count, started, verdict):
                return True
        # A listener that never waits must not keep the loop to itself.
        await asyncio.sleep(0)
        return False

    def _run_stretch(self, job: Job) -> None:
        """In a thread."""
        assert isinstance(job, _Stretch)
        held, messages = job.held, job.messages
        while job.consumed < len(messages) and not held.is_dropped and self._may_consume(held):
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
        messages: list[ReceivedMessage],
        count: int,
        started: float,
        verdict: Verdict | None,
    ) -> bool:
        """The first ``count`` are consumed. With a verdict the others failed: True when one is to be tried again."""
        process = held.orderly
        held.last_consume = now = self._monotonic()
        held.consumed_count += count
        held.consumed_seconds += now - started
        if verdict is None:
            process.commit(count)
            held.space.set()
            return False
        held.failed_count += 1
        failed_end = len(messages)
        while count < failed_end and await self._is_dead(held, messages[count], verdict):
            count += 1
        for message in messages[count:failed_end]:
            message.reconsume_times += 1
        process.commit(count)
        held.space.set()
        return count < failed_end

    async def _is_dead(self, held: HeldQueue, message: ReceivedMessage, verdict: Verdict) -> bool:
        """Whether a failed message is now in the dead letter queue."""
        if verdict.delay_level == DEAD_LETTER_LEVEL:
            return await self._send_back.send_back(message, held.queue, DEAD_LETTER_LEVEL)
        times_max = self._reconsume_times_max
        if times_max is None or message.reconsume_times < times_max:
            return False
        return await self._send_back.send_dead_letter(message)

    def _may_consume(self, held: HeldQueue) -> bool:
        if self._lock_seconds is None:
            return True
        return held.is_locked(self._monotonic(), self._lock_seconds)

    async def _pause(self, held: HeldQueue) -> None:
        try:
            async with asyncio.timeout(self._suspend_seconds):
                # Set by a drop, and by new messages, which must not cut the pause short.
                while not held.is_dropped:
                    held.arrived.clear()
                    await held.arrived.wait()
        except TimeoutError:
            pass
