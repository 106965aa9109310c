"""Copies a range of a log into files of the same names and places, by sharing blocks where the file system can.

Files that the store still writes are copied like the others: only bytes that are on disk and whole are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Final

from cometmq.base.errors import DiskFull
from cometmq.base.ports import File, Files
from cometmq.store.backup.reflink import CLONED_BLOCK_BYTES, clone_range
from cometmq.store.files.file_names import file_name
from cometmq.store.files.log_files import LogFileGone, LogFiles

CHUNK_BYTES: Final = 4 << 20
SPARE_BYTES: Final = 64 << 20
"""What a copy leaves free: tables and a manifest come after it."""

Note = Callable[[int], None]
"""Told of bytes that are done."""


class LogCopier:
    def __init__(self, log: LogFiles, target: str, file_bytes: int, files: Files) -> None:
        self._log = log
        self._target = target
        self._file_bytes = file_bytes
        self._files = files
        self._can_clone = True

    def copy(self, start: int, end: int, note: Note) -> None:
        """Durably. What is there is overwritten.

        Raises:
            DiskFull: no space; some bytes may have been copied.
            LogFileGone: a file expired.
        """
        self._check_space(start, end)
        while start < end:
            file_start = start - start % self._file_bytes
            until = min(end, file_start + self._file_bytes)
            self._copy_part(file_start, start, until, note)
            start = until
        self._files.sync_directory(self._target)

    def _copy_part(self, file_start: int, start: int, end: int, note: Note) -> None:
        """A range of one file."""
        path, _ = self._log.place_of(start)
        try:
            source = self._files.open(path, mapped=False, writable=False)
        except FileNotFoundError:
            raise LogFileGone(start) from None
        with closing(source), closing(self._open_target(file_start)) as target:
            at = start
            while at < end:
                length = min(CHUNK_BYTES - at % CHUNK_BYTES, end - at)
                self._copy_chunk(source, target, at - file_start, length)
                at += length
                note(length)
            target.sync()

    def _copy_chunk(self, source: File, target: File, position: int, length: int) -> None:
        if self._can_clone and not (position % CLONED_BLOCK_BYTES or length % CLONED_BLOCK_BYTES):
            self._can_clone = clone_range(source.descriptor, target.descriptor, position, length)
            if self._can_clone:
                return
        data = source.read_at(position, length)
        if len(data) < length:
            raise LogFileGone(position)
        target.write_at(position, data)

    def _open_target(self, file_start: int) -> File:
        path = f"{self._target}/{file_name(file_start)}"
        if self._files.exists(path) and not self._files.size(path):
            # A kill has left it without its length.
            self._files.remove(path)
        if not self._files.exists(path):
            return self._files.create(path, self._file_bytes, allocate=False)
        return self._files.open(path, mapped=False)

    def _check_space(self, start: int, end: int) -> None:
        _, free = self._files.space(self._target)
        if free < end - start + SPARE_BYTES and not self._shares_blocks(start):
            raise DiskFull(
                f"{self._target}: {end - start:,} bytes of log are to be copied, and {free:,} are free; free some "
                "space, remove old backups, or name a directory on another disk"
            )

    def _shares_blocks(self, start: int) -> bool:
        """Whether the first block of a file of the log can be shared, which takes no space."""
        path, _ = self._log.place_of(start)
        probe = f"{self._target}/probe"
        self._files.remove(probe)
        try:
            source = self._files.open(path, mapped=False, writable=False)
        except FileNotFoundError:
            raise LogFileGone(start) from None
        with closing(source):
            target = self._files.create(probe, CLONED_BLOCK_BYTES, allocate=False)
            with closing(target):
                shares = clone_range(source.descriptor, target.descriptor, 0, CLONED_BLOCK_BYTES)
        self._files.remove(probe)
        return shares
