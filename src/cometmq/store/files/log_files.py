"""The row of log files as others see it: opened for reading only, nothing locked, every byte read by position.

So the files may belong to a running broker, and one that is cut or replaced meanwhile gives fewer bytes and not a dead
process. ``log.mapped_file_queue`` is the store's own, mapped and written. Not thread-safe.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

from cometmq.base.errors import StoreError
from cometmq.base.ports import File, Files
from cometmq.model.messages.record_layout import FIXED_BYTES_V4, PLACE
from cometmq.store.files.file_names import start_of
from cometmq.store.files.record_scan import RECORD_BYTES_MAX, Scanned, scan_record, search
from cometmq.store.open_files import OpenFiles

OPEN_MAX: Final = 8


class LogFileGone(StoreError):
    """A place in the log that no file holds, or no longer."""

    def __init__(self, physical_offset: int) -> None:
        super().__init__(f"no log file holds offset {physical_offset}")
        self.physical_offset = physical_offset


class NumberedFile(NamedTuple):
    """A file whose name says where it starts."""

    start: int
    path: str
    size_bytes: int


def numbered_files(directory: str, files: Files) -> list[NumberedFile]:
    """The files whose names are offsets, sorted. Others, like those in the making, are passed over."""
    found: list[NumberedFile] = []
    for name in names_in(directory, files):
        if (start := start_of(name)) is None:
            continue
        path = f"{directory}/{name}"
        try:
            found.append(NumberedFile(start, path, files.size(path)))
        except FileNotFoundError:
            continue  # Expired between the two calls.
    return sorted(found)


def names_in(directory: str, files: Files) -> Sequence[str]:
    """The names in a directory; none when there is no such directory."""
    try:
        return files.names(directory)
    except NotADirectoryError:
        return ()


def is_directory(path: str, files: Files) -> bool:
    try:
        files.names(path)
    except NotADirectoryError:
        return False
    return files.exists(path)


class LogFiles:
    """The files of some directories, as last listed. ``close`` it."""

    def __init__(self, directories: Sequence[str], files: Files) -> None:
        self._directories = tuple(directories)
        self._files = files
        # Few are read at a time, and whose descriptors they are is nobody else's business here.
        self._open = OpenFiles(files, OPEN_MAX, descriptors_below=sys.maxsize, writable=False)
        self.refresh()

    def refresh(self) -> None:
        """List the files again: some may be new, some gone."""
        listed = sorted(
            file
            for directory in self._directories
            for file in numbered_files(directory, self._files)
            if file.size_bytes
        )
        self.starts = [file.start for file in listed]
        self.ends = [file.start + file.size_bytes for file in listed]
        self._paths = [file.path for file in listed]

    @property
    def start(self) -> int:
        return self.starts[0] if self.starts else 0

    @property
    def end(self) -> int:
        """Behind the last byte of the last file, written or not."""
        return self.ends[-1] if self.ends else 0

    def place_of(self, physical_offset: int) -> tuple[str, int]:
        """Path of the file, and the place in it. Raises LogFileGone."""
        number = self._number_of(physical_offset)
        return self._paths[number], physical_offset - self.starts[number]

    def file_end(self, physical_offset: int) -> int:
        """Where the file ends that holds a byte. Raises LogFileGone."""
        return self.ends[self._number_of(physical_offset)]

    def read(self, physical_offset: int, size_bytes: int) -> bytes:
        """Raises LogFileGone; fewer bytes come at the end of a file."""
        path, at = self.place_of(physical_offset)
        return self._opened(path, physical_offset).read_at(at, size_bytes)

    def read_into(self, target: memoryview, physical_offset: int) -> None:
        """Fill ``target`` from one file. Raises LogFileGone when it, or a part of what is wanted, is not there."""
        path, at = self.place_of(physical_offset)
        done = self._opened(path, physical_offset).read_into(at, target)
        if done < len(target):
            raise LogFileGone(physical_offset + done)

    def record(self, physical_offset: int, size_bytes: int) -> Scanned | None:
        """The record at a place if it is sound, with the body it was written with, and of this size."""
        if not FIXED_BYTES_V4 <= size_bytes <= RECORD_BYTES_MAX:
            return None
        try:
            data = self.read(physical_offset, size_bytes)
        except LogFileGone:
            return None
        record = scan_record(memoryview(data), 0, physical_offset, check_crc=True)
        return record if record is not None and record.size_bytes == size_bytes else None

    def find_record(self, start: int, stop: int) -> int | None:
        """Where the first sound record is that starts within ``start`` … ``stop``, which lie in one file.

        Raises:
            LogFileGone: the file is not there, or not any more.
        """
        found = search(self.read, self._record_at, start, stop)
        return None if found is None else found.physical_offset

    def close(self) -> None:
        self._open.close()

    def _record_at(self, physical_offset: int) -> Scanned | None:
        head = self.read(physical_offset, PLACE.size)
        if len(head) < PLACE.size:
            return None
        size_bytes, _, _, told_offset, _ = PLACE.unpack(head)
        # Before the rest is read: what looks like a size may be any number.
        return self.record(physical_offset, size_bytes) if told_offset == physical_offset else None

    def _number_of(self, physical_offset: int) -> int:
        number = bisect_right(self.starts, physical_offset) - 1
        if number < 0 or physical_offset >= self.ends[number]:
            raise LogFileGone(physical_offset)
        return number

    def _opened(self, path: str, physical_offset: int) -> File:
        try:
            return self._open.get(path)
        except FileNotFoundError:
            raise LogFileGone(physical_offset) from None

    def __repr__(self) -> str:
        return f"<LogFiles {', '.join(self._directories)} files={len(self.starts)}>"
