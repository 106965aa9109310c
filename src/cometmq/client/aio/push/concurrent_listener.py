"""Concurrent consumption: messages of all queues go to whichever worker is free, and finish in any order.

A failed message is sent back to the broker, which delivers it again later; if that cannot be done, it stays here and
is tried again after five seconds. Broadcasting has no retries: a failed message is logged and passed over. All that is
decided in ``core.consume.member.held_queue``.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from cometmq.base.ports import Clock
from cometmq.client.aio.push.listener_call import ListenerCall
from cometmq.client.aio.push.send_back import SendBack
from cometmq.client.aio.push.workers import TaskWorkers, ThreadWorkers, Workers
from cometmq.client.core.consume.member.held_queue import HeldQueue, Job, late_jobs
from cometmq.client.core.consume.member.instructions import Instructions, Resubmit, RetryLater
from cometmq.client.core.consume.outcome import Verdict
from cometmq.model.messages.received_message import ReceivedMessage

logger = logging.getLogger("cometmq.client")

RUN_MESSAGES: Final = 32
"""A worker calls a coroutine function for so many messages in a row, as long as none of the calls waits."""


class ConcurrentListener:
    """Args:
    batch_max: messages for one call of a batch listener; others get one.
    timeout: a message that the listener keeps for longer is sent back.
    send_back: None when broadcasting.
    do: carries out instructions.
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
        do: Callable[[Instructions], None],
        clock: Clock,
    ) -> None:
        self._call = call
        self._group = group
        self._batch_max = batch_max if call.is_batch else 1
        self._timeout = timeout
        self._send_back = send_back
        self._do = do
        self._monotonic = clock.monotonic
        self._tasks: set[asyncio.Task[None]] = set()
        name = f"cometmq-consume-{group}"
        self._workers: Workers
        self._runs_of: TaskWorkers | None = None
        """The workers, if they get runs of messages and call the listener for one after the other."""
        if not call.is_async:
            self._workers = ThreadWorkers(self._run_in_thread, self._collect, worker_count, name)
        else:
            self._workers = workers = TaskWorkers(self._run, worker_count, name)
            if not call.is_batch:
                self._runs_of, self._batch_max = workers, RUN_MESSAGES

    def start(self) -> None:
        self._workers.start()

    def begin(self, held: HeldQueue) -> None:
        """A queue was taken. Its messages come by ``deliver``."""

    def deliver(self, held: HeldQueue, messages: Sequence[ReceivedMessage]) -> None:
        """Have messages of a queue consumed."""
        self._workers.submit(held.open_jobs(messages, self._batch_max))

    def withdraw(self, held: HeldQueue) -> int:
        """Begin nothing more of a queue; the number of jobs that were not begun."""
        return self._workers.withdraw(held)

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
        # Looked for again each time: while one is sent back, another may end.
        while late := late_jobs(self._workers.running, oldest):
            await self._carry_out(late[0].held.abandon(late[0], self._monotonic()))

    # Running.

    async def _run(self, job: Job) -> None:
        held = job.held
        if held.is_dropped:
            self._do(held.close_jobs(1, self._monotonic()))
            return
        job.started = self._monotonic()
        call, count, begun = self._call, 0, None
        if self._runs_of is not None:
            if not call.hooks and job.messages[0].body_error is None:
                count, begun = call.call_each(job.messages)
                if begun is None:
                    if todo := held.consumed(job, self._monotonic()):
                        self._do(todo)
                    return
            if len(job.messages) > 1:
                # Others go on with the rest while this one waits, or is given back.
                rest, todo = held.split(job, count, self._monotonic())
                self._runs_of.submit_next(rest)
                self._do(todo)
        verdict = job.returned = await call.call(held.queue, job.messages, begun)
        if verdict is None:
            if todo := held.consumed(job, self._monotonic()):
                self._do(todo)
        else:
            await self._carry_out(held.failed(job, verdict, self._monotonic()))

    def _run_in_thread(self, job: Job) -> None:
        if job.held.is_dropped:
            return
        job.started = self._monotonic()
        job.returned = self._call.call_in_thread(job.held.queue, job.messages)

    def _collect(self, jobs: list[Job]) -> None:
        for job in jobs:
            held, now = job.held, self._monotonic()
            if not job.started:
                self._do(held.close_jobs(1, now))
            elif job.returned is None:
                if todo := held.consumed(job, now):
                    self._do(todo)
            else:
                assert isinstance(job.returned, Verdict)
                self._in_background(self._carry_out(held.failed(job, job.returned, now)))

    # After a failure.

    async def _carry_out(self, todo: Instructions) -> None:
        """Returns when the broker has been asked to deliver the failed messages again."""
        waiting = deque(todo)
        while waiting:
            instruction = waiting.popleft()
            if isinstance(instruction, RetryLater):
                waiting.extend(await self._retry_later(instruction))
            elif isinstance(instruction, Resubmit):
                self._in_background(self._resubmit(instruction))
            else:
                self._do((instruction,))

    async def _retry_later(self, wanted: RetryLater) -> Instructions:
        assert self._send_back is not None
        held = wanted.held
        kept: list[ReceivedMessage] = []
        for message in wanted.messages:
            if await self._send_back.send_back(message, held.queue, wanted.delay_level):
                held.sent_back(message)
            else:
                kept.append(message)
        return held.keep(kept, self._monotonic())

    async def _resubmit(self, wanted: Resubmit) -> None:
        await asyncio.sleep(wanted.seconds)
        if not wanted.held.is_dropped:
            self.deliver(wanted.held, wanted.messages)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._background_ended)

    def _background_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("retry failed group=%s", self._group, exc_info=error)
