"""The account files of RocketMQ 4 under a running broker: read again when they change, edited on request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from cometmq.access.plain.plain_account import PlainTable
from cometmq.access.plain.plain_files import PlainFiles
from cometmq.base.errors import ConfigError

log = logging.getLogger("cometmq.access")

RELOAD_SECONDS: Final = 5.0

Edit = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class PlainKeeper:
    """Owned by the event loop; files are read and written in a worker thread."""

    def __init__(self, files: PlainFiles) -> None:
        self.table = PlainTable()
        self.files = files
        self.on_change: Callable[[PlainTable], None] | None = None
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Raises ConfigError: the files cannot be used."""
        self.table = await asyncio.to_thread(self.files.load)

    def start(self) -> None:
        """Look for changes from now on."""
        self._task = asyncio.create_task(self._run(), name="cometmq-accounts")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def edit(self, path: str | None, change: Edit) -> None:
        """Change one of the files, the default one if none is named; it counts at once.

        Raises:
            ConfigError, DiskFull, OSError: nothing has changed.
        """
        # To its end, even if the client that asked for it goes.
        await asyncio.shield(asyncio.create_task(self._edit(path, change)))

    async def reload(self) -> None:
        """Read the files if they have changed; content that cannot be used is logged, and the old state stays."""
        async with self._lock:
            try:
                table = await asyncio.to_thread(self.files.changed)
            except ConfigError as error:
                log.error("accounts not reloaded, the old ones stay reason=%s", error)
                return
            if table is not None:
                log.info("accounts reloaded count=%d", len(table.accounts))
                self._take(table)

    async def _edit(self, path: str | None, change: Edit) -> None:
        async with self._lock:
            self._take(await asyncio.to_thread(self._edited, path, change))

    def _edited(self, path: str | None, change: Edit) -> PlainTable:
        self.files.edit(self.files.known(path), change)
        return self.files.load()

    def _take(self, table: PlainTable) -> None:
        self.table = table
        if self.on_change is not None:
            self.on_change(table)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(RELOAD_SECONDS)
            try:
                await self.reload()
            except Exception:
                log.exception("accounts not reloaded")

    def path_of(self, access_key: str) -> Path | None:
        """The file of an account."""
        account = self.table.accounts.get(access_key)
        return None if account is None else Path(account.path)
