"""The commit log: all messages of the broker as consecutive records.

``message_store`` reserves a place, encodes the record for it and writes it; ``flush`` makes it durable; readers get
views of the mapped files. A record never crosses the end of a file: if it does not fit, a blank record fills the file
and the record goes to the next one.

Thread rule: the owner of the store appends and truncates; the flusher only reads the sequence of files and calls
``sync``.
"""

from __future__ import annotations

import logging
from typing import Final

from cometmq.base.errors import RecordTooLarge, UsageError
from cometmq.base.ports import Clock, File, Files
from cometmq.model.messages.record import encode_blank
from cometmq.model.messages.record_layout import (
    BLANK_BYTES,
    FIXED_BYTES_V4,
    MAGIC_V1,
    MAGIC_V2,
    PLACE,
    TIMESTAMP,
    stored_at,
)
from cometmq.store.log.mapped_file_queue import MappedFileQueue
from cometmq.store.log.next_file import NextFile
from cometmq.store.store_config import CommitLogConfig

logger = logging.getLogger("cometmq.store")

_AHEAD_PART: Final = 2
"""The next file is created when the current one is filled to 1/2, so that small stores stay small."""


class CommitLog:
    def __init__(self, directory: str, config: CommitLogConfig, files: Files, clock: Clock) -> None:
        self.row = MappedFileQueue(directory, config.file_bytes, files)
        self.file_bytes = config.file_bytes
        self.end = 0
        """Where the next record goes."""
        self._files = files
        self._next = NextFile(files, config.file_bytes, clock)
        self._makes_ahead = False
        self._file: File | None = None
        self._file_start = 0
        # A record must end here at the latest, so that a blank one still fits after it.
        self._limit = 0
        self._ahead_at = 0

    @property
    def start(self) -> int:
        """Offset of the first byte that still exists."""
        files = self.row.files
        return files[0].start if files else self.end

    def load(self) -> None:
        """Find the existing files. Raises CorruptFile."""
        self.row.load()

    def resume(self, end: int) -> None:
        """Continue appending at ``end``, as determined by recovery: whatever follows is wiped or removed.

        Raises:
            DiskFull: the file to continue with has holes that the disk cannot fill.
        """
        # The first file stays even if nothing in it is valid: without any, the next start would assume that the
        # offsets of log and queues begin at 0 again.
        removed = self.row.cut(max(end, self.row.start + 1))
        if removed:
            logger.info("log files removed count=%d reason=behind-end end=%d", len(removed), end)
        self.end = end
        log_file = self.row.at(end)
        if log_file is None:
            self._file = None
            self._limit = self._ahead_at = end
            return
        log_file.open_writable()
        log_file.file.zero_from(end - log_file.start)
        self._use(log_file.file, log_file.start)

    def make_ahead(self) -> None:
        """From now on, let a worker create the next file before it is needed."""
        self._makes_ahead = True

    def reserve(self, size_bytes: int) -> int:
        """Make room for ``size_bytes`` in one file. Returns the offset that the next ``write`` must be encoded for.

        Raises:
            DiskFull: no further file can be created; the log is unchanged.
            RecordTooLarge: more than fits into a whole file.
        """
        if self.end + size_bytes > self._limit:
            self._roll(size_bytes)
        return self.end

    def has_room(self, size_bytes: int) -> bool:
        """Whether this much fits into the current file."""
        return self.end + size_bytes <= self._limit

    def write(self, data: bytes, *, is_group: bool = False) -> None:
        """Append what was encoded for the reserved offset.

        Args:
            is_group: it is more than one record; a kill must not leave a later one without those before it.
        """
        end = self.end
        assert self._file is not None
        assert end + len(data) <= self._limit, (end, len(data), self._limit)
        self._file.append_at(end - self._file_start, data, in_order=is_group)
        end += len(data)
        self.end = end
        if end >= self._ahead_at:
            self._start_ahead()

    def begin_at(self, offset: int) -> None:
        """Let an empty log start at the first byte of a file, as a replica of one whose older files are gone."""
        assert self.end == self.row.start, self
        assert offset % self.file_bytes == 0, offset
        # A crash may have left a file without a record.
        self.row.cut(self.row.start)
        self._file = None
        self.end = self._limit = self._ahead_at = offset

    def append_raw(self, data: bytes | memoryview) -> None:
        """Append bytes of another log as they are: any part of its records, blank ones included, within one file.

        Raises:
            DiskFull: no further file can be made; the log is unchanged.
        """
        if self._file is None or self.end == self._file_start + self.file_bytes:
            self._add_file(self.end)
        assert self._file is not None
        at = self.end - self._file_start
        assert at + len(data) <= self.file_bytes, (self.end, len(data))
        self._file.append_at(at, data)
        self.end += len(data)
        if self.end >= self._ahead_at:
            self._start_ahead()

    def overwrite(self, offset: int, data: bytes) -> File:
        """Write over bytes that the log has, within one file. The caller syncs the returned file, and closes it.

        Raises:
            DiskFull: a hole in the file that the disk cannot fill.
            UsageError: the log does not hold so many bytes there.
        """
        log_file = self.row.at(offset)
        if log_file is None or self.view(offset, len(data)) is None:
            raise UsageError(f"the log does not hold {len(data)} bytes at offset {offset}")
        # By a descriptor of its own: old files are mapped for reading only.
        file = self._files.open(log_file.path, mapped=False)
        try:
            file.write_at(offset - log_file.start, data)
        except BaseException:
            file.close()
            raise
        return file

    def view(self, offset: int, size_bytes: int) -> memoryview | None:
        """Bytes of the log without a copy; None if they do not exist, or no longer."""
        log_file = self.row.at(offset)
        if log_file is None or offset + size_bytes > self.end:
            return None
        at = offset - log_file.start
        if at + size_bytes > self.file_bytes:
            return None
        return log_file.file.view(at, size_bytes)

    def record(self, offset: int) -> memoryview | None:
        """The whole record that starts at ``offset``, or None if none does."""
        head = self.view(offset, PLACE.size)
        if head is None:
            return None
        size_bytes, magic, _, physical_offset, _ = PLACE.unpack(head)
        if (magic != MAGIC_V1 and magic != MAGIC_V2) or physical_offset != offset:
            return None
        return self.view(offset, size_bytes) if size_bytes > 0 else None

    def store_timestamp(self, offset: int) -> int:
        """When the record at ``offset`` was stored, in ms; -1 if there is none."""
        head = self.view(offset, FIXED_BYTES_V4)
        if head is None:
            return -1
        _, magic, _, physical_offset, sys_flag = PLACE.unpack_from(head)
        if (magic != MAGIC_V1 and magic != MAGIC_V2) or physical_offset != offset:
            return -1
        timestamp: int
        (timestamp,) = TIMESTAMP.unpack_from(head, stored_at(sys_flag))
        return timestamp

    def next_file_start(self, offset: int) -> int:
        return offset - offset % self.file_bytes + self.file_bytes

    def sync_range(self, start: int, end: int) -> None:
        """Make the bytes between two offsets durable. Called by the flusher. Raises OSError."""
        # A log that began late, as the copy of one whose older files are gone, has nothing before its first file.
        start = max(start, self.row.start)
        while start < end and (log_file := self.row.at(start)) is not None:
            log_file.file.sync()
            start = log_file.start + self.file_bytes

    def drop_first(self, count: int) -> list[str]:
        """Drop the oldest files, never the last. The caller removes the returned paths, oldest first."""
        return self.row.drop_first(count)

    def close(self) -> None:
        self._next.discard()
        self._file = None
        self.row.close()

    def _roll(self, size_bytes: int) -> None:
        if size_bytes + BLANK_BYTES > self.file_bytes:
            raise RecordTooLarge(
                f"{size_bytes} bytes do not fit into a log file of {self.file_bytes}"
            )
        before, at = self._file, self.end - self._file_start
        start = self.row.end if self.row.files else self.end
        file = self._make_file(start)
        # The new file first, then the blank record: until both exist, the log simply ends earlier.
        if before is not None and at < self.file_bytes:
            before.append_at(at, encode_blank(self.file_bytes - at))
        self.row.append(start, file)
        self.end = start
        self._use(file, start)

    def _add_file(self, start: int) -> None:
        self.row.append(start, file := self._make_file(start))
        self._use(file, start)

    def _make_file(self, start: int) -> File:
        if not self.row.files:
            self._files.make_directory(self.row.directory)
        return self._next.take(self.row.path(start))

    def _use(self, file: File, start: int) -> None:
        self._file = file
        self._file_start = start
        self._limit = start + self.file_bytes - BLANK_BYTES
        self._ahead_at = start + self.file_bytes // _AHEAD_PART

    def _start_ahead(self) -> None:
        if self._makes_ahead:
            self._next.ahead(self.row.path(self._file_start + self.file_bytes))
            # On a full disk it has to be requested again, but not by every single record.
            self._ahead_at = self.end + self.file_bytes // 64

    def __repr__(self) -> str:
        return f"<CommitLog {self.row.directory} start={self.start} end={self.end}>"
