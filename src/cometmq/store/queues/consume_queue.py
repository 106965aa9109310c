"""One queue of a topic: where its messages lie in the log, an entry each (``files.queue_entry``).

New entries wait in memory until ``consume_queues`` writes them in groups; readers see them at once, and after a crash
the log gives them back.
"""

from __future__ import annotations

import logging
from typing import Final

from cometmq.base.ports import File
from cometmq.store.files.file_names import file_name
from cometmq.store.files.queue_entry import (
    ENTRY,
    ENTRY_BYTES,
    FILLER,
    FILLER_SIZE,
    PLACE,
    is_behind,
)
from cometmq.store.index.index_files import key_prefix
from cometmq.store.open_files import OpenFiles

logger = logging.getLogger("cometmq.store")

PAGE_BYTES: Final = 4096


class ConsumeQueue:
    """State of one queue. There may be forty thousand, so it only holds numbers; files are found by their names."""

    __slots__ = (
        "_path",
        "_path_start",
        "directory",
        "dirty_epoch",
        "dirty_start",
        "file_bytes",
        "first_start",
        "key_prefix",
        "min_for",
        "min_known",
        "next_offset",
        "queue_id",
        "topic",
        "topic_field",
        "trusted_from",
        "waiting",
    )

    def __init__(self, topic: str, queue_id: int, directory: str, file_bytes: int) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.directory = directory
        self.file_bytes = file_bytes
        encoded = topic.encode()
        head = bytes((len(encoded),)) if len(encoded) < 128 else len(encoded).to_bytes(2, "big")
        self.topic_field = head + encoded
        """Length and text, as in a record."""
        self.key_prefix = key_prefix(topic)
        self.first_start = -1
        """Byte where the first file starts; -1 while there is none."""
        self.next_offset = 0
        self.trusted_from = 0
        """Entries below this existed at the start; see ``queue_check``."""
        self.waiting: bytearray | None = None
        self.dirty_epoch = -1
        self.dirty_start = -1
        self.min_known = 0
        """Its first entry whose record is still in the log, as far as known: see ``min_offset``."""
        self.min_for = -1
        """For which start of the log; -1: for none."""
        self._path = ""
        self._path_start = -1

    @property
    def written_offset(self) -> int:
        """Entries below this are in the files, the rest in ``waiting``."""
        waiting = self.waiting
        return self.next_offset - len(waiting) // ENTRY_BYTES if waiting else self.next_offset

    @property
    def last_start(self) -> int:
        """Byte where the last file with a written entry starts; -1 while there is none."""
        written = self.written_offset * ENTRY_BYTES
        if self.first_start < 0 or written <= self.first_start:
            return -1
        return (written - 1) // self.file_bytes * self.file_bytes

    def path(self, start: int) -> str:
        if start != self._path_start:
            self._path = f"{self.directory}/{file_name(start)}"
            self._path_start = start
        return self._path

    def read(self, offset: int, count: int, open_files: OpenFiles) -> bytes:
        """The bytes of up to ``count`` entries from ``offset`` on, which must not be before the first file."""
        end = min(offset + count, self.next_offset)
        if offset >= end:
            return b""
        written = self.written_offset
        if offset >= written:
            return self._waiting(offset - written, end - written)
        position = offset * ENTRY_BYTES
        file_end = min(end, written) * ENTRY_BYTES
        if self.first_start < 0 or position < self.first_start:
            return b""
        data = b""
        while position < file_end:
            start = position // self.file_bytes * self.file_bytes
            until = min(file_end, start + self.file_bytes)
            data += self._read_file(start, position - start, until - position, open_files)
            position = until
        return data + self._waiting(0, end - written) if end > written else data

    def _read_file(self, start: int, at: int, length: int, open_files: OpenFiles) -> bytes:
        file = self._file(start, open_files)
        data = file.read_at(at, length)
        if len(data) < length:
            # Zeros lead nowhere: a reader that finds them has the entries rebuilt.
            logger.error("queue file truncated by others path=%s", file.path)
            file.lengthen(self.file_bytes)
            data = file.read_at(at, length)
        return data

    def _file(self, start: int, open_files: OpenFiles) -> File:
        path = self.path(start)
        try:
            return open_files.get(path)
        except FileNotFoundError:
            logger.error("queue file removed by others path=%s", path)
            return open_files.create(path, self.file_bytes)

    def entry(self, offset: int, open_files: OpenFiles) -> tuple[int, int, int] | None:
        data = self.read(offset, 1, open_files)
        return ENTRY.unpack(data) if len(data) == ENTRY_BYTES else None

    def prefetch(self, open_files: OpenFiles) -> None:
        """Prefetch the page in which the waiting entries begin; a write to a page not in memory waits for the disk."""
        position = self.next_offset * ENTRY_BYTES - len(self.waiting or b"")
        at = position % self.file_bytes
        if self.first_start >= 0 and at % PAGE_BYTES:
            open_files.prefetch(self.path(position - at), at)

    def write_waiting(self, open_files: OpenFiles) -> list[int]:
        """Write the waiting entries to the files, creating them as needed. Returns the starts of the files written.

        Raises:
            DiskFull: everything still waits; a later call writes the same bytes to the same positions.
        """
        waiting = self.waiting
        assert waiting, self
        end = self.next_offset * ENTRY_BYTES
        base = position = end - len(waiting)
        start = position - position % self.file_bytes
        if self.first_start >= 0 and position != start and end <= start + self.file_bytes:
            # The usual case: into the middle of an existing file.
            self._file(start, open_files).write_at(position - start, waiting)
            self.waiting = None
            return [start]
        starts: list[int] = []
        while position < end:
            start = position // self.file_bytes * self.file_bytes
            until = min(end, start + self.file_bytes)
            if self.first_start < 0:
                # Only added once its fillers are written: a failure in between starts over.
                file = open_files.create(self.path(start), self.file_bytes)
                try:
                    if position > start:
                        file.write_at(0, FILLER * ((position - start) // ENTRY_BYTES))
                    file.write_at(position - start, waiting[: until - base])
                except BaseException:
                    open_files.remove(self.path(start))
                    raise
                self.first_start = start
            else:
                # At its first entry a file is new, unless an earlier attempt created it and found the disk full.
                is_first = position == start
                file = open_files.get_or_create(self.path(start), self.file_bytes, is_first)
                file.write_at(position - start, waiting[position - base : until - base])
            starts.append(start)
            position = until
        self.waiting = None
        return starts

    def min_offset(self, log_start: int, open_files: OpenFiles) -> int:
        """The first entry whose record is still in the log; ``next_offset`` if there is none."""
        if self.min_for != log_start:
            self.min_known = self._find_min(log_start, open_files)
            self.min_for = log_start
        return self.min_known

    def forget_min(self) -> None:
        """The files have changed: determine the minimum again."""
        self.min_for = -1

    def find_record(self, physical_offset: int, open_files: OpenFiles) -> int:
        """The first entry, other than fillers, whose record is at or after ``physical_offset``."""
        has_files = self.first_start >= 0
        first = self.first_start // ENTRY_BYTES if has_files else self.written_offset
        found = self._search(first, self.next_offset, physical_offset, open_files)
        # Offsets grow along a queue. If an earlier entry is at or after the offset nevertheless, then what is between
        # them is damaged, or a gap, and has misled the search.
        step = 1
        while found - 1 - step >= first:
            if self._is_behind(found - 1 - step, physical_offset, open_files):
                found = self._search(first, found - 1 - step, physical_offset, open_files)
                step = 1
            else:
                step *= 2
        return found

    def _search(self, low: int, high: int, physical_offset: int, open_files: OpenFiles) -> int:
        while low < high:
            middle = (low + high) // 2
            if self._is_behind(middle, physical_offset, open_files):
                high = middle
            else:
                low = middle + 1
        return low

    def _is_behind(self, offset: int, physical_offset: int, open_files: OpenFiles) -> bool:
        record, size_bytes = PLACE.unpack_from(self.read(offset, 1, open_files))
        return is_behind(record, size_bytes, physical_offset)

    def _find_min(self, log_start: int, open_files: OpenFiles) -> int:
        known = self.min_known
        if known < self.next_offset and self.min_for >= 0:
            # Most queues keep their minimum when a log file is deleted: one read is enough to know.
            place = self.entry(known, open_files)
            if place is not None and place[0] >= log_start and place[1] != FILLER_SIZE:
                return known
        return self.find_record(log_start, open_files)

    def _waiting(self, first: int, end: int) -> bytes:
        assert self.waiting is not None
        return bytes(self.waiting[first * ENTRY_BYTES : end * ENTRY_BYTES])

    def __repr__(self) -> str:
        return (
            f"<ConsumeQueue {self.topic}/{self.queue_id} next_offset={self.next_offset} "
            f"waiting={len(self.waiting or b'') // ENTRY_BYTES}>"
        )
