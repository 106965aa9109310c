"""What the broker does by the clock: save offsets, look for silent clients, take samples, measure its own lag."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from cometmq.base.errors import DiskFull
from cometmq.base.ports import Clock
from cometmq.broker.broker_stats import SAMPLE_SECONDS, BrokerStats
from cometmq.broker.clients.client_processor import ClientProcessor
from cometmq.broker.clients.queue_locks import QueueLocks
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.durability import Durability
from cometmq.broker.send.flow_control import FlowControl
from cometmq.broker.table_saver import freshened
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.consumer_offsets import OffsetTable

log = logging.getLogger("cometmq.broker")

LAG_SECONDS: Final = 0.1
LAG_SECONDS_BUSY: Final = 0.01
"""After a stall: what waited through it is refused, what comes behind must not be."""
SCAN_SECONDS: Final = 10.0


class Housekeeping:
    def __init__(
        self,
        *,
        live: LiveConfig,
        clock: Clock,
        store: MessageStore,
        offsets: OffsetTable,
        clients: ClientProcessor,
        locks: QueueLocks,
        stats: BrokerStats,
        flow: FlowControl,
        durability: Durability,
    ) -> None:
        self._live = live
        self._clock = clock
        self._store = store
        self._offsets = offsets
        self._clients = clients
        self._locks = locks
        self._stats = stats
        self._flow = flow
        self._durability = durability
        self._tasks: list[asyncio.Task[None]] = []
        self._lag_timer: asyncio.TimerHandle | None = None
        self._lag_due = 0.0
        self._is_unsaved = False
        self._writing: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._every(self._offset_seconds, self._save_offsets)),
            asyncio.create_task(self._every(lambda: SCAN_SECONDS, self._scan)),
            asyncio.create_task(self._every(lambda: SAMPLE_SECONDS, self._sample)),
        ]
        self._schedule_lag()

    async def stop(self) -> None:
        """Stop the clockwork and save everything a last time."""
        if self._lag_timer is not None:
            self._lag_timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._writing is not None:
            await asyncio.wait([self._writing])
        try:
            self._offsets.save_if_changed()
        except DiskFull as error:
            self._note_unsaved(error)

    async def _every(
        self, seconds: Callable[[], float], job: Callable[[], Awaitable[None]]
    ) -> None:
        while True:
            await asyncio.sleep(seconds())
            try:
                await job()
            except Exception:
                log.exception("periodic job failed job=%s", job.__name__)

    def _offset_seconds(self) -> float:
        return self._live.current.consumers.flush_offset_interval_ms / 1000

    async def _save_offsets(self) -> None:
        if self._offsets.is_saved:
            return
        await freshened(self._offsets)
        write = self._offsets.unsaved()
        if write is not None:
            # A cancelled wait does not end the thread, and the last save must not meet it.
            self._writing = asyncio.create_task(asyncio.to_thread(write))
            try:
                await asyncio.shield(self._writing)
            except DiskFull as error:
                self._note_unsaved(error)
            else:
                self._is_unsaved = False

    def _note_unsaved(self, error: DiskFull) -> None:
        if not self._is_unsaved:
            self._is_unsaved = True
            log.warning("offsets not saved reason=%s; they will be tried again", error)

    async def _scan(self) -> None:
        self._clients.expire(self._live.current.consumers.channel_expiry_ms / 1000)
        self._locks.expire()
        self._store.maintain()

    async def _sample(self) -> None:
        self._stats.sample()

    def _schedule_lag(self) -> None:
        seconds = LAG_SECONDS if self._flow.is_calm else LAG_SECONDS_BUSY
        self._lag_due = self._clock.monotonic() + seconds
        self._lag_timer = asyncio.get_running_loop().call_later(seconds, self._measure_lag)

    def _measure_lag(self) -> None:
        now = self._clock.monotonic()
        lag_ms = max(now - self._lag_due, 0.0) * 1000
        # Behind what has arrived by now: it waited for as long, and is judged by what held it up.
        asyncio.get_running_loop().call_soon(
            self._flow.measured, lag_ms, self._durability.waiting, self._store.flush_behind_bytes
        )
        self._durability.expire(now)
        self._schedule_lag()
