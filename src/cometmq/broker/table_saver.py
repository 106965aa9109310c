"""Writes the tables of topics, groups and filters when they change, off the event loop.

A change is on disk a few milliseconds later. Whoever must not answer before that waits for ``saved``; one write covers
every change made before it began, so a thousand topics created at once cost a handful of writes and not a thousand.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol, runtime_checkable

from cometmq.base.errors import DiskFull

log = logging.getLogger("cometmq.broker")

RETRY_SECONDS: Final = 1.0
PORTIONS_MAX: Final = 4000
"""How often the loop goes on in between, however quickly a table changes meanwhile."""


class SavedTable(Protocol):
    on_change: Callable[[], None] | None
    """To be called after each change."""

    def unsaved(self) -> Callable[[], None] | None:
        """Renders the table and returns the disk part of a save, for a worker thread; None when nothing changed."""
        ...


@runtime_checkable
class LargeTable(Protocol):
    """A table whose text takes long to render, and is rendered in portions."""

    def freshen(self) -> bool:
        """Do a part of the work. Whether there is more to do."""
        ...


async def freshened(table: object) -> None:
    """Return once most of a table's text is rendered; everybody else goes on in between."""
    if isinstance(table, LargeTable):
        for _ in range(PORTIONS_MAX):
            has_more = table.freshen()
            # After the last portion, too: what the caller does next is another few milliseconds.
            await asyncio.sleep(0)
            if not has_more:
                return


class TableSaver:
    """Owns the saving of its tables between ``start`` and ``stop``."""

    def __init__(self, tables: Sequence[SavedTable]) -> None:
        self._tables = tables
        self._changed = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []
        self._task: asyncio.Task[None] | None = None
        self._writing: asyncio.Task[None] | None = None
        self._is_failing = False

    def start(self) -> None:
        for table in self._tables:
            table.on_change = self._changed.set
        # What was changed before, for example by filling in what a loaded table lacked.
        self._changed.set()
        self._task = asyncio.create_task(self._run(), name="table-saver")

    async def stop(self) -> None:
        """Save everything a last time."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        # A cancelled wait does not end the thread, and the last save must not meet it.
        if self._writing is not None:
            await asyncio.wait([self._writing])
        await self._save_all()

    async def saved(self) -> None:
        """Return once every change made so far is on disk.

        Raises:
            DiskFull: not yet; the change is in the table and will be tried again.
        """
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self._changed.set()
        await waiter

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._save_all()
            if self._is_failing:
                await asyncio.sleep(RETRY_SECONDS)
                self._changed.set()

    async def _save_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        try:
            for table in self._tables:
                await freshened(table)
                if (write := table.unsaved()) is not None:
                    self._writing = asyncio.create_task(asyncio.to_thread(write))
                    await asyncio.shield(self._writing)
        except (DiskFull, OSError) as error:
            if not self._is_failing:
                log.warning("tables not saved reason=%s; they will be tried again", error)
            self._is_failing = True
            for waiter in waiting:
                if not waiter.done():
                    waiter.set_exception(error)
        else:
            self._is_failing = False
            for waiter in waiting:
                if not waiter.done():
                    waiter.set_result(None)
