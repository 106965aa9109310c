"""A store's directory, read and never touched: its log files and its consume queues, of our broker or RocketMQ's.

Files are opened for reading only, nothing is locked, and every byte is read by position, so that a file which is
cut or replaced meanwhile gives fewer bytes and not a dead process. The directory may belong to a running broker: a
queue ends where its files end, before the first entry without a whole record in the log. Brokers make an entry when
a record is confirmed, so that is the confirmed end; ours puts new entries into the files every ten seconds or every
thousand, RocketMQ's at once.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from cometmq.base.errors import CorruptFile, StoreError
from cometmq.model.names import stored_topic_fault
from cometmq.model.record import BadRecord, decode_record
from cometmq.spark.frames import Ints

ENTRY: Final = np.dtype([("physical", ">i8"), ("size", ">i4"), ("tag", ">i8")])
ENTRY_BYTES: Final = ENTRY.itemsize
FILLER_SIZE: Final = 0x7FFFFFFF
RECORD_BYTES_MAX: Final = 1 << 29
"""A size beyond is damage: nobody configures messages of half a gigabyte."""

_NAME_DIGITS: Final = 20
_OPEN_MAX: Final = 8


class NoStore(StoreError):
    """The directory is not that of a store."""


class LogFileGone(StoreError):
    """A place in the log that no file holds, or no longer."""

    def __init__(self, physical_offset: int) -> None:
        super().__init__(f"no log file holds offset {physical_offset}")
        self.physical_offset = physical_offset


class QueueBounds(NamedTuple):
    first: int
    end: int


class LogFiles:
    """The row of log files, as last listed."""

    def __init__(self, directories: Sequence[str]) -> None:
        self._directories = tuple(directories)
        self._open: OrderedDict[str, int] = OrderedDict()
        self.refresh()

    def refresh(self) -> None:
        """List the files again: some may be new, some gone."""
        found = [
            (start, path, size)
            for directory in self._directories
            for start, path, size in _numbered_files(directory)
            if size
        ]
        found.sort()
        self._starts = [start for start, _, _ in found]
        self._paths = [path for _, path, _ in found]
        self._ends = [start + size for start, _, size in found]

    @property
    def start(self) -> int:
        return self._starts[0] if self._starts else 0

    @property
    def end(self) -> int:
        """Behind the last byte of the last file, written or not."""
        return self._ends[-1] if self._ends else 0

    @property
    def files(self) -> list[tuple[int, int]]:
        """Start and end of each file."""
        return list(zip(self._starts, self._ends, strict=True))

    def file_of(self, physical_offset: int) -> tuple[str, int]:
        """Path of the file, and the place in it. Raises LogFileGone."""
        number = bisect_right(self._starts, physical_offset) - 1
        if number < 0 or physical_offset >= self._ends[number]:
            raise LogFileGone(physical_offset)
        return self._paths[number], physical_offset - self._starts[number]

    def files_of(self, physical: Ints) -> Ints:
        """The number of the file of each offset; -1 for those that no file holds."""
        if not self._starts:
            return np.full(len(physical), -1, dtype=np.int64)
        numbers: Ints = np.searchsorted(np.array(self._starts), physical, side="right") - 1
        is_held = (numbers >= 0) & (physical < np.array(self._ends)[numbers])
        return np.where(is_held, numbers, -1)

    def holds(self, physical: Ints, sizes: Ints) -> Ints:
        """Whether the whole of each record is in one file."""
        numbers = self.files_of(physical)
        if not self._ends:
            return numbers >= 0
        return (numbers >= 0) & (physical + sizes <= np.array(self._ends)[numbers])

    def read(self, physical_offset: int, size_bytes: int) -> bytes:
        """Raises LogFileGone; fewer bytes come at the end of a file."""
        path, at = self.file_of(physical_offset)
        return os.pread(self._descriptor(path, physical_offset), size_bytes, at)

    def read_into(self, target: memoryview, physical_offset: int) -> None:
        """Fill ``target`` from one file. Raises LogFileGone when it, or a part of what is wanted, is not there."""
        path, at = self.file_of(physical_offset)
        descriptor = self._descriptor(path, physical_offset)
        done = 0
        while done < len(target):
            count = os.preadv(descriptor, [target[done:]], at + done)
            if not count:
                raise LogFileGone(physical_offset + done)
            done += count

    def close(self) -> None:
        while self._open:
            os.close(self._open.popitem()[1])

    def _descriptor(self, path: str, physical_offset: int) -> int:
        descriptor = self._open.get(path)
        if descriptor is not None:
            self._open.move_to_end(path)
            return descriptor
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise LogFileGone(physical_offset) from None
        while len(self._open) >= _OPEN_MAX:
            os.close(self._open.popitem(last=False)[1])
        self._open[path] = descriptor
        return descriptor


class QueueFiles:
    """The files of one consume queue, as listed when this was made."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        found = sorted(_numbered_files(directory))
        self._starts = [start // ENTRY_BYTES for start, _, _ in found]
        self._paths = [path for _, path, _ in found]
        self._counts = [size // ENTRY_BYTES for _, _, size in found]
        for start, path, _ in found:
            if start % ENTRY_BYTES:
                raise CorruptFile(
                    path,
                    f"its name is no multiple of {ENTRY_BYTES}, the size of an entry",
                    "Is this a consume queue of another kind? Move it elsewhere.",
                )

    def entries(self, start: int, end: int) -> Ints:
        """Entries from ``start`` up to ``end``. Those that are not there, or no longer, come out as zeros."""
        entries: Ints = np.zeros(max(end - start, 0), dtype=ENTRY)
        plain = entries.view(np.uint8).data if len(entries) else memoryview(b"")
        for first, path, count in zip(self._starts, self._paths, self._counts, strict=True):
            low, high = max(start, first), min(end, first + count)
            if low < high:
                part = plain[(low - start) * ENTRY_BYTES : (high - start) * ENTRY_BYTES]
                _read_some(path, part, (low - first) * ENTRY_BYTES)
        return entries

    def entry(self, offset: int) -> tuple[int, int]:
        """Physical offset and size of one entry."""
        entry = self.entries(offset, offset + 1)[0]
        return int(entry["physical"]), int(entry["size"])

    def bounds(self, log: LogFiles) -> QueueBounds:
        """The offsets whose records are in the log, from the first up to the end, which is not included."""
        end = self._written_end()
        if end and not self._is_whole(end - 1, log):
            # Written in order, so whole records come first, and the first other one is found by halves.
            low, high = self._starts[0], end - 1
            while low < high:
                middle = (low + high) // 2
                if self._is_before(middle, log.start) or self._is_whole(middle, log):
                    low = middle + 1
                else:
                    high = middle
            end = low
        return QueueBounds(self.find(log.start, self._starts[0] if self._starts else 0, end), end)

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
        for first, path, count in zip(
            reversed(self._starts), reversed(self._paths), reversed(self._counts), strict=True
        ):
            low, high = 0, count
            with _Opened(path) as descriptor:
                while low < high:
                    middle = (low + high) // 2
                    raw = os.pread(descriptor, ENTRY_BYTES, middle * ENTRY_BYTES)
                    if int.from_bytes(raw[8:12], "big", signed=True) > 0:
                        low = middle + 1
                    else:
                        high = middle
            if low:
                return first + low
        return self._starts[0] if self._starts else 0

    def _is_before(self, offset: int, physical_offset: int) -> bool:
        physical, size = self.entry(offset)
        return physical < physical_offset or size == FILLER_SIZE

    def _is_whole(self, offset: int, log: LogFiles) -> bool:
        """Whether the log has the record of an entry, with the body it was written with."""
        physical, size = self.entry(offset)
        if size == FILLER_SIZE:
            return True
        if not 0 < size <= RECORD_BYTES_MAX:
            return False
        try:
            record = decode_record(log.read(physical, size))
        except (BadRecord, LogFileGone):
            return False
        return record.physical_offset == physical and record.size_bytes == size


class StoreDirectory:
    """What there is in a store's directory."""

    def __init__(self, path: str, log_paths: Sequence[str] = ()) -> None:
        """
        Args:
            log_paths: directories of the log files, where they are not below ``path``.

        Raises:
            NoStore: there is no log. Queues may be missing: a new broker makes them with the first message.
        """
        self.path = path
        self._queues_path = f"{path}/consumequeue"
        log_paths = tuple(log_paths) or (f"{path}/commitlog",)
        for needed in log_paths:
            if not Path(needed).is_dir():
                raise NoStore(
                    f"{path}: expected the directory of a store, with commitlog and consumequeue in it, but "
                    f"there is no {needed}; name a broker's storePathRootDir or a copy of it"
                )
        self.log = LogFiles(log_paths)

    def topics(self) -> list[str]:
        return sorted(
            name for name in _names(self._queues_path) if stored_topic_fault(name) is None
        )

    def queue_ids(self, topic: str) -> list[int]:
        """Empty when there is no such topic."""
        names = _names(f"{self._queues_path}/{topic}")
        return sorted(int(name) for name in names if name.isascii() and name.isdecimal())

    def queue(self, topic: str, queue_id: int) -> QueueFiles:
        """A queue without files when there is none."""
        return QueueFiles(f"{self._queues_path}/{topic}/{queue_id}")

    def has_batch_queues(self, topic: str) -> bool:
        """Whether the topic is one of RocketMQ 5's batch queues, whose entries are of another kind."""
        return bool(_names(f"{self.path}/batchconsumequeue/{topic}"))

    def close(self) -> None:
        self.log.close()


class _Opened:
    """A file that may be gone: then it is as if it were empty."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1

    def __enter__(self) -> int:
        try:
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            self._descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        return self._descriptor

    def __exit__(self, *_: Any) -> None:
        os.close(self._descriptor)


def _read_some(path: str, target: memoryview, at: int) -> None:
    with _Opened(path) as descriptor:
        done = 0
        while done < len(target):
            count = os.preadv(descriptor, [target[done:]], at + done)
            if not count:
                return
            done += count


def _names(directory: str) -> list[str]:
    try:
        return [path.name for path in Path(directory).iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _numbered_files(directory: str) -> list[tuple[int, str, int]]:
    """Start, path and size of the files whose names are offsets. Others, like those in the making, are passed over."""
    found: list[tuple[int, str, int]] = []
    for name in _names(directory):
        if len(name) == _NAME_DIGITS and name.isascii() and name.isdecimal():
            path = f"{directory}/{name}"
            try:
                found.append((int(name), path, Path(path).stat().st_size))
            except FileNotFoundError:
                continue  # Expired between the two calls.
    return found
