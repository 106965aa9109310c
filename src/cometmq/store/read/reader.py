"""Reads by queue offset, by time and by key. Nothing here changes anything on disk.

A read returns views of the mapped log; adjacent records become one view. Thread rule: the owner of the store.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final

from cometmq.model.messages.record import readable_record
from cometmq.store.files.queue_entry import ENTRY, ENTRY_BYTES, TAGS_CODE_AT
from cometmq.store.index.index_files import IndexFiles
from cometmq.store.log.commit_log import CommitLog
from cometmq.store.queues.consume_queue import ConsumeQueue
from cometmq.store.queues.consume_queues import ConsumeQueues
from cometmq.store.queues.delay_levels import DelayLevels
from cometmq.store.queues.extended_queue import ADDRESS_BYTE, CODE_MIN, Unit, is_address
from cometmq.store.queues.extended_queues import ExtendedConsumeQueues, TagFilter, UnitFilter
from cometmq.store.queues.queue_check import all_lead_to, ends_right
from cometmq.store.queues.queue_repair import QueueRepair
from cometmq.store.read.cold import LOAD_BYTES_MAX, ColdReads, NotInMemory
from cometmq.store.read.collect import collect
from cometmq.store.read.gather import queue_reader
from cometmq.store.read.hidden import Hidden
from cometmq.store.read.read_results import GetResult, GetStatus, QueryResult
from cometmq.store.read.soundness import Soundness
from cometmq.store.read.wanted import Limits, RecordFilter, Wanted
from cometmq.store.recovery.log_follower import index_keys
from cometmq.store.store_config import ReadConfig

SCAN_COUNT_MIN: Final = 16_000 // ENTRY_BYTES
"""A read with a filter looks at at least so many entries of a queue, however few messages it may return."""

TAG_HASH_MIN: Final = -(2**31)


@lru_cache(maxsize=128)
def _places(count: int) -> struct.Struct:
    """The format for physical offset and size of ``count`` entries."""
    return struct.Struct(">" + "qi8x" * count)


class Reader:
    def __init__(
        self,
        log: CommitLog,
        queues: ConsumeQueues,
        index: IndexFiles | None,
        config: ReadConfig,
        memory_bytes: int,
        delay_levels: DelayLevels,
        repair: QueueRepair,
        soundness: Soundness,
        hidden: Hidden,
        cold: ColdReads,
    ) -> None:
        self._log = log
        self._cold = cold
        self._hidden = hidden
        self._repair = repair
        self._soundness = soundness
        self._queues = queues
        self._extended = queues if isinstance(queues, ExtendedConsumeQueues) else None
        self._code_min = judged_code_min(self._extended)
        self._delay_levels = delay_levels
        self._index = index
        self._memory_bytes = memory_bytes
        self._quick = queue_reader(
            log, soundness, queues, hidden, cold.is_recent, self._code_min, SCAN_COUNT_MIN
        )
        self.apply(config)

    def apply(self, config: ReadConfig) -> None:
        """Apply new limits."""
        self._config = config
        self._cached_bytes = self._memory_bytes * config.memory_percent // 100
        if self._quick is not None:
            self._quick.apply(config, self._cached_bytes)

    def is_in_memory(self, physical_offset: int) -> bool:
        """Whether a record is probably still in the page cache."""
        return self._log.end - physical_offset <= self._cached_bytes

    def get(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max_count: int,
        max_bytes: int,
        tags: TagFilter | None,
        record: RecordFilter | None,
        scan_max: int,
        unit: UnitFilter | None = None,
        may_wait: bool = True,
    ) -> GetResult:
        is_plain = tags is None and record is None
        found: GetResult | None
        quick = self._quick if is_plain or self._extended is None else None
        asked = topic, queue_id, offset, max_count, max_bytes, tags, record, scan_max
        if quick is not None:
            found = quick.get(*asked, may_wait)
            if found is not None:
                return found
        queue = self._queues.get(topic, queue_id)
        if queue is None:
            return GetResult(GetStatus.NO_MATCHED_LOGIC_QUEUE, 0, 0, 0)
        open_files = self._queues.open_files
        max_offset = self._hidden.end_of(queue)
        min_offset = queue.min_offset(self._log.start, open_files)
        if offset < min_offset or offset >= max_offset:
            return outside(offset, min_offset, max_offset, queue.next_offset)
        if not (may_wait or self._cold.is_recent(queue, offset)):
            self._refuse_to_wait(queue, offset, max_count, max_bytes, tags, is_plain, scan_max)
            if quick is not None:
                found = quick.get(*asked, True)
                if found is not None:
                    return found
        if is_plain:
            found = self._read_plain(queue, offset, max_count, max_bytes, min_offset, max_offset)
            if found is not None:
                return found
            # Every entry matches, so no more are read than can be returned.
            scan_count = self._plain_count(max_count)
        else:
            scan_count = _scan_count(max_count, scan_max)
            if self._extended is not None:
                tags = self._extended.entry_filter(queue, tags, unit)
        data = queue.read(offset, min(max(scan_count, 1), max_offset - offset), open_files)
        if not data:
            return found_null(self._queues, offset, min_offset, max_offset)
        wanted = Wanted(tags, self._code_min, record)
        collected = collect(
            self._log,
            self._repair,
            self._soundness,
            queue,
            data,
            offset,
            wanted,
            self._limits(max_count, max_bytes),
        )
        return GetResult(
            collected.status,
            offset + collected.examined,
            min_offset,
            max_offset,
            collected.parts,
            len(collected.sizes),
            collected.total_bytes,
            not self.is_in_memory(collected.last_physical),
        )

    def _refuse_to_wait(
        self,
        queue: ConsumeQueue,
        offset: int,
        max_count: int,
        max_bytes: int,
        tags: TagFilter | None,
        is_plain: bool,
        scan_max: int,
    ) -> None:
        """Raises NotInMemory."""
        if is_plain:
            config = self._config
            count = self._plain_count(max_count)
            max_bytes = min(max_bytes, max(config.memory_bytes_max, config.disk_bytes_max))
        else:
            # Among the records that nobody wants, any number of bytes is looked at.
            count, max_bytes = _scan_count(max_count, scan_max), LOAD_BYTES_MAX
        if missing := self._cold.missing(queue, offset, count, max_bytes, tags):
            raise NotInMemory(missing)

    def _plain_count(self, max_count: int) -> int:
        config = self._config
        return min(max_count, max(config.memory_count_max, config.disk_count_max))

    def _read_plain(
        self,
        queue: ConsumeQueue,
        offset: int,
        max_count: int,
        max_bytes: int,
        min_offset: int,
        max_offset: int,
    ) -> GetResult | None:
        """The usual read, in half the time of ``collect``: everything is wanted, is in memory, lies in one log file
        and keeps within the limits. None when any of this is not so."""
        config = self._config
        count = min(max(max_count, 1), config.memory_count_max, max_offset - offset)
        data = queue.read(offset, count, self._queues.open_files)
        count = len(data) // ENTRY_BYTES
        if not count:
            return None
        numbers: tuple[int, ...] = _places(count).unpack_from(data)
        starts, sizes = numbers[::2], numbers[1::2]
        first, last_start = starts[0], starts[-1]
        # A gap in the queue has an offset of 0; a truncated file also has a size of 0.
        if min(starts) != first or min(sizes) <= 0:
            return None
        span = last_start + sizes[-1] - first
        log_end = self._log.end
        whole = self._log.view(first, span)
        if whole is None or first < log_end - self._cached_bytes:
            return None
        total = sum(sizes)
        if total > config.memory_bytes_max or total > max_bytes:
            return None
        soundness = self._soundness
        needs_check = first < soundness.hot_from and not soundness.are_known(starts)
        if total == span:
            # Each starts where the previous one ends.
            parts = [whole]
            if not ends_right(queue, offset + count - 1, whole, last_start - first):
                return None
        else:
            parts = [
                whole[start - first : start - first + size]
                for start, size in zip(starts, sizes, strict=True)
            ]
            # What does not end within the whole, or belongs to another queue, needs the careful way.
            if sum(map(len, parts)) != total:
                return None
            is_doubtful = offset < queue.trusted_from and not needs_check
            if is_doubtful and not all_lead_to(queue, offset, parts, sizes):
                return None
        if needs_check:
            records = parts
            if len(parts) < count:
                records = [
                    whole[start - first : start - first + size]
                    for start, size in zip(starts, sizes, strict=True)
                ]
            if not soundness.are_sound(queue, offset, starts, sizes, records):
                return None
        return GetResult(
            GetStatus.FOUND,
            offset + count,
            min_offset,
            max_offset,
            parts,
            count,
            total,
            log_end - last_start > self._cached_bytes,
        )

    def _limits(self, max_count: int, max_bytes: int) -> Limits:
        config = self._config
        return Limits(
            memory_count=min(config.memory_count_max, max_count),
            memory_bytes=min(config.memory_bytes_max, max_bytes),
            disk_count=min(config.disk_count_max, max_count),
            disk_bytes=min(config.disk_bytes_max, max_bytes),
            on_disk_below=self._log.end - self._cached_bytes,
        )

    def min_offset(self, topic: str, queue_id: int) -> int:
        queue = self._queues.get(topic, queue_id)
        return queue.min_offset(self._log.start, self._queues.open_files) if queue else 0

    def max_offset(self, topic: str, queue_id: int) -> int:
        queue = self._queues.get(topic, queue_id)
        return self._hidden.end_of(queue) if queue else 0

    def entries(
        self, topic: str, queue_id: int, offset: int, count: int
    ) -> list[tuple[int, int, int]]:
        queue = self._queues.get(topic, queue_id)
        if queue is None or offset < 0:
            return []
        data = self._repair.read(queue, offset, count)
        if ADDRESS_BYTE in data[TAGS_CODE_AT::ENTRY_BYTES]:
            return self._resolved(queue, data)
        return list(ENTRY.iter_unpack(data))

    def units(self, topic: str, queue_id: int, offset: int, count: int) -> list[Unit | None]:
        queue = self._queues.get(topic, queue_id)
        if queue is None or offset < 0:
            return []
        data = queue.read(offset, count, self._queues.open_files)
        if self._extended is None:
            return [None] * (len(data) // ENTRY_BYTES)
        find = self._extended.units(queue).unit
        return [find(code) if is_address(code) else None for *_, code in ENTRY.iter_unpack(data)]

    def store_time(self, topic: str, queue_id: int, queue_offset: int) -> int:
        queue = self._queues.get(topic, queue_id)
        return self._time_of(queue, queue_offset) if queue and queue_offset >= 0 else -1

    def offset_by_time(
        self, topic: str, queue_id: int, timestamp_ms: int, *, upper: bool = False
    ) -> int:
        """The first message stored at or after a time, or (``upper``) the last one stored at or before it.

        Beyond the last message: the maximum offset (``upper``: the last message). Before the first: the minimum.
        """
        queue = self._queues.get(topic, queue_id)
        if queue is None:
            return 0
        low = minimum = queue.min_offset(self._log.start, self._queues.open_files)
        high = self._hidden.end_of(queue)
        # Store times never decrease along a queue, so a binary search works.
        while low < high:
            middle = (low + high) // 2
            time = self._time_of(queue, middle)
            if time < timestamp_ms or (upper and time == timestamp_ms):
                low = middle + 1
            else:
                high = middle
        return max(low - 1, minimum) if upper else low

    def query(
        self, topic: str, key: str, max_count: int, begin_ms: int, end_ms: int
    ) -> QueryResult:
        """Records of a topic with a key that were stored within a time range, newest first."""
        index = self._index
        if index is None:
            return QueryResult([], 0, 0)
        parts: list[memoryview] = []
        for physical_offset in index.query(topic, key, max_count, begin_ms, end_ms):
            found = self._soundness.record(physical_offset)
            if found is not None and _carries(found, topic, key, begin_ms, end_ms):
                parts.append(found)
        return QueryResult(parts, index.last_update_ms, index.last_update_offset)

    def _resolved(self, queue: ConsumeQueue, data: bytes) -> list[tuple[int, int, int]]:
        """Entries with the codes from their units, for those that point to units."""
        units = self._extended.units(queue) if self._extended is not None else None
        entries: list[tuple[int, int, int]] = []
        for physical_offset, size_bytes, code in ENTRY.iter_unpack(data):
            tags_code = code
            if is_address(code):
                unit = units.unit(code) if units is not None else None
                tags_code = self._code_of(queue, physical_offset) if unit is None else unit[0]
            entries.append((physical_offset, size_bytes, tags_code))
        return entries

    def _code_of(self, queue: ConsumeQueue, physical_offset: int) -> int:
        """The code in the unit of a record, computed from the record; 0 if that is gone."""
        record = readable_record(self._log.record(physical_offset))
        if record is None:
            return 0
        return self._delay_levels.tags_code(
            queue.topic, record.properties_text, record.store_timestamp
        )

    def _time_of(self, queue: ConsumeQueue, queue_offset: int) -> int:
        data = self._repair.read(queue, queue_offset, 1)
        return self._log.store_timestamp(ENTRY.unpack(data)[0]) if data else -1


def _scan_count(max_count: int, scan_max: int) -> int:
    """How many entries are looked at if not all are wanted."""
    return min(max(SCAN_COUNT_MIN, max_count), scan_max)


def judged_code_min(extended: ExtendedConsumeQueues | None) -> int:
    """The lowest code of an entry that is passed to a filter.

    Values below all hashes are addresses of units. Without the extended queue they say nothing; the client checks the
    tag.
    """
    return TAG_HASH_MIN if extended is None else CODE_MIN


def outside(offset: int, min_offset: int, max_offset: int, next_offset: int) -> GetResult:
    """The result for an offset that is known to be outside the queue.

    Args:
        next_offset: where the queue ends with its hidden entries. Who is among these waits for them: he has read them
            at another broker.
    """
    if next_offset == 0:
        return GetResult(GetStatus.NO_MESSAGE_IN_QUEUE, 0, min_offset, max_offset)
    if offset < min_offset:
        return GetResult(GetStatus.OFFSET_TOO_SMALL, min_offset, min_offset, max_offset)
    if max_offset <= offset <= next_offset:
        return GetResult(GetStatus.OFFSET_OVERFLOW_ONE, offset, min_offset, max_offset)
    return GetResult(GetStatus.OFFSET_OVERFLOW_BADLY, max_offset, min_offset, max_offset)


def found_null(queues: ConsumeQueues, offset: int, min_offset: int, max_offset: int) -> GetResult:
    """Entries below the maximum that no file holds: continue at the next file."""
    per_file = queues.file_bytes // ENTRY_BYTES
    following = (offset // per_file + 1) * per_file
    return GetResult(GetStatus.OFFSET_FOUND_NULL, following, min_offset, max_offset)


def _carries(found: memoryview, topic: str, key: str, begin_ms: int, end_ms: int) -> bool:
    """The index only has hashes and seconds, so check the record itself."""
    record = readable_record(found)
    return (
        record is not None
        and record.topic == topic
        and begin_ms <= record.store_timestamp <= end_ms
        and key in index_keys(record.properties_text)
    )
