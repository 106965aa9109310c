"""Waits until the log is on disk, for those who then note how far they have come."""

from __future__ import annotations

import asyncio
from typing import Final

from cometmq.base.ports import Clock
from cometmq.store.message_store import MessageStore

FLUSH_SECONDS_MAX: Final = 30.0
"""How long a save waits for the disk before it gives up until the next time."""


async def until_flushed(store: MessageStore, clock: Clock, log_offset: int) -> bool:
    """False when the log up to ``log_offset`` is not on disk in time."""
    is_flushed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def done(is_in_time: bool) -> None:
        if not is_flushed.done():
            is_flushed.set_result(is_in_time)

    store.watermarks.flushed.when(log_offset, done, clock.monotonic() + FLUSH_SECONDS_MAX)
    return await is_flushed
