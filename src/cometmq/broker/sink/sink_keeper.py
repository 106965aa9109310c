"""Keeps the record of sinks over restarts, also over a kill -9: what was saved, and what the log says since.

A save notes the lanes together with the end of the log at that moment. After a crash a walk over the log from there
finds the rows that came later by their mark (``model.sink``). The walk is short, since a save is repeated while sinks
write and the log grows. While none does, the file says so and nothing is walked over at all; so the first lane to be
opened after a pause waits for a save, and after a pause every writer has to open its lane again.

A slave gets rows with its master's log, and nobody notes them. Its master tells it the lanes every few seconds
(``follow``, ``told``); when it is promoted it walks over what came after that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from cometmq.base.errors import CometError
from cometmq.base.ports import Clock
from cometmq.broker.sink.sink_record import SinkRecord
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.sink_lanes import SinkLanesContent, SinkLanesFile

log = logging.getLogger("cometmq.broker")

GROWTH_BYTES_MAX: Final = 64 << 20
"""How much the log may grow, while sinks write, before the lanes are saved again."""
CHECK_SECONDS: Final = 2.0
PAUSE_SECONDS: Final = 120.0
"""After so long without a row nobody counts as writing."""


class SinkKeeper:
    """Owns the file and decides when to save, between ``start`` and ``stop``, any number of times."""

    def __init__(
        self, *, record: SinkRecord, store: MessageStore, file: SinkLanesFile, clock: Clock
    ) -> None:
        self._record = record
        self._store = store
        self._file = file
        self._monotonic = clock.monotonic
        self._last_use = 0.0
        self._is_writing = False
        self._saved_offset = 0
        self._saving = asyncio.Lock()
        self._told: SinkLanesContent | None = None
        self.is_running = False
        """Lanes may be opened and closed: what becomes of them is kept."""
        self._task: asyncio.Task[None] | None = None

    @property
    def is_writing(self) -> bool:
        """Whether the file on disk says that rows may lie behind what it knows."""
        return self._is_writing

    def resume(self) -> None:
        """Learn what the lanes were at when this last ran, without saving by the clock. Raises CorruptFile."""
        if self.is_running:
            return
        content, self._told = self._told or self._file.load(), None
        self.is_running = True
        self._is_writing = False
        self._record.load(() if content is None else content.lanes)
        if content is not None and content.is_writing:
            count = 0
            # What a master told may be ahead of what came of its log.
            content = content.cut(self._store.max_physical)
            self._record.load(content.lanes)
            for mark, physical_offset in self._store.sink_marks_since(content.log_offset):
                self._record.note(mark, physical_offset)
                count += 1
            log.info("rows of sinks since the last save count=%d", count)
            try:
                # So that the next start has nothing to walk over.
                self._file.saving(self._record.rows(), self._store.max_physical, is_writing=False)()
            except (CometError, OSError) as error:
                # No lane is opened before a save has succeeded, so what the file says stays true.
                log.warning("lanes of sinks not saved reason=%s", error)

    def start(self) -> None:
        """Go on where it stopped last, however it stopped. Raises CorruptFile."""
        if self._task is not None:
            return
        self.resume()
        self._task = asyncio.create_task(self._run(), name="sink-keeper")

    async def stop(self) -> None:
        """Save a last time; every writer has to open its lane again."""
        if not self.is_running:
            return
        self.is_running = False
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        try:
            await self._pause()
        except (CometError, OSError) as error:
            # The next start finds in the log what this save would have said.
            log.warning("lanes of sinks not saved reason=%s", error)

    def content(self) -> SinkLanesContent:
        """All that is known, as of now, for a slave."""
        return SinkLanesContent(True, self._store.max_physical, list(self._record.rows()))

    def follow(self) -> None:
        """This broker is a slave from now on. The file says so, for a promotion before its master has told its lanes.

        Raises:
            CorruptFile, DiskFull: the file cannot be read or saved.
        """
        content = self._file.load()
        if content is None:
            # The log may be the copy of one that has rows.
            self._keep(SinkLanesContent(True, self._store.min_physical, []))
        elif not content.is_writing:
            self._keep(SinkLanesContent(True, self._store.max_physical, content.lanes))

    def told(self, content: SinkLanesContent) -> Callable[[], None] | None:
        """The master's lanes. What is to be saved now, in a worker thread; None: in memory is enough for a while."""
        self._told = content
        if content.log_offset - self._saved_offset < GROWTH_BYTES_MAX:
            return None
        self._saved_offset = content.log_offset
        return self._file.saving(content.lanes, content.log_offset, is_writing=True)

    def cut(self, log_end: int) -> None:
        """The log of this slave was cut: what it had from there on was never the master's. Raises as ``follow``."""
        if self._told is not None:
            self._told = self._told.cut(log_end)
        content = self._file.load()
        if content is not None:
            self._keep(content.cut(log_end))

    def _keep(self, content: SinkLanesContent) -> None:
        self._saved_offset = content.log_offset
        self._file.saving(content.lanes, content.log_offset, is_writing=content.is_writing)()

    def used(self) -> None:
        """A sink has written."""
        self._last_use = self._monotonic()

    async def begin(self) -> None:
        """Return once the file says that sinks write.

        Raises:
            DiskFull: it could not be saved.
        """
        async with self._saving:
            if not self._is_writing:
                await self._save(is_writing=True)
                self._is_writing = True
                self.used()

    async def check(self) -> None:
        """Save if there is a reason to."""
        if not self._is_writing:
            return
        if self._monotonic() - self._last_use > PAUSE_SECONDS:
            await self._pause()
        elif self._store.max_physical - self._saved_offset >= GROWTH_BYTES_MAX:
            async with self._saving:
                await self._save(is_writing=True)

    async def _pause(self) -> None:
        async with self._saving:
            if not self._is_writing:
                return
            # First, and in the same turn of the loop as the lanes are read: what is written later was opened later.
            self._is_writing = False
            self._record.close_writers()
            try:
                await self._save(is_writing=False)
            except BaseException:
                self._is_writing = True
                raise

    async def _save(self, *, is_writing: bool) -> None:
        log_offset = self._store.max_physical
        write = self._file.saving(self._record.rows(), log_offset, is_writing=is_writing)
        await asyncio.shield(asyncio.create_task(asyncio.to_thread(write)))
        self._saved_offset = log_offset

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                await self.check()
            except (CometError, OSError) as error:
                log.warning("lanes of sinks not saved reason=%s; they will be tried again", error)
