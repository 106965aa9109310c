"""Positions of a broadcasting consumer, in a file that RocketMQ's Java client also reads and writes.

``<directory>/<client id>/<group>/offsets.json``, with the previous content in ``offsets.json.bak``:
``{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:17}}``
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping

from cometmq.base.errors import CorruptFile, RemoteProtocolError
from cometmq.base.ports import SmallFiles
from cometmq.base.small_files import SystemSmallFiles
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol.bodies.offsets import ResetOffsets

logger = logging.getLogger("cometmq.client")

DIRECTORY = ".rocketmq_offsets"
FILE = "offsets.json"
BACKUP_SUFFIX = ".bak"


class LocalOffsets:
    def __init__(
        self, client_id: str, group: str, directory: str = "", *, files: SmallFiles | None = None
    ) -> None:
        """If ``directory`` is empty, RocketMQ's default in the home directory is used."""
        base = directory or os.path.join(os.path.expanduser("~"), DIRECTORY)  # noqa: PTH111, PTH118
        self._directory = f"{base}/{client_id}/{group}"
        self._path = f"{self._directory}/{FILE}"
        self._files: SmallFiles = files or SystemSmallFiles()
        self._positions: dict[MessageQueue, int] = {}
        self._writing = asyncio.Lock()

    @property
    def path(self) -> str:
        return self._path

    async def load(self) -> None:
        """Read the file, or its backup if it is missing or broken. Without either, nothing was consumed yet.

        Raises:
            CorruptFile: files exist, but none of them can be read.
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
        """Raises OSError if the file cannot be written."""
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
