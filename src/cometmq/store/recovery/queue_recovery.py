"""Consume queues after a stop: where each one ends, and from which record on the log must be replayed.

After a clean stop all entries are on disk; a queue that ends oddly, or earlier than the log says, was damaged and is
completed. After an unclean stop, only entries of records below a bound are trusted; later ones are wiped and rebuilt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from cometmq.store.files.queue_end import NO_BOUND, find_queue_end
from cometmq.store.files.queue_entry import ENTRY_BYTES, FILLER_SIZE
from cometmq.store.files.record_scan import Scanned, scan_record
from cometmq.store.log.commit_log import CommitLog
from cometmq.store.queues.consume_queue import ConsumeQueue
from cometmq.store.queues.consume_queues import ConsumeQueues


@dataclass(slots=True)
class Span:
    """Queue offsets that a scan of the log saw in one queue."""

    first: int
    last: int


class Spans:
    """What a scan of the log saw of all queues."""

    def __init__(self) -> None:
        self.by_queue: dict[tuple[bytes, int], Span] = {}

    def note(self, record: Scanned) -> None:
        key = record.topic, record.queue_id
        span = self.by_queue.get(key)
        if span is None:
            self.by_queue[key] = Span(record.queue_offset, record.queue_offset)
        else:
            span.last = record.queue_offset


@dataclass(slots=True)
class _Loaded:
    queue: ConsumeQueue
    last_start: int
    record_end: int = 0
    """Where the record of the last valid entry ends in the log; 0 if there is none."""
    is_suspect: bool = False
    """Entries seem to be missing after the last valid one."""


class QueueRecovery:
    def __init__(
        self, log: CommitLog, queues: ConsumeQueues, deleted: Mapping[bytes, int], *, is_clean: bool
    ) -> None:
        self._log = log
        self._queues = queues
        self._deleted = deleted
        self._is_clean = is_clean
        self._loaded: list[_Loaded] = []

    def load(self) -> None:
        """Find the existing files. Raises CorruptFile."""
        self._loaded = [_Loaded(*item) for item in self._queues.load(is_clean=self._is_clean)]

    @property
    def queue_count(self) -> int:
        return len(self._loaded)

    @property
    def record_end(self) -> int:
        """The end, in the log, of the last record that any queue knows."""
        return max((item.record_end for item in self._loaded), default=0)

    def settle(self, bound: int, log_end: int) -> None:
        """Find each queue's end, and wipe what does not count.

        Args:
            bound: only trust entries of records below this; ``NO_BOUND`` after a clean stop.
            log_end: where the log was cut.
        """
        for item in self._loaded:
            queue = item.queue
            offset = self._find_end(item, bound)
            if self._is_of_deleted_topic(queue, offset):
                self._queues.delete_queue(queue)
                item.record_end = 0
                continue
            if item.record_end > log_end:
                queue.next_offset = offset
                offset = queue.find_record(log_end, self._queues.open_files)
                item.record_end = self._record_end(queue, offset)
                self._queues.truncate(queue, offset, item.last_start)
            elif item.is_suspect or bound != NO_BOUND:
                self._queues.truncate(queue, offset, item.last_start)
            queue.next_offset = offset
        made_anew = self._queues.settled()
        for item in self._loaded:
            if item.queue in made_anew:
                item.record_end = 0
                item.is_suspect = True

    def gaps(self, spans: Spans) -> list[int]:
        """Offsets of the log from which some queue lacks entries; 0 means the start of the log.

        Args:
            spans: what the log holds. After a clean stop the queues must have all of it; after an unclean one they are
                about to get it, and must reach up to its start.
        """
        ends = {id(item.queue): item.record_end for item in self._loaded}
        found = [item.record_end for item in self._loaded if item.is_suspect]
        for (topic, queue_id), span in spans.by_queue.items():
            queue = self._queues.get(topic.decode(errors="replace"), queue_id)
            next_offset = queue.next_offset if queue else 0
            if next_offset < span.first or (self._is_clean and next_offset <= span.last):
                found.append(ends.get(id(queue), 0))
        return found

    def _find_end(self, item: _Loaded, bound: int) -> int:
        queue = item.queue
        file_bytes = self._queues.file_bytes
        start = item.last_start
        while start >= 0:
            file = self._queues.open_files.get(queue.path(start))
            first = start // ENTRY_BYTES
            is_real = None if bound == NO_BOUND else partial(self._is_real, queue, first)
            end = find_queue_end(file, bound, is_real)
            if bound == NO_BOUND:
                # After a clean stop, every file has an entry, and all but the last are full.
                is_full = end.entries * ENTRY_BYTES == file_bytes
                is_odd = not is_full if start < item.last_start else not end.entries
                item.is_suspect |= is_odd or end.is_followed
            elif not end.entries and start > queue.first_start:
                # Entries of later records are normal, but a file without any entry has lost some.
                item.is_suspect |= not find_queue_end(file).entries
            if end.entries:
                item.record_end = end.record_end
                return first + end.entries
            if start == queue.first_start:
                return first
            start -= file_bytes
        return 0

    def _is_real(
        self, queue: ConsumeQueue, first: int, number: int, physical_offset: int, size_bytes: int
    ) -> bool:
        """Whether the log holds, or held, the record of an entry."""
        if size_bytes == FILLER_SIZE:
            return True
        log_file = self._log.row.at(physical_offset)
        if log_file is None:
            # The record is gone, so only the previous entry can tell.
            queue.next_offset = first + number
            before = queue.entry(first + number - 1, self._queues.open_files) if number else None
            if before is not None and before[1] != FILLER_SIZE:
                return before[0] + before[1] <= physical_offset < self._log.start
            return physical_offset < self._log.start
        view = log_file.file.view(0, self._log.file_bytes)
        at = physical_offset - log_file.start
        record = scan_record(view, at, log_file.start, check_crc=False)
        if record is None or record.size_bytes != size_bytes:
            return False
        place = record.topic, record.queue_id, record.queue_offset
        return place == (queue.topic.encode(), queue.queue_id, first + number)

    def _is_of_deleted_topic(self, queue: ConsumeQueue, end: int) -> bool:
        """Whether the files were removed together with their topic, and a power loss brought them back."""
        deleted_end = self._deleted.get(queue.topic.encode(), 0) if self._deleted else 0
        if not deleted_end or not end:
            return False
        queue.next_offset = end
        entry = queue.entry(queue.first_start // ENTRY_BYTES, self._queues.open_files)
        # Some of the files may be back and some not. A queue without a trustworthy entry has nothing to lose.
        return entry is None or (entry[1] != FILLER_SIZE and entry[0] < deleted_end)

    def _record_end(self, queue: ConsumeQueue, offset: int) -> int:
        entry = queue.entry(offset - 1, self._queues.open_files) if offset else None
        if entry is None or entry[1] == FILLER_SIZE:
            return 0
        return entry[0] + entry[1]
