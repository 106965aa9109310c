"""The files of one consume queue as others see them: read by position and never touched, see ``log_files``.

A queue ends where its files end, before the first entry without a whole record in the log. Brokers make an entry when
a record is confirmed, so that is the confirmed end; ours puts new entries into the files every ten seconds or every
thousand, RocketMQ's at once. ``queues.consume_queue`` is the store's own queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

from cometmq.base.errors import CorruptFile
from cometmq.base.ports import Files
from cometmq.store.files.log_files import LogFiles, numbered_files
from cometmq.store.files.queue_end import find_queue_end
from cometmq.store.files.queue_entry import ENTRY_BYTES, FILLER_SIZE, PLACE, is_behind


class QueueBounds(NamedTuple):
    """A queue holds offsets from ``first`` up to ``end``, which is not included."""

    first: int
    end: int


class _Stretch(NamedTuple):
    """Entries that are in one file."""

    first: int
    end: int
    path: str


class QueueFiles:
    """As listed when this was made. Files are opened for each read: their names come again when a topic does.

    Raises:
        CorruptFile: a file that holds no entries.
    """

    def __init__(self, directory: str, files: Files) -> None:
        self.directory = directory
        self._files = files
        self._stretches: list[_Stretch] = []
        for start, path, size_bytes in numbered_files(directory, files):
            if start % ENTRY_BYTES:
                raise CorruptFile(
                    path,
                    f"its name is no multiple of {ENTRY_BYTES}, the size of an entry",
                    "Is this a consume queue of another kind? Move it elsewhere.",
                )
            first = start // ENTRY_BYTES
            self._stretches.append(_Stretch(first, first + size_bytes // ENTRY_BYTES, path))

    def entries(self, start: int, end: int) -> bytearray:
        """Entries from ``start`` up to ``end``. Those that are not there, or no longer, come out as zeros."""
        data = bytearray(max(end - start, 0) * ENTRY_BYTES)
        view = memoryview(data)
        for first, stretch_end, path in self._stretches:
            low, high = max(start, first), min(end, stretch_end)
            if low < high:
                part = view[(low - start) * ENTRY_BYTES : (high - start) * ENTRY_BYTES]
                try:
                    file = self._files.open(path, mapped=False, writable=False)
                except FileNotFoundError:
                    continue
                with closing(file):
                    file.read_into((low - first) * ENTRY_BYTES, part)
        return data

    def place(self, offset: int) -> tuple[int, int]:
        """Physical offset and size of the record of one entry."""
        physical_offset, size_bytes = PLACE.unpack_from(self.entries(offset, offset + 1))
        return physical_offset, size_bytes

    def bounds(self, log: LogFiles) -> QueueBounds:
        """The offsets whose records are in the log."""
        start = self._stretches[0].first if self._stretches else 0
        end = self._written_end()
        if end > start and not (
            self._is_before(end - 1, log.start) or self._is_whole(end - 1, log)
        ):
            # Written in order, so whole records come first, and the first other one is found by halves.
            low, high = start, end - 1
            while low < high:
                middle = (low + high) // 2
                if self._is_before(middle, log.start) or self._is_whole(middle, log):
                    low = middle + 1
                else:
                    high = middle
            end = low
        return QueueBounds(self.find(log.start, start, end), end)

    def find(self, physical_offset: int, low: int, high: int) -> int:
        """The first of some entries whose record lies at ``physical_offset`` or behind; ``high`` when none does."""
        while low < high:
            middle = (low + high) // 2
            if self._is_before(middle, physical_offset):
                low = middle + 1
            else:
                high = middle
        return low

    def _written_end(self) -> int:
        for first, entries in self._ends():
            if entries:
                return first + entries
        return self._stretches[0].first if self._stretches else 0

    def _ends(self) -> Iterator[tuple[int, int]]:
        """First entry of each file, and how many are written there; the last file first."""
        for first, _, path in reversed(self._stretches):
            try:
                file = self._files.open(path, mapped=False, writable=False)
            except FileNotFoundError:
                continue
            with closing(file):
                yield first, find_queue_end(file).entries

    def _is_before(self, offset: int, start: int) -> bool:
        physical_offset, size_bytes = self.place(offset)
        if not size_bytes:
            # Its file has expired.
            return physical_offset < start
        return not is_behind(physical_offset, size_bytes, start)

    def _is_whole(self, offset: int, log: LogFiles) -> bool:
        physical_offset, size_bytes = self.place(offset)
        return size_bytes == FILLER_SIZE or log.record(physical_offset, size_bytes) is not None

    def __repr__(self) -> str:
        return f"<QueueFiles {self.directory} files={len(self._stretches)}>"
