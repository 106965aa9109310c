"""Delayed messages as the rest of the broker sees them: put one, and it comes to its topic when its level says.

Parts: ``delayed_forms`` (what is stored), ``due_times`` and ``delay_delivery`` (when it leaves), ``delay_progress``
(how far that has come).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from cometmq.base.ports import Clock, EventLoop
from cometmq.broker.broker_stats import DELAY, BrokerStats
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.schedule.delay_delivery import Delivery
from cometmq.broker.schedule.delay_progress import Progress
from cometmq.broker.schedule.delayed_forms import waiting_form
from cometmq.model.names import SCHEDULE_TOPIC
from cometmq.store.log.new_messages import NewMessage, Stored
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.delay_offsets import DelayOffsetTable
from cometmq.store.queues.delay_levels import DelayLevels

log = logging.getLogger("cometmq.broker")


class Delays(Protocol):
    """What can be told about the delay levels."""

    def encode(self) -> bytes:
        """The offsets of all levels, as a replica asks for them."""
        ...

    def positions(self) -> dict[int, tuple[int, int]]:
        """By level: the first message not yet delivered, and the end of the queue."""
        ...


class Schedule:
    """Delivers between ``start`` and ``stop``, any number of times. ``put`` always works; what it took waits meanwhile.

    Args:
        restore_topic: makes sure that a topic has an entry, with so many queues at least.
    """

    def __init__(
        self,
        *,
        live: LiveConfig,
        store: MessageStore,
        table: DelayOffsetTable,
        stats: BrokerStats,
        clock: Clock,
        loop: EventLoop,
        restore_topic: Callable[[str, int], None],
    ) -> None:
        self._live = live
        self._store = store
        self._table = table
        self._stats = stats
        self._levels = DelayLevels(live.current.store.queues.message_delay_level)
        self._restore_topic = restore_topic
        self.tally = stats.topic_put(SCHEDULE_TOPIC, DELAY)
        """Whoever puts a message counts it here; once it is delivered it counts for its own topic."""
        self._delivery = Delivery(
            store=store, levels=self._levels, clock=clock, loop=loop, put=self._deliver
        )
        self._progress = Progress(store=store, table=table, clock=clock)
        self._task: asyncio.Task[None] | None = None

    def put(self, message: NewMessage, level: int) -> Stored:
        """Store a message so that it reaches its topic and queue after the delay of ``level``, 1 or more.

        A level above the highest one counts as the highest. Raises as ``MessageStore.put``.
        """
        assert level > 0, level
        level = min(level, self._levels.level_max)
        stored = self._store.put(waiting_form(message, level))
        self._delivery.stored(level, stored)
        return stored

    def start(self) -> None:
        """Go on where delivery stopped last, however it stopped."""
        if self._task is not None:
            return
        self.resume()
        self._task = asyncio.create_task(self._save_again_and_again(), name="delay-offsets")

    def resume(self) -> None:
        """Recover and deliver, without saving by the clock."""
        if not self._delivery.is_running:
            self._delivery.start(self._progress.recover())

    async def stop(self) -> None:
        """Deliver nothing more and save how far it came."""
        if not self._delivery.is_running:
            return
        self._delivery.stop()
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self._progress.save_at_stop(self._delivery.offsets)

    async def save(self) -> None:
        """Note how far delivery has come, if there is anything new to note."""
        await self._progress.save(self._delivery.offsets)

    def encode(self) -> bytes:
        """See ``Delays``."""
        offsets = self._delivery.offsets
        if not self._delivery.is_running:
            # As a master has told last.
            offsets = self._table.offsets or offsets
        return self._table.encode(offsets)

    def take_over(self, content: bytes, log_offset: int) -> Callable[[], None] | None:
        """The disk part of noting how far the master has delivered, for the next start; None while this delivers.

        Args:
            log_offset: what was delivered beyond the offsets in ``content`` has its copy in the log at or after this.

        Raises:
            RemoteProtocolError: it holds no offsets.
        """
        if self._delivery.is_running:
            return None
        return self._table.copying(content, log_offset)

    def positions(self) -> dict[int, tuple[int, int]]:
        """See ``Delays``."""
        return {
            level: (offset, self._store.max_offset(SCHEDULE_TOPIC, level - 1))
            for level, offset in self._delivery.offsets.items()
        }

    def _deliver(self, message: NewMessage) -> None:
        self._restore_topic(message.topic, message.queue_id + 1)
        stored = self._store.put(message)
        self._stats.topic_put(message.topic, DELAY).add(stored.size_bytes)

    async def _save_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(self._live.current.schedule.flush_offset_interval_ms / 1000)
            try:
                await self.save()
            except Exception:
                log.exception("delay offsets not saved")

    def __repr__(self) -> str:
        return f"<Schedule {self._delivery!r}>"
