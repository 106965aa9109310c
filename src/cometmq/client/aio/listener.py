"""Concurrent consumption: messages of all queues go to whichever worker is free, and finish in any order.

A failed message is sent back to the broker, which delivers it again later; if that cannot be done, it stays here and
is tried again after five seconds. Broadcasting has no retries: a failed message is logged and passed over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from cometmq.base.ports import Clock
from cometmq.client.aio.held_queue import HeldQueue, Job
from cometmq.client.aio.listener_call import ListenerCall
from cometmq.client.aio.send_back import SendBack
from cometmq.client.aio.workers import TaskWorkers, ThreadWorkers, Workers
from cometmq.client.core.call_size import call_size
from cometmq.client.core.outcome import Verdict
from cometmq.model.properties import RETRY_TOPIC
from cometmq.model.received_message import ReceivedMessage

logger = logging.getLogger("cometmq.client")

RESUBMIT_SECONDS: Final = 5.0
TIMED_OUT_LEVEL: Final = 3
"""Delay level of a message that a listener kept for too long: 10 s."""


class ConcurrentListener:
    """Args:
    batch_max: messages for one call of a batch listener; others get one.
    send_back: None when broadcasting.
    unwrap_topic: a topic's name without namespace.
    """

    def __init__(
        self,
        call: ListenerCall,
        *,
        group: str,
        worker_count: int,
        batch_max: int,
        timeout: float,
        send_back: SendBack | None,
        unwrap_topic: Callable[[str], str],
        clock: Clock,
    ) -> None:
        self._call = call
        self._group = group
        self._batch_max = batch_max if call.is_batch else 1
        self._timeout = timeout
        self._send_back = send_back
        self._unwrap_topic = unwrap_topic
        self._clock = clock
        self._monotonic = clock.monotonic
        self._tasks: set[asyncio.Task[None]] = set()
        name = f"cometmq-consume-{group}"
        self._workers: Workers = (
            TaskWorkers(self._run, worker_count, name)
            if call.is_async
            else ThreadWorkers(self._run_in_thread, self._collect, worker_count, name)
        )

    def start(self) -> None:
        self._workers.start()

    def begin(self, held: HeldQueue) -> None:
        """A queue was taken. Its messages come by ``deliver``."""

    def deliver(self, held: HeldQueue, messages: Sequence[ReceivedMessage]) -> None:
        """Have new messages of a queue consumed."""
        if held.is_retry:
            for message in messages:
                origin = message.properties.get(RETRY_TOPIC)
                if origin is not None:
                    message.topic = self._unwrap_topic(origin)
        self._submit(held, messages)

    def _submit(self, held: HeldQueue, messages: Sequence[ReceivedMessage]) -> None:
        step = self._batch_max
        if step == 1:
            jobs = [Job(held, [message]) for message in messages]
        else:
            jobs, at = [], 0
            while at < len(messages):
                end = at + call_size(messages, at, step)
                jobs.append(Job(held, list(messages[at:end])))
                at = end
        held.opened(len(jobs))
        self._workers.submit(jobs)

    async def drain(self, held: HeldQueue, timeout: float) -> bool:
        """Begin nothing more of a dropped queue and wait for what was begun; False when that takes too long."""
        held.closed(self._workers.withdraw(held))
        return await held.rest(timeout)

    async def close(self, timeout: float) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout)
        await self._workers.close(timeout)

    async def sweep(self) -> None:
        """Send back what listeners have kept for too long."""
        if self._send_back is None:
            return
        oldest = self._monotonic() - self._timeout
        late = [
            job
            for job in self._workers.running
            if job is not None and job.started and job.started < oldest and not job.is_abandoned
        ]
        for job in late:
            await self._abandon(job)

    # Running.

    async def _run(self, job: Job) -> None:
        held = job.held
        if held.is_dropped:
            held.closed()
            return
        job.started = self._monotonic()
        verdict = await self._call.call(held.queue, job.messages)
        if verdict is None and not job.is_abandoned:
            self._consumed(job)
        else:
            await self._settle(job, verdict)

    def _run_in_thread(self, job: Job) -> None:
        if job.held.is_dropped:
            return
        job.started = self._monotonic()
        job.returned = self._call.call_in_thread(job.held.queue, job.messages)

    def _collect(self, jobs: list[Job]) -> None:
        for job in jobs:
            if not job.started:
                job.held.closed()
            elif job.returned is None and not job.is_abandoned:
                self._consumed(job)
            else:
                assert job.returned is None or isinstance(job.returned, Verdict)
                self._in_background(self._settle(job, job.returned))

    # Settling.

    def _consumed(self, job: Job) -> None:
        held = job.held
        process = held.process
        for message in job.messages:
            process.finish(message.queue_offset)
        held.last_consume = now = self._monotonic()
        held.consumed_count += len(job.messages)
        held.consumed_seconds += now - job.started
        held.space.set()
        held.closed()

    async def _settle(self, job: Job, verdict: Verdict | None) -> None:
        """Finish what was consumed and see to it that the rest comes again."""
        if job.is_abandoned:
            return
        if verdict is None:
            self._consumed(job)
            return
        held = job.held
        held.process.finish_all(job.messages[: verdict.consumed_count])
        held.last_consume = now = self._monotonic()
        held.consumed_count += verdict.consumed_count
        held.consumed_seconds += now - job.started
        failed = job.messages[verdict.consumed_count :]
        held.failed_count += len(failed)
        # Once the queue is somebody else's, that one gets the failed messages again anyway.
        if not held.is_released:
            await self._retry(held, failed, verdict.delay_level)
        held.space.set()
        held.closed()

    async def _retry(
        self, held: HeldQueue, failed: Sequence[ReceivedMessage], delay_level: int
    ) -> None:
        kept: list[ReceivedMessage] = []
        for message in failed:
            if self._send_back is None:
                logger.warning(
                    "failed message passed over, broadcasting has no retry group=%s message=%s",
                    self._group,
                    message.message_id,
                )
            elif not await self._send_back.send_back(message, held.queue, delay_level):
                kept.append(message)
                continue
            held.process.finish(message.queue_offset)
        if kept:
            for message in kept:
                message.reconsume_times += 1
            self._in_background(self._resubmit(held, kept))

    async def _resubmit(self, held: HeldQueue, messages: Sequence[ReceivedMessage]) -> None:
        await asyncio.sleep(RESUBMIT_SECONDS)
        if not held.is_dropped:
            self._submit(held, messages)

    async def _abandon(self, job: Job) -> None:
        job.is_abandoned = True
        held = job.held
        logger.warning(
            "listener takes too long, message sent back group=%s queue=%s message=%s",
            self._group,
            held.queue,
            job.messages[0].message_id,
        )
        if not held.is_released:
            await self._retry(held, job.messages, TIMED_OUT_LEVEL)
        held.space.set()
        held.closed()

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._background_ended)

    def _background_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("retry failed group=%s", self._group, exc_info=error)
