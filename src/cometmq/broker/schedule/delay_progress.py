"""How far delivery has come, over restarts: nothing is lost, and nothing that the log holds is delivered twice.

A save notes the offset of every level together with the end of the log at that moment, and it is written only once the
log is on disk up to there. So after a crash of any kind

- everything before a saved offset has its delivered copy in the log: no loss;
- every copy that was made later lies behind the saved end: a walk over the log from there finds it by the mark that
  ``store.delivered`` describes, and its level goes on behind it. Levels deliver in order, so one number says it all.

RocketMQ saves the offsets alone and delivers again what came after. The walk is short, since a save is repeated while
messages wait and the log grows, and it begins with the oldest message that waits: a copy lies behind its original.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from cometmq.base.errors import CometError
from cometmq.base.ports import Clock
from cometmq.broker.flush_wait import until_flushed
from cometmq.model.names import SCHEDULE_TOPIC
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.delay_offsets import UNKNOWN, DelayOffsetTable

log = logging.getLogger("cometmq.broker")

GROWTH_BYTES_MAX: Final = 16 << 20
"""How much the log may grow while messages wait before the same offsets are saved again."""


class Progress:
    def __init__(self, *, store: MessageStore, table: DelayOffsetTable, clock: Clock) -> None:
        self._store = store
        self._table = table
        self._clock = clock
        self._writing: asyncio.Task[None] | None = None
        self._is_unsaved = False

    def recover(self) -> dict[int, int]:
        """Where each level goes on: as saved, or behind the last copy that was made after the save."""
        offsets = {
            # No further than the queue goes, or what comes next would be passed over.
            queue_id + 1: min(
                self._table.offsets.get(queue_id + 1, 0),
                self._store.max_offset(SCHEDULE_TOPIC, queue_id),
            )
            for queue_id in self._store.queue_ids(SCHEDULE_TOPIC)
        }
        heads = [
            entry[0]
            for level, offset in offsets.items()
            for entry in self._store.entries(SCHEDULE_TOPIC, level - 1, offset, 1)
        ]
        if not heads or self._table.log_offset == UNKNOWN:
            return offsets
        found = 0
        for queue_id, queue_offset in self._store.delivered_since(
            max(self._table.log_offset, min(heads))
        ):
            level = queue_id + 1
            if queue_offset >= offsets.get(level, 0):
                offsets[level] = queue_offset + 1
                found += 1
        if found:
            log.info("delivered since the last save count=%d", found)
        return offsets

    async def save(self, offsets: dict[int, int]) -> None:
        """Note these offsets durably if there is a reason to; the next time will do if the disk is full or slow."""
        log_offset = self._store.max_physical
        if not self._is_due(offsets, log_offset):
            return
        if not await until_flushed(self._store, self._clock, log_offset):
            self._note_unsaved("the log is not on disk yet")
            return
        # A cancelled wait does not end the thread, and the last save must not meet it.
        self._writing = asyncio.create_task(
            asyncio.to_thread(self._table.saving(offsets, log_offset))
        )
        try:
            await asyncio.shield(self._writing)
        except (CometError, OSError) as error:
            self._note_unsaved(str(error))
        else:
            self._is_unsaved = False

    async def save_at_stop(self, offsets: dict[int, int]) -> None:
        """Note the last offsets, after everything was delivered that will be."""
        if self._writing is not None and not self._writing.done():
            await asyncio.wait([self._writing])
        log_offset = self._store.max_physical
        if (offsets, log_offset) == (self._table.offsets, self._table.log_offset):
            return
        if not offsets and not self._table.offsets:
            return
        try:
            self._store.flush()
            self._table.saving(offsets, log_offset)()
        except (CometError, OSError) as error:
            # The next start finds in the log what this save would have said.
            self._note_unsaved(str(error))

    def _is_due(self, offsets: dict[int, int], log_offset: int) -> bool:
        if offsets != self._table.offsets:
            return True
        has_grown = log_offset - self._table.log_offset >= GROWTH_BYTES_MAX
        return has_grown and any(
            offset < self._store.max_offset(SCHEDULE_TOPIC, level - 1)
            for level, offset in offsets.items()
        )

    def _note_unsaved(self, reason: str) -> None:
        if not self._is_unsaved:
            self._is_unsaved = True
            log.warning("delay offsets not saved reason=%s; they will be tried again", reason)
