"""What there is in a store's directory, of our broker or RocketMQ's: its log and its consume queues, read-only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cometmq.base.errors import StoreError
from cometmq.base.ports import Files
from cometmq.model.names import stored_topic_fault
from cometmq.store.files.file_names import (
    BATCH_QUEUES_DIRECTORY,
    LOG_DIRECTORY,
    QUEUES_DIRECTORY,
    queue_id_of,
)
from cometmq.store.files.log_files import LogFiles, is_directory, names_in
from cometmq.store.files.queue_files import QueueFiles

UNFINISHED_RESTORE: Final = "restore.unfinished"
"""A file in a store that is being restored, or was when that was killed: no broker may use it."""


class NoStore(StoreError):
    """The directory is not that of a store."""


class StoreDirectory:
    """``close`` it."""

    def __init__(self, path: str, files: Files, *, log_paths: Sequence[str] = ()) -> None:
        """
        Args:
            log_paths: directories of the log files, where they are not below ``path``.

        Raises:
            NoStore: there is no log. Queues may be missing: a new broker makes them with the first message.
        """
        self._path = path
        self._files = files
        self._queues_path = f"{path}/{QUEUES_DIRECTORY}"
        log_paths = tuple(log_paths) or (f"{path}/{LOG_DIRECTORY}",)
        for needed in log_paths:
            if not is_directory(needed, files):
                raise NoStore(
                    f"{path}: expected the directory of a store, with {LOG_DIRECTORY} and {QUEUES_DIRECTORY} in it, "
                    f"but there is no {needed}; name a broker's storePathRootDir or a copy of it"
                )
        self.log = LogFiles(log_paths, files)

    def topics(self) -> list[str]:
        names = names_in(self._queues_path, self._files)
        return [name for name in names if stored_topic_fault(name) is None]

    def queue_ids(self, topic: str) -> list[int]:
        """Empty when there is no such topic."""
        names = names_in(f"{self._queues_path}/{topic}", self._files)
        found = (queue_id_of(name) for name in names)
        return sorted(queue_id for queue_id in found if queue_id is not None)

    def queue(self, topic: str, queue_id: int) -> QueueFiles:
        """A queue without files when there is none."""
        return QueueFiles(f"{self._queues_path}/{topic}/{queue_id}", self._files)

    def has_batch_queues(self, topic: str) -> bool:
        """Whether the topic is one of RocketMQ 5's batch queues, whose entries are of another kind."""
        return bool(names_in(f"{self._path}/{BATCH_QUEUES_DIRECTORY}/{topic}", self._files))

    def close(self) -> None:
        self.log.close()
