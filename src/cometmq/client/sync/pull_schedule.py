"""Calls a user's function for each queue that a pull consumer owns, in threads; see ``aio.pull.pull_schedule``.

schedule = PullSchedule(consumer)
schedule.add("Orders", read)            # def read(queue, turn): ...; turn.next_seconds = 1.0
with schedule: ...
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Final

from cometmq.base.errors import UsageError
from cometmq.client import aio
from cometmq.client.aio.pull.pull_schedule import NEXT_SECONDS
from cometmq.client.blocks import Block
from cometmq.client.sync.client import check_is_plain
from cometmq.client.sync.pull_consumer import PullConsumer
from cometmq.model.message_queue import MessageQueue

THREADS_MAX: Final = 20
"""Maximum number of calls at once; RocketMQ has the same number of threads."""

CALLS_END_SECONDS: Final = 30.0


class Turn:
    """Lets a call decide when the next one happens, and gives access to the consumer.

    ``next_seconds`` counts from the end of this call; the default is 0.2, and 0 means at once.
    """

    __slots__ = ("consumer", "next_seconds")

    def __init__(self, consumer: PullConsumer) -> None:
        self.consumer = consumer
        self.next_seconds = NEXT_SECONDS


Callback = Callable[[MessageQueue, Turn], None]
"""A plain def. Exceptions are logged, and it is called again after 0.2 s or the time it set."""


class PullSchedule(Block):
    """Belongs to a running consumer, and must be closed before it. There is one call at a time for each queue."""

    def __init__(self, consumer: PullConsumer) -> None:
        self._consumer = consumer
        self._aio = aio.PullSchedule(consumer._aio)
        self._pool: ThreadPoolExecutor | None = None
        self._under_way: set[Future[None]] = set()
        self._in_callback = threading.local()

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that are currently scheduled, sorted."""
        return self._consumer._tell(lambda: self._aio.queues)

    def add(self, topic: str, callback: Callback) -> None:
        """Call ``callback(queue, turn)`` for this consumer's share of a topic's queues.

        Raises:
            UsageError: the topic already has a callback, or the consumer has a listener for it.
        """
        check_is_plain("callback", callback)

        async def call(queue: MessageQueue, turn: aio.Turn) -> None:
            pool = self._pool
            if pool is None:
                return
            mine = Turn(self._consumer)
            future = pool.submit(self._call, callback, queue, mine)
            self._under_way.add(future)
            future.add_done_callback(self._under_way.discard)
            try:
                await asyncio.wrap_future(future)
            finally:
                turn.next_seconds = mine.next_seconds

        self._consumer._tell(self._aio.add, topic, call)

    def start(self) -> None:
        """Start calling; the first calls for a topic happen once its queues are distributed."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(THREADS_MAX, "cometmq-client-schedule")
        self._consumer._ask(self._aio.start)

    def close(self) -> None:
        """Stop calling; calls in progress have ended on return, unless one takes longer than 30 s.

        Raises:
            UsageError: called by a callback, which would wait for itself.
        """
        if getattr(self._in_callback, "is_set", False):
            raise UsageError(
                "a callback cannot close its own schedule; let the thread that opened it do so"
            )
        pool, self._pool = self._pool, None
        if pool is None:
            return
        self._consumer._run(self._aio.close)
        wait(list(self._under_way), CALLS_END_SECONDS)
        pool.shutdown(wait=False)

    def _call(self, callback: Callback, queue: MessageQueue, turn: Turn) -> None:
        self._in_callback.is_set = True
        callback(queue, turn)
