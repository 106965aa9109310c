"""Repairs queue entries that lead to a wrong place, or nowhere, from the log.

The simple case first: a flipped bit leaves an offset that differs in one bit from the right one. Otherwise the log is
searched between the records of the nearest valid entries. For a queue that gets one message a day, that may be many
gigabytes, so a search processes one slice at a time, and the reader asks again.

Thread rule: the owner of the store.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from cometmq.base.errors import DiskFull
from cometmq.model.names import SCHEDULE_TOPIC
from cometmq.store.files.queue_entry import ENTRY, ENTRY_BYTES, FILLER_SIZE
from cometmq.store.files.record_scan import Scanned
from cometmq.store.log.commit_log import CommitLog
from cometmq.store.log.log_scan import LogWalk
from cometmq.store.queues.consume_queue import ConsumeQueue
from cometmq.store.queues.consume_queues import ConsumeQueues
from cometmq.store.queues.delay_levels import DelayLevels
from cometmq.store.queues.deleted_topics import DeletedTopics
from cometmq.store.queues.extended_queue import is_address
from cometmq.store.queues.queue_check import leads_to, record_of

logger = logging.getLogger("cometmq.store")

SLICE_BYTES: Final = 32 << 20
"""Bytes of the log searched at once: about 0.1 s."""
RUN_COUNT: Final = 1024
"""Entries checked after one was found to be bad: damage rarely comes alone."""
SEARCHES_MAX: Final = 16
LOST_MAX: Final = 4096
_CHECK_COUNT: Final = 512
_FLIPS: Final = (0, *(1 << bit for bit in range(64)))
_UNSIGNED: Final = (1 << 64) - 1

_Key = tuple[ConsumeQueue, int]


class Outcome(Enum):
    LATER = "later"
    """The search continues: ask again."""
    NONE = "none"
    """A gap, or the log has lost the record."""


class Mended(NamedTuple):
    physical_offset: int
    size_bytes: int
    tags_code: int
    record: memoryview


@dataclass(slots=True)
class _Search:
    position: int
    stop: int
    is_first_right: bool
    """It starts after the previous record; otherwise, one of an earlier topic with the same name may come first."""
    found: Scanned | None = None


class QueueRepair:
    def __init__(
        self,
        log: CommitLog,
        queues: ConsumeQueues,
        delay_levels: DelayLevels,
        deleted: DeletedTopics,
    ) -> None:
        self._log = log
        self._queues = queues
        self._delay_levels = delay_levels
        self._deleted = deleted
        # Both are dicts for their order: the oldest is dropped when there are too many.
        self._searches: dict[_Key, _Search] = {}
        self._lost: dict[_Key, None] = {}

    def read(self, queue: ConsumeQueue, offset: int, count: int) -> bytes:
        """``ConsumeQueue.read``, up to the first entry that takes longer to repair; for readers of a few entries."""
        open_files = self._queues.open_files
        data = queue.read(offset, count, open_files)
        if offset >= queue.trusted_from and bytes(ENTRY_BYTES) not in data:
            return data
        for number, (physical_offset, size_bytes, _) in enumerate(ENTRY.iter_unpack(data), offset):
            is_gone = size_bytes > 0 and 0 <= physical_offset < self._log.start
            if is_gone or size_bytes == FILLER_SIZE:
                continue
            record = self._log.view(physical_offset, size_bytes) if size_bytes > 0 else None
            is_right = record is not None and leads_to(queue, number, record)
            if not is_right and self.mend(queue, number) is Outcome.LATER:
                return queue.read(offset, number - offset, open_files)
        return queue.read(offset, count, open_files)

    def mend(self, queue: ConsumeQueue, queue_offset: int) -> Mended | Outcome:
        """Repair an entry that is known to be bad, and those after it. Returns what this one should be."""
        if (queue, queue_offset) in self._lost:
            return Outcome.NONE
        entry = queue.entry(queue_offset, self._queues.open_files)
        if entry is None or entry[1] == FILLER_SIZE:
            return Outcome.NONE
        if self._is_sound(queue, queue_offset, *entry):
            # It may have been repaired with an earlier one meanwhile.
            record = self._log.view(entry[0], entry[1])
            assert record is not None, entry
            return Mended(*entry, record)
        try:
            outcome = self._mend(queue, queue_offset)
            if isinstance(outcome, Mended):
                self._report(queue, queue_offset, 1 + self._mend_behind(queue, queue_offset + 1))
        except DiskFull:
            return Outcome.LATER
        return outcome

    def check_newest(self, log_bytes: int) -> None:
        """Check the entries of the last records of the log, which was read a moment ago. Raises DiskFull."""
        seen_from = max(self._log.end - log_bytes, self._log.start)
        for queue in self._queues.all():
            mended: list[int] = []
            for number, physical_offset, size_bytes, code in self._newest(queue, seen_from):
                if self._is_sound(queue, number, physical_offset, size_bytes, code):
                    continue
                outcome = self._mend(queue, number)
                if isinstance(outcome, Mended):
                    mended.append(number)
                elif outcome is Outcome.LATER:
                    break  # A later read continues.
            if mended:
                self._report(queue, min(mended), len(mended))

    def _is_sound(
        self, queue: ConsumeQueue, number: int, physical_offset: int, size_bytes: int, code: int
    ) -> bool:
        if size_bytes == FILLER_SIZE:
            return True
        record = self._record(queue, number, physical_offset)
        if record is None or record.size_bytes != size_bytes:
            return False
        # The due time of a delayed message depends on a setting that may have changed since.
        is_hash = queue.topic != SCHEDULE_TOPIC and not is_address(code)
        return not is_hash or code == self._code(queue, record)

    def _newest(self, queue: ConsumeQueue, seen_from: int) -> Iterator[tuple[int, int, int, int]]:
        """Entries from the last one back to the first older one, and those out of order in between."""
        end = queue.next_offset
        first = queue.min_offset(self._log.start, self._queues.open_files)
        while end > first:
            start = max(end - _CHECK_COUNT, first)
            data = queue.read(start, end - start, self._queues.open_files)
            entries = list(ENTRY.iter_unpack(data))
            next_start = self._log.end
            is_older = True
            for number in range(len(entries) - 1, -1, -1):
                physical_offset, size_bytes, code = entries[number]
                is_in_order = physical_offset + size_bytes <= next_start
                if physical_offset >= seen_from or not is_in_order:
                    is_older = False
                    yield start + number, physical_offset, size_bytes, code
                if is_in_order:
                    next_start = physical_offset
            if is_older:
                return
            end = start

    def _mend_behind(self, queue: ConsumeQueue, queue_offset: int) -> int:
        """How many entries were repaired until one takes longer."""
        mended = 0
        count = min(RUN_COUNT, queue.written_offset - queue_offset)
        data = queue.read(queue_offset, max(count, 0), self._queues.open_files)
        for number, entry in enumerate(ENTRY.iter_unpack(data), queue_offset):
            if not self._is_sound(queue, number, *entry):
                outcome = self._mend(queue, number)
                if outcome is Outcome.LATER:
                    break
                mended += isinstance(outcome, Mended)
        return mended

    def _mend(self, queue: ConsumeQueue, queue_offset: int) -> Mended | Outcome:
        key = queue, queue_offset
        search = self._searches.pop(key, None)
        record: Scanned | None = None
        if search is None:
            record = self._near(queue, queue_offset)
            if record is None:
                search = self._begin_search(queue, queue_offset)
        if search is not None:
            if not self._go_on(queue, queue_offset, search):
                _make_room(self._searches, SEARCHES_MAX)
                self._searches[key] = search
                return Outcome.LATER
            record = search.found
        if record is None:
            logger.error(
                "queue entry without a record topic=%s queue=%d offset=%d",
                queue.topic,
                queue.queue_id,
                queue_offset,
            )
            _make_room(self._lost, LOST_MAX)
            self._lost[key] = None
            return Outcome.NONE
        return self._write(queue, record)

    def _near(self, queue: ConsumeQueue, queue_offset: int) -> Scanned | None:
        """The record, if the entry's offset is right or differs in one bit."""
        entry = queue.entry(queue_offset, self._queues.open_files)
        if entry is None:
            return None
        for flip in _FLIPS:
            record = self._record(queue, queue_offset, (entry[0] & _UNSIGNED) ^ flip)
            if record is not None:
                return record
        return None

    def _begin_search(self, queue: ConsumeQueue, queue_offset: int) -> _Search:
        first = queue.min_offset(self._log.start, self._queues.open_files)
        before = self._nearest(queue, queue_offset, -1, first)
        behind = self._nearest(queue, queue_offset, 1, queue.next_offset - 1)
        return _Search(
            position=(
                before.physical_offset + before.size_bytes if before else self._first_of(queue)
            ),
            stop=behind.physical_offset if behind else self._log.end,
            is_first_right=before is not None,
        )

    def _nearest(
        self, queue: ConsumeQueue, queue_offset: int, direction: int, last: int
    ) -> Scanned | None:
        """The record of a valid entry on one side, searched in doubling steps."""
        step = 1
        while step <= (last - queue_offset) * direction:
            number = queue_offset + step * direction
            entry = queue.entry(number, self._queues.open_files)
            if entry is not None:
                record = self._record(queue, number, entry[0])
                if record is not None:
                    return record
            step *= 2
        return None

    def _go_on(self, queue: ConsumeQueue, queue_offset: int, search: _Search) -> bool:
        """Search a slice of the log. Returns whether the search is finished."""
        # The log may have lost its first files since.
        position = max(search.position, self._first_of(queue))
        slice_end = min(position + SLICE_BYTES, search.stop)
        wanted = queue.topic.encode(), queue.queue_id, queue_offset
        row = self._log.row
        walk = LogWalk(row, position, stop=slice_end, check_crc=False, passes_damage=True)
        for record in walk:
            if (record.topic, record.queue_id, record.queue_offset) == wanted:
                search.found = record
                if search.is_first_right:
                    return True
        search.position = walk.position
        return walk.position >= search.stop

    def _record(self, queue: ConsumeQueue, queue_offset: int, offset: int) -> Scanned | None:
        if not self._first_of(queue) <= offset < self._log.end:
            return None
        return record_of(self._log, queue, queue_offset, offset)

    def _first_of(self, queue: ConsumeQueue) -> int:
        """Where the first record of a queue may be: records of a deleted topic with the same name do not count."""
        return max(self._log.start, self._deleted.end_of(queue.topic))

    def _code(self, queue: ConsumeQueue, record: Scanned) -> int:
        properties = record.properties.decode(errors="replace")
        return self._delay_levels.tags_code(queue.topic, properties, record.store_timestamp)

    def _write(self, queue: ConsumeQueue, record: Scanned) -> Mended:
        view = self._log.view(record.physical_offset, record.size_bytes)
        assert view is not None, record
        mended = Mended(record.physical_offset, record.size_bytes, self._code(queue, record), view)
        self._queues.rewrite(queue, record.queue_offset, ENTRY.pack(*mended[:3]))
        return mended

    def _report(self, queue: ConsumeQueue, queue_offset: int, count: int) -> None:
        logger.warning(
            "queue entries mended from the log topic=%s queue=%d from_offset=%d count=%d",
            queue.topic,
            queue.queue_id,
            queue_offset,
            count,
        )


def _make_room(table: dict[_Key, _Search] | dict[_Key, None], limit: int) -> None:
    if len(table) >= limit:
        del table[next(iter(table))]
