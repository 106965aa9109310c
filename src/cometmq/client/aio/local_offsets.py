"""Positions of a broadcasting consumer, in a file that RocketMQ's Java client reads and writes, too.

``<directory>/<client id>/<group>/offsets.json``, with the content before as ``offsets.json.bak``:
``{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:17}}``
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping

from cometmq.base.errors import CorruptFile, RemoteProtocolError
from cometmq.base.ports import Files
from cometmq.base.system import SystemFiles
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol.bodies.offsets import ResetOffsets

logger = logging.getLogger("cometmq.client")

DIRECTORY = ".rocketmq_offsets"
FILE = "offsets.json"
BACKUP_SUFFIX = ".bak"


class LocalOffsets:
    def __init__(
        self, client_id: str, group: str, directory: str = "", *, files: Files | None = None
    ) -> None:
        """``directory`` empty: RocketMQ's, in the home directory."""
        base = directory or os.path.join(os.path.expanduser("~"), DIRECTORY)  # noqa: PTH111, PTH118
        self._directory = f"{base}/{client_id}/{group}"
        self._path = f"{self._directory}/{FILE}"
        self._files: Files = files or SystemFiles()
        self._positions: dict[MessageQueue, int] = {}
        self._writing = asyncio.Lock()

    @property
    def path(self) -> str:
        return self._path

    async def load(self) -> None:
        """Read the file, or its backup when it is missing or broken. None of both: nothing was consumed yet.

        Raises:
            CorruptFile: there is something, and none of it can be read.
        """
        self._positions = await asyncio.to_thread(self._read)

    async def read(self, queue: MessageQueue) -> int | None:
        return self._positions.get(queue)

    async def save(self, positions: Mapping[MessageQueue, int]) -> None:
        try:
            await self.commit(positions)
        except OSError as error:
            logger.warning("positions not saved file=%s reason=%s", self._path, error)

    async def commit(self, positions: Mapping[MessageQueue, int]) -> None:
        """Raises OSError when the file cannot be written."""
        async with self._writing:
            merged = {**self._positions, **positions}
            if merged == self._positions:
                return
            await asyncio.to_thread(self._write, ResetOffsets(offset_table=merged).encode())
            self._positions = merged

    def _read(self) -> dict[MessageQueue, int]:
        failure: RemoteProtocolError | None = None
        for path in (self._path, self._path + BACKUP_SUFFIX):
            try:
                return dict(ResetOffsets.decode(self._files.read(path)).offset_table)
            except FileNotFoundError:
                continue
            except RemoteProtocolError as error:
                logger.warning("positions cannot be read file=%s reason=%s", path, error)
                failure = failure or error
        if failure is not None:
            raise CorruptFile(
                self._path,
                f"it holds no positions: {failure}",
                "Remove it and its backup to start anew",
            )
        return {}

    def _write(self, data: bytes) -> None:
        self._files.make_directory(self._directory)
        try:
            before = self._files.read(self._path)
        except FileNotFoundError:
            pass
        else:
            self._files.replace(self._path + BACKUP_SUFFIX, before)
        self._files.replace(self._path, data)
