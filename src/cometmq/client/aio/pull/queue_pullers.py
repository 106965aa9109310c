"""Pulls the queues of a lite pull consumer in the background: one task per queue, which sleeps while its cache is full.

``core.consume.assigned_queues`` decides what to pull and receives the results; a poll waits here for the next arrival.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from cometmq.base.errors import CometError
from cometmq.client.aio.pull.pull_call import PullCalls
from cometmq.client.core.consume.assigned_queues import AssignedQueues
from cometmq.client.lite_pull_config import LitePullConfig
from cometmq.model.message_queue import MessageQueue
from cometmq.model.subscription import SubscriptionData
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.reply_errors import BrokerReplyError

logger = logging.getLogger("cometmq.client")

FLOW_CONTROL_SECONDS: Final = 0.02
"""Pause after a pull that the broker refused because it has too many of them."""


class QueuePullers:
    """Args:
    begin: determines where a queue starts and tells ``assigned``; if it raises CometError, it is called again.
    subscription: the subscription to a topic.
    failed: called with a pull's error, before the pause that follows.
    """

    def __init__(
        self,
        assigned: AssignedQueues,
        calls: PullCalls,
        config: LitePullConfig,
        *,
        begin: Callable[[MessageQueue], Awaitable[None]],
        subscription: Callable[[str], SubscriptionData],
        failed: Callable[[MessageQueue, CometError], None],
    ) -> None:
        self._assigned = assigned
        self._calls = calls
        self._begin = begin
        self._subscription = subscription
        self._failed = failed
        self._count_max = config.pull_batch_size
        self._wait_seconds = config.suspend_ms / 1000
        self._timeout = config.suspended_timeout_ms / 1000
        self._error_seconds = config.pull_error_delay_ms / 1000
        self._tasks: dict[MessageQueue, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._asleep: dict[MessageQueue, asyncio.Future[None]] = {}
        self._arrival = asyncio.Event()

    def start(self, queue: MessageQueue) -> None:
        """Start pulling an assigned queue; a pull in progress is abandoned."""
        self.stop(queue)
        self._tasks[queue] = asyncio.get_running_loop().create_task(
            self._run(queue), name=f"cometmq-client-pull-{queue.topic}-{queue.queue_id}"
        )

    def stop(self, queue: MessageQueue) -> None:
        task = self._tasks.pop(queue, None)
        if task is not None:
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """Returns when no task is left. Wakes up those waiting for an arrival."""
        for queue in list(self._tasks):
            self.stop(queue)
        if self._ending:
            await asyncio.wait(self._ending)
        self._arrival.set()

    def wake(self) -> None:
        """Something was taken, resumed or started: let the pullers that may continue do so."""
        for queue, sleeper in list(self._asleep.items()):
            if not sleeper.done() and self._assigned.next_pull(queue) is not None:
                sleeper.set_result(None)

    @property
    def has_sleepers(self) -> bool:
        return bool(self._asleep)

    async def arrival(self, timeout: float) -> bool:
        """Wait for a pull that brought messages; False if none did within ``timeout`` seconds."""
        self._arrival.clear()
        try:
            async with asyncio.timeout(timeout):
                await self._arrival.wait()
        except TimeoutError:
            return False
        return True

    def announce(self) -> None:
        """There may be something to take: wake up those waiting for it."""
        self._arrival.set()

    async def _run(self, queue: MessageQueue) -> None:
        while True:
            try:
                if self._assigned.position(queue) is None:
                    await self._begin(queue)
                await self._pull(queue)
            except CometError as error:
                self._failed(queue, error)
                is_flow_control = (
                    isinstance(error, BrokerReplyError) and error.code == ResponseCode.FLOW_CONTROL
                )
                await asyncio.sleep(
                    FLOW_CONTROL_SECONDS if is_flow_control else self._error_seconds
                )
            except Exception:
                # A bug must not silently stop the queue.
                logger.exception("pull failed queue=%s", queue)
                await asyncio.sleep(self._error_seconds)

    async def _pull(self, queue: MessageQueue) -> None:
        assigned = self._assigned
        while True:
            pull = assigned.next_pull(queue)
            if pull is None:
                await self._sleep(queue)
                continue
            result = await self._calls.pull(
                queue,
                pull.offset,
                self._subscription(queue.topic),
                count_max=self._count_max,
                wait_seconds=self._wait_seconds,
                timeout=self._timeout,
                is_lite=True,
            )
            if assigned.arrived(pull, result.messages, result.next_offset) and result.messages:
                self._arrival.set()

    async def _sleep(self, queue: MessageQueue) -> None:
        sleeper = asyncio.get_running_loop().create_future()
        self._asleep[queue] = sleeper
        try:
            await sleeper
        finally:
            # The task that replaces a cancelled one may already be asleep here.
            if self._asleep.get(queue) is sleeper:
                del self._asleep[queue]
