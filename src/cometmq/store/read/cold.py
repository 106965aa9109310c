"""What a read will look at that is not in memory, found out without waiting for the disk.

The owner of the store must not wait for the disk, since everybody else would wait with it. Before it reads old
messages it asks here; what is missing is loaded by ``loading``, and then the read goes on as usual. Nothing here
decides what a reader gets: a wrong answer costs time.

Messages that were just written are in memory. For them, nothing is asked but where they are: two comparisons. For older
ones the kernel is asked, about a page here and there: pages come and go in long runs.

Thread rule: the owner of the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from cometmq.base.ports import Clock, File
from cometmq.store.files.queue_entry import ENTRY, ENTRY_BYTES
from cometmq.store.log.commit_log import CommitLog
from cometmq.store.queues.consume_queue import ConsumeQueue
from cometmq.store.queues.consume_queues import ConsumeQueues
from cometmq.store.queues.extended_queue import CODE_MIN
from cometmq.store.queues.extended_queues import TagFilter
from cometmq.store.read.loading import Stretch
from cometmq.store.read.soundness import Soundness

LOAD_BYTES_MAX: Final = 64 << 20
"""Most bytes of the log that one read has loaded: a bulk pull of 8 MB whose queue has an eighth of the log."""

AHEAD_BYTES: Final = 8 << 20
"""How much of the log is loaded behind the messages of a read: those who read old messages go on."""

ENTRIES_AHEAD_BYTES: Final = 256 << 10
"""The same for a queue: 13,000 messages."""

DENSE_PART: Final = 64
"""Where at least one byte in so many belongs to the read, everything from its first to its last message is loaded."""

SPARSE_COUNT_MAX: Final = 800
"""Otherwise its messages are loaded one by one, at most so many: as many as a pull with a filter looks at."""

FURTHER_COUNT: Final = 512
"""How many messages are asked about at once, if a read wants less. Not those that are far from each other."""

LOADED_SECONDS: Final = 1.0
"""For how long the answer holds. Pages that were just read do not leave the memory at once."""

KNOWN_MAX: Final = 4096
"""Queues about which something is remembered: less than 2 MB."""


class NotInMemory(Exception):
    """A read would wait for the disk."""

    def __init__(self, missing: Sequence[Stretch]) -> None:
        super().__init__("not in memory")
        self.missing = missing
        """For ``Loader.load``."""


class _Reach(NamedTuple):
    start: int
    span_bytes: int
    """From the first to the last record, with all between them."""
    entries: int
    is_dense: bool
    """Much of it is what is read."""


class ColdReads:
    def __init__(
        self, log: CommitLog, queues: ConsumeQueues, soundness: Soundness, clock: Clock
    ) -> None:
        self._log = log
        self._queues = queues
        self._soundness = soundness
        self._monotonic = clock.monotonic
        self._recent: dict[ConsumeQueue, tuple[int, int]] = {}
        """A message that this process has appended: its offset in the queue, and where it is in the log."""
        self._loaded: dict[ConsumeQueue, tuple[int, int, float]] = {}
        """A range of messages that were in memory, and until when that is taken as true."""

    def is_recent(self, queue: ConsumeQueue, offset: int) -> bool:
        """Whether a message and those behind it were just written. Some that were it does not recognize."""
        known = self._recent.get(queue)
        return (
            known is not None
            and offset >= known[0]
            and known[1] >= self._log.end - self._soundness.hot_bytes
        )

    def missing(
        self,
        queue: ConsumeQueue,
        offset: int,
        count: int,
        max_bytes: int,
        tags: TagFilter | None = None,
    ) -> Sequence[Stretch]:
        """What has to be loaded for a read of so many entries and bytes, first of the queue, then of the log.

        If it is of the queue, ask again when it is loaded: only then it is known which part of the log is read.
        """
        if self.is_recent(queue, offset) or self._is_known(queue, offset, offset + count):
            return ()
        written = queue.written_offset
        end = min(offset + max(count, 1), written)
        if offset >= end or not 0 <= queue.first_start <= offset * ENTRY_BYTES:
            return ()
        further = min(offset + FURTHER_COUNT, written)
        # Who reads old messages goes on: if those that follow are there, too, the next reads need not ask.
        if further > end and self._are_loaded(queue, offset, further):
            return ()
        return self._missing_entries(queue, offset, end) or self._missing_records(
            queue, offset, end, max_bytes, tags
        )

    def _is_known(self, queue: ConsumeQueue, offset: int, end: int) -> bool:
        known = self._loaded.get(queue)
        return (
            known is not None
            and known[0] <= offset
            and end <= known[1]
            and self._monotonic() < known[2]
        )

    def _are_loaded(self, queue: ConsumeQueue, offset: int, end: int) -> bool:
        """Whether messages are in memory, which is remembered. Does not look at those that are far from each other."""
        if self._missing_entries(queue, offset, end):
            return False
        reach = self._reach(queue, offset, end, LOAD_BYTES_MAX)
        if reach is None:
            return True
        if not reach.is_dense or not all(
            file.is_loaded(at, length)
            for _, file, at, length in self._pieces(reach.start, reach.span_bytes)
        ):
            return False
        if len(self._loaded) >= KNOWN_MAX:
            self._loaded.clear()
        self._loaded[queue] = offset, end, self._monotonic() + LOADED_SECONDS
        return True

    def _missing_entries(self, queue: ConsumeQueue, offset: int, end: int) -> list[Stretch]:
        found: list[Stretch] = []
        written = queue.written_offset * ENTRY_BYTES
        position, until = offset * ENTRY_BYTES, end * ENTRY_BYTES
        while position < until:
            start = position - position % queue.file_bytes
            file_end = start + queue.file_bytes
            size_bytes = min(until, file_end) - position
            try:
                file = self._queues.open_files.get(queue.path(start))
            except FileNotFoundError:
                return found  # The read makes it anew.
            if not file.is_loaded(position - start, size_bytes):
                behind = min(written, file_end) - position - size_bytes
                ahead_bytes = min(behind, ENTRIES_AHEAD_BYTES)
                found.append(Stretch(file.path, position - start, size_bytes, ahead_bytes))
            position = file_end
        return found

    def _missing_records(
        self, queue: ConsumeQueue, offset: int, end: int, max_bytes: int, tags: TagFilter | None
    ) -> list[Stretch]:
        reach = self._reach(queue, offset, end, max_bytes)
        if reach is None:
            return []
        if reach.is_dense:
            place = reach.start, min(reach.span_bytes, LOAD_BYTES_MAX)
            return self._missing_places([place], AHEAD_BYTES)
        count = min(reach.entries, SPARSE_COUNT_MAX)
        data = queue.read(offset, count, self._queues.open_files)
        return self._missing_places(_within(_wanted(data, tags), LOAD_BYTES_MAX), 0)

    def _reach(self, queue: ConsumeQueue, offset: int, end: int, max_bytes: int) -> _Reach | None:
        """Where the records of a read are. None if they are in memory, or if there is something wrong with them."""
        start, size_bytes, _ = self._entry(queue, offset)
        if start >= self._soundness.in_memory_from:
            if len(self._recent) >= KNOWN_MAX:
                self._recent.clear()
            self._recent[queue] = offset, start
            return None
        if size_bytes <= 0:
            return None
        # An estimate that is right where all messages are of one size.
        count = min(end - offset, max_bytes // size_bytes + 1)
        last, last_bytes, _ = self._entry(queue, offset + count - 1)
        span = last + last_bytes - start
        if span <= 0:
            return None
        return _Reach(start, span, count, is_dense=span <= DENSE_PART * size_bytes * count)

    def _entry(self, queue: ConsumeQueue, offset: int) -> tuple[int, int, int]:
        return queue.entry(offset, self._queues.open_files) or (0, 0, 0)

    def _missing_places(self, places: Iterable[tuple[int, int]], ahead_bytes: int) -> list[Stretch]:
        found: list[Stretch] = []
        for offset, size_bytes in places:
            for start, file, at, length in self._pieces(offset, size_bytes):
                if not file.is_loaded(at, length):
                    behind = min(self._log.end - start, self._log.file_bytes) - at - length
                    found.append(Stretch(file.path, at, length, min(behind, ahead_bytes)))
        return found

    def _pieces(self, offset: int, size_bytes: int) -> Iterator[tuple[int, File, int, int]]:
        """The parts of a range of the log in its files: the start of the file, the file, position and length in it."""
        position = max(offset, self._log.start)
        end = min(offset + size_bytes, self._log.end)
        while position < end and (log_file := self._log.row.at(position)) is not None:
            until = min(end, log_file.start + self._log.file_bytes)
            yield log_file.start, log_file.file, position - log_file.start, until - position
            position = until


def _wanted(data: bytes, tags: TagFilter | None) -> Iterator[tuple[int, int]]:
    """Where the records of entries are whose tag is wanted, as far as the entry tells."""
    for physical_offset, size_bytes, code in ENTRY.iter_unpack(data):
        if size_bytes > 0 and (tags is None or code < CODE_MIN or tags(code)):
            yield physical_offset, size_bytes


def _within(places: Iterable[tuple[int, int]], max_bytes: int) -> Iterator[tuple[int, int]]:
    total = 0
    for place in places:
        total += place[1]
        if total > max_bytes:
            return
        yield place
