"""The store that is backed up, while its broker runs or not: read by position, nothing of it is locked or changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Final

from cometmq.base.errors import StoreError
from cometmq.base.ports import TEMPORARY_SUFFIX, Files
from cometmq.store.backup.log_check import LogCheck
from cometmq.store.files.log_files import LogFileGone, LogFiles, is_directory, names_in
from cometmq.store.files.queue_files import QueueFiles
from cometmq.store.files.record_scan import Scanned, is_torn
from cometmq.store.files.store_directory import StoreDirectory
from cometmq.store.queues.deleted_topics import decode_deleted
from cometmq.store.recovery.checkpoint import FILE_BYTES, decode_marks

TABLES_DIRECTORY: Final = "config"
ROOT_TABLES: Final = (
    "deletedTopics.json",
    "epochFileCheckpoint",
    "epochFileCheckpoint.bak",
    "brokerIdentity",
)
"""Small files beside ``config`` that say something about the log. Queues, index and timers are made from the log."""
DELETED_TOPICS: Final = "deletedTopics.json"

LOOK_BACK_BYTES: Final = 1 << 20
DIRECTORIES_DEEP_MAX: Final = 4
TORN_LOOKS_MAX: Final = 20
"""How often the last record is looked at again, should it be just being written."""


class Source:
    """``close`` it."""

    def __init__(self, root: str, log_path: str, files: Files) -> None:
        """Raises NoStore."""
        self.root = root
        self._directory = StoreDirectory(root, files, log_paths=(log_path,))
        self._files = files

    @property
    def log(self) -> LogFiles:
        return self._directory.log

    def file_bytes(self) -> int:
        """Size of one file of the log. Raises StoreError: there is none."""
        if not self.log.starts:
            raise StoreError(
                f"{self.root}: expected a store with messages, but its log has no file yet"
            )
        return self.log.ends[0] - self.log.starts[0]

    def find_end(self, pause: Callable[[], None]) -> int:
        """Behind the last whole record, which is on disk when this returns.

        Args:
            pause: lets somebody who is writing go on.
        """
        while True:
            self.log.refresh()
            try:
                check = LogCheck(self.log, self._near_end(), self.log.end)
                for _ in check:
                    pass
                self._sync(check.sound_end)
                if check.last is not None:
                    self._await_whole(check.last, pause)
            except LogFileGone:
                # Expired meanwhile: there are others.
                continue
            return check.sound_end

    def tables(self) -> Iterator[tuple[str, bytes]]:
        """Names below the root, and contents."""
        names = [*ROOT_TABLES, *self._names_below(TABLES_DIRECTORY, DIRECTORIES_DEEP_MAX)]
        for name in names:
            try:
                yield name, self._files.read(f"{self.root}/{name}")
            except FileNotFoundError:
                continue

    def deleted_topics(self) -> dict[str, int]:
        """Raises CorruptFile."""
        path = f"{self.root}/{DELETED_TOPICS}"
        try:
            return decode_deleted(self._files.read(path), path)
        except FileNotFoundError:
            return {}

    def queues(self) -> Iterator[tuple[str, int]]:
        for topic in self._directory.topics():
            for queue_id in self._directory.queue_ids(topic):
                yield topic, queue_id

    def queue(self, topic: str, queue_id: int) -> QueueFiles:
        return self._directory.queue(topic, queue_id)

    def close(self) -> None:
        self._directory.close()

    def _near_end(self) -> int:
        """A place not far from the end where a record begins. Raises LogFileGone."""
        log = self.log
        flushed = self._flushed_offset()
        if log.start < flushed <= log.end:
            _, at = log.place_of(flushed - 1)
            file_start = flushed - 1 - at
            low = flushed - LOOK_BACK_BYTES
            found = log.find_record(low, flushed) if low > file_start else None
            return file_start if found is None else found
        # No checkpoint of ours: the last file with a record in it.
        for start in reversed(log.starts):
            if log.find_record(start, start + 1) is not None:
                return start
        return log.start

    def _flushed_offset(self) -> int:
        try:
            data = self._files.read(f"{self.root}/checkpoint")
        except FileNotFoundError:
            return -1
        return decode_marks(data).flushed_offset if len(data) == FILE_BYTES else -1

    def _sync(self, end: int) -> None:
        """What is backed up must not be lost to a power failure: the log would go on differently."""
        log = self.log
        for start in [start for start in log.starts if start < end][-2:]:
            path, _ = log.place_of(start)
            try:
                file = self._files.open(path, mapped=False, writable=False)
            except FileNotFoundError:
                raise LogFileGone(start) from None
            with closing(file):
                file.sync()

    def _await_whole(self, last: Scanned, pause: Callable[[], None]) -> None:
        """Its properties have no checksum, so if they look unfinished, give the broker time to finish them."""
        for _ in range(TORN_LOOKS_MAX):
            data = self.log.read(last.physical_offset, last.size_bytes)
            record = self.log.record(last.physical_offset, last.size_bytes)
            if record is not None and not is_torn(memoryview(data), 0, record):
                return
            pause()

    def _names_below(self, directory: str, depth: int) -> Iterator[str]:
        for name in names_in(f"{self.root}/{directory}", self._files):
            path = f"{directory}/{name}"
            if is_directory(f"{self.root}/{path}", self._files):
                if depth > 1:
                    yield from self._names_below(path, depth - 1)
            elif not name.endswith(TEMPORARY_SUFFIX):
                yield path
