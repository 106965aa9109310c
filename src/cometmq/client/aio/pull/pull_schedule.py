"""Calls a user's function for each queue that a pull consumer owns, as often as that function asks for.

    schedule = PullSchedule(consumer)
    schedule.add("Orders", read)            # async def read(queue, turn): ...; turn.next_seconds = 1.0
    async with schedule: ...

RocketMQ's counterpart is MQPullConsumerScheduleService.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, Self

from cometmq.base.errors import UsageError
from cometmq.client.aio.pull.pull_consumer import PullConsumer
from cometmq.client.core.consume.rebalance import plan
from cometmq.model.message_queue import MessageQueue

logger = logging.getLogger("cometmq.client")

NEXT_SECONDS: Final = 0.2


class Turn:
    """Lets a call decide when the next one happens, and gives access to the consumer.

    ``next_seconds`` counts from the end of this call; the default is 0.2, and 0 means at once.
    """

    __slots__ = ("consumer", "next_seconds")

    def __init__(self, consumer: PullConsumer) -> None:
        self.consumer = consumer
        self.next_seconds = NEXT_SECONDS


Callback = Callable[[MessageQueue, Turn], Awaitable[None] | None]
"""A def or an async def. Exceptions are logged, and it is called again after 0.2 s or the time it set."""


class PullSchedule:
    """Belongs to a running consumer, and must be closed before it. There is one call at a time for each queue."""

    def __init__(self, consumer: PullConsumer) -> None:
        self._consumer = consumer
        self._callbacks: dict[str, Callback] = {}
        self._tasks: dict[MessageQueue, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._mine: dict[str, list[MessageQueue]] = {}
        self._is_running = False

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that are currently scheduled, sorted."""
        return sorted(self._tasks)

    def add(self, topic: str, callback: Callback) -> None:
        """Call ``callback(queue, turn)`` for this consumer's share of a topic's queues.

        Raises:
            UsageError: the topic already has a callback, or the consumer has a listener for it.
        """
        if topic in self._callbacks:
            raise UsageError(f"topic {topic!r} has a callback already")
        self._consumer.on_queues_changed(topic, self._changed)
        self._callbacks[topic] = callback

    def start(self) -> None:
        """Start calling; the first calls for a topic happen once its queues are distributed."""
        self._is_running = True
        for topic, mine in self._mine.items():
            self._hold(topic, mine)

    async def close(self) -> None:
        """Stop calling; calls in progress are cancelled, and have ended on return."""
        self._is_running = False
        for queue in list(self._tasks):
            self._stop(queue)
        if self._ending:
            await asyncio.wait(self._ending)

    def _changed(self, topic: str, queues: list[MessageQueue], mine: list[MessageQueue]) -> None:
        self._mine[topic] = mine
        if self._is_running:
            self._hold(topic, mine)

    def _hold(self, topic: str, mine: list[MessageQueue]) -> None:
        change = plan(mine, [queue for queue in self._tasks if queue.topic == topic])
        for queue in change.drop:
            self._stop(queue)
        for queue in change.take:
            self._tasks[queue] = asyncio.get_running_loop().create_task(
                self._call_again_and_again(queue, self._callbacks[topic]),
                name=f"cometmq-client-schedule-{queue.topic}-{queue.queue_id}",
            )

    def _stop(self, queue: MessageQueue) -> None:
        task = self._tasks.pop(queue)
        task.cancel()
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _call_again_and_again(self, queue: MessageQueue, callback: Callback) -> None:
        while True:
            turn = Turn(self._consumer)
            try:
                outcome = callback(queue, turn)
                if inspect.isawaitable(outcome):
                    await outcome
            except Exception:
                logger.exception("scheduled pull failed queue=%s", queue)
            await asyncio.sleep(max(turn.next_seconds, 0.0))
