"""A queue that this client consumes: its unfinished messages, and how far its work is on the way to an end.

    taking (the rebalancer) -> held -> dropped: nothing new is pulled or begun -> released: others have it

Until it is released what ends still counts, and the position that is then committed is exact.
Belongs to the event loop's thread; worker threads may read ``is_dropped``.
"""

from __future__ import annotations

import asyncio

from cometmq.client.core.process_queue import OrderlyQueue, ProcessQueue
from cometmq.model.message_queue import MessageQueue
from cometmq.model.names import RETRY_PREFIX
from cometmq.model.received_message import ReceivedMessage


class Job:
    """Messages for one call of a listener."""

    __slots__ = ("error", "held", "is_abandoned", "messages", "returned", "started")

    def __init__(self, held: HeldQueue, messages: list[ReceivedMessage]) -> None:
        self.held = held
        self.messages = messages
        self.started = 0.0
        """Monotonic seconds; 0 before the listener is called."""
        self.returned: object = None
        self.error: Exception | None = None
        self.is_abandoned = False
        """It took too long and was sent back; what becomes of it does not matter any more."""


class HeldQueue:
    __slots__ = (
        "arrived",
        "consumed_count",
        "consumed_seconds",
        "failed_count",
        "is_dropped",
        "is_released",
        "is_retry",
        "jobs_open",
        "last_consume",
        "last_pull",
        "last_pull_ms",
        "locked_at",
        "process",
        "pulled_count",
        "queue",
        "rested",
        "space",
    )

    def __init__(
        self, queue: MessageQueue, process: ProcessQueue | OrderlyQueue, *, now: float, now_ms: int
    ) -> None:
        self.queue = queue
        self.process = process
        self.is_retry = queue.topic.startswith(RETRY_PREFIX)
        self.is_dropped = False
        self.is_released = False
        self.jobs_open = 0
        """Jobs that were handed to the workers and are not yet settled."""
        self.rested = asyncio.Event()
        """Set while there are none."""
        self.rested.set()
        self.space = asyncio.Event()
        """Set when messages were finished: a puller that waits at a limit looks again."""
        self.arrived = asyncio.Event()
        """Set when messages were pulled, for orderly consumption."""
        self.locked_at: float | None = None
        """When the broker last confirmed the lock of an orderly queue; monotonic seconds."""
        self.last_pull = now
        self.last_pull_ms = now_ms
        self.last_consume = now
        self.pulled_count = 0
        self.consumed_count = 0
        self.consumed_seconds = 0.0
        self.failed_count = 0

    @property
    def orderly(self) -> OrderlyQueue:
        assert isinstance(self.process, OrderlyQueue)
        return self.process

    def opened(self, count: int) -> None:
        """So many jobs were handed over."""
        if count:
            self.jobs_open += count
            self.rested.clear()

    def closed(self, count: int = 1) -> None:
        """So many jobs are settled."""
        self.jobs_open -= count
        if self.jobs_open <= 0:
            self.rested.set()

    def drop(self) -> None:
        self.is_dropped = True
        self.space.set()
        self.arrived.set()

    def is_locked(self, now: float, valid_seconds: float) -> bool:
        return self.locked_at is not None and now - self.locked_at < valid_seconds

    async def rest(self, timeout: float) -> bool:
        """Wait until no job is open; False when that takes longer."""
        if self.rested.is_set():
            return True
        try:
            async with asyncio.timeout(timeout):
                await self.rested.wait()
        except TimeoutError:
            return False
        return True
