"""The sequence of log files: all of one size, without gaps, named by the offset of their first byte in 20 digits.

Thread rule: the owner of the store changes the sequence; the flusher reads it. It is therefore one value that is
replaced, never changed in place.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from cometmq.base.descriptors import DescriptorShares
from cometmq.base.ports import TEMPORARY_SUFFIX, File, Files
from cometmq.store.files.file_names import check_size, file_name, starts_of

logger = logging.getLogger("cometmq.store")


class LogFile:
    """One file of the sequence. Old files are opened when first read: most never are."""

    __slots__ = ("_file", "_files", "_opened", "path", "start")

    def __init__(
        self,
        start: int,
        path: str,
        files: Files,
        opened: Callable[[LogFile], None],
        file: File | None = None,
    ) -> None:
        self.start = start
        self.path = path
        self._files = files
        self._opened = opened
        self._file = file

    @property
    def file(self) -> File:
        file = self._file
        if file is None:
            file = self._file = self._files.open(self.path, mapped=True, writable=False)
            self._opened(self)
        return file

    def give_up(self) -> None:
        """Release the open file. It is closed when nobody uses it any more: the flusher may be about to sync it."""
        self._file = None

    def open_writable(self) -> None:
        """Open for appending, with the space of the whole file reserved. Raises DiskFull."""
        writable = self._files.open(self.path, mapped=True, writable=True)
        self.close()
        self._file = writable

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def __repr__(self) -> str:
        return f"<LogFile {self.path}>"


class MappedFileQueue:
    SETTING: Final = "mappedFileSizeCommitLog"

    def __init__(self, directory: str, file_bytes: int, files: Files) -> None:
        self.directory = directory
        self.file_bytes = file_bytes
        self._files = files
        self._row: tuple[LogFile, ...] = ()
        self._open_max = DescriptorShares(files.open_max()).log_files_max
        self._open: deque[LogFile] = deque()

    def load(self) -> None:
        """Find the files in the directory.

        A Java broker that dies while creating a file leaves a last file of length 0. It is removed, as RocketMQ 5
        does, and so are our own unfinished files.

        Raises:
            CorruptFile: a foreign name, a gap or a wrong length; nothing was changed before.
        """
        names = list(self._files.names(self.directory))
        unfinished = [name for name in names if name.endswith(TEMPORARY_SUFFIX)]
        names = [name for name in names if not name.endswith(TEMPORARY_SUFFIX)]
        starts = starts_of(names, self.directory, self.file_bytes, self.SETTING)
        empty_last = bool(starts) and self._files.size(self.path(starts[-1])) == 0
        if empty_last:
            unfinished.append(file_name(starts.pop()))
        for start in starts:
            size_bytes = self._files.size(self.path(start))
            check_size(self.path(start), size_bytes, self.file_bytes, self.SETTING)
        for name in unfinished:
            logger.info("log file removed path=%s/%s reason=unfinished", self.directory, name)
            self._files.remove(f"{self.directory}/{name}")
        self._row = tuple(
            LogFile(start, self.path(start), self._files, self._note_open) for start in starts
        )

    def path(self, start: int) -> str:
        return f"{self.directory}/{file_name(start)}"

    @property
    def files(self) -> tuple[LogFile, ...]:
        return self._row

    @property
    def start(self) -> int:
        """Offset of the first byte that still exists; 0 without any file."""
        row = self._row
        return row[0].start if row else 0

    @property
    def end(self) -> int:
        """Offset after the last file."""
        row = self._row
        return row[-1].start + self.file_bytes if row else 0

    def at(self, offset: int) -> LogFile | None:
        """The file that holds a byte, or None."""
        row = self._row
        if not row:
            return None
        number = (offset - row[0].start) // self.file_bytes
        return row[number] if 0 <= number < len(row) else None

    def append(self, start: int, file: File) -> LogFile:
        """Add a new file at the end."""
        assert not self._row or start == self.end, (start, self.end)
        added = LogFile(start, file.path, self._files, self._note_open, file)
        self._row = (*self._row, added)
        self._note_open(added)
        return added

    def _keep(self, row: tuple[LogFile, ...]) -> None:
        kept = set(row)
        self._row = row
        self._open = deque(one for one in self._open if one in kept)

    def _note_open(self, log_file: LogFile) -> None:
        """Limit the number of open files: those opened first are dropped. The last two are in use."""
        self._open.append(log_file)
        surplus = len(self._open) - self._open_max
        if surplus > 0:
            in_use = self._row[-2:]
            for one in [one for one in self._open if one not in in_use][:surplus]:
                self._open.remove(one)
                one.give_up()

    def cut(self, end: int) -> list[str]:
        """Remove the files that start at ``end`` or later. Returns their paths."""
        kept = tuple(one for one in self._row if one.start < end)
        gone = self._row[len(kept) :]
        self._keep(kept)
        # From the end, so that a crash in between leaves no gap.
        for one in reversed(gone):
            one.close()
            self._files.remove(one.path)
        if gone:
            # A power loss must not bring them back after a log that has continued without them.
            self._files.sync_directory(self.directory)
        return [one.path for one in gone]

    def drop_first(self, count: int) -> list[str]:
        """Drop the oldest files, at most all but the last. The caller removes the returned paths, in this order."""
        count = min(count, len(self._row) - 1)
        if count <= 0:
            return []
        gone = self._row[:count]
        self._keep(self._row[count:])
        for one in gone:
            one.close()
        return [one.path for one in gone]

    def close(self) -> None:
        for one in self._row:
            one.close()
        self._row = ()
        self._open.clear()

    def __repr__(self) -> str:
        return f"<MappedFileQueue {self.directory} files={len(self._row)} start={self.start}>"
