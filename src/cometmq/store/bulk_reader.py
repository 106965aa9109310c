"""Reading megabytes of one queue in one go, for readers of whole ranges.

As in ``reader``, what is found are views of the mapped log; the sizes of the records come along. One read is bounded by
bytes, records and entries looked at, so that the owner of the store is soon free for somebody else.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_right
from itertools import accumulate, compress, islice, pairwise
from operator import add, ne
from typing import Final

import msgspec

from cometmq.store.commit_log import CommitLog
from cometmq.store.consume_queue import ENTRY, ENTRY_BYTES, ConsumeQueue
from cometmq.store.consume_queues import ConsumeQueues
from cometmq.store.extended_queues import ExtendedConsumeQueues, TagFilter, UnitFilter
from cometmq.store.get import GetResult, GetStatus
from cometmq.store.queue_check import ends_right, leads_to
from cometmq.store.queue_repair import Outcome, QueueRepair
from cometmq.store.reader import RecordFilter, found_null, judged_code_min, outside

# An entry is five words of four bytes: two of the offset, the size, two of the tag's hash.
_ENTRY_WORDS: Final = 5
_SIZE_WORD: Final = 2
_START: Final = struct.Struct(">q12x")
_STEP: Final = 1024
"""Records whose sizes are added up at once."""


class BulkLimits(msgspec.Struct, frozen=True):
    """The first record is always given, however large; from the second on the limits count."""

    max_bytes: int
    max_count: int
    scan_max: int


class BulkResult(GetResult):
    """``sizes`` is the size of each record as four bytes, big end first."""

    sizes: bytes = b""


class BulkReader:
    def __init__(self, log: CommitLog, queues: ConsumeQueues, repair: QueueRepair) -> None:
        self._log = log
        self._repair = repair
        self._queues = queues
        self._extended = queues if isinstance(queues, ExtendedConsumeQueues) else None
        self._code_min = judged_code_min(self._extended)

    def get(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        end_offset: int,
        limits: BulkLimits,
        tags: TagFilter | None,
        record: RecordFilter | None,
        unit: UnitFilter | None = None,
    ) -> BulkResult:
        queue = self._queues.get(topic, queue_id)
        if queue is None:
            return BulkResult(GetStatus.NO_MATCHED_LOGIC_QUEUE, 0, 0, 0)
        open_files = self._queues.open_files
        max_offset = queue.next_offset
        min_offset = queue.min_offset(self._log.start, open_files)
        if offset < min_offset or offset >= max_offset:
            return _without_records(outside(offset, min_offset, max_offset))
        is_plain = tags is None and record is None
        scan_count = limits.max_count if is_plain else limits.scan_max
        data = queue.read(offset, min(scan_count, end_offset - offset), open_files)
        if not data:
            return _without_records(found_null(self._queues, queue, offset, min_offset))
        if self._extended is not None:
            tags = self._extended.entry_filter(queue, tags, unit)
        result = self._everything(queue, offset, data, limits.max_bytes) if is_plain else None
        if result is None:
            result = self._collect(queue, offset, data, limits, tags, record)
        result.next_offset += offset
        result.min_offset = min_offset
        result.max_offset = max_offset
        return result

    def _everything(
        self, queue: ConsumeQueue, offset: int, data: bytes, max_bytes: int
    ) -> BulkResult | None:
        """All are wanted: no entry is looked at by itself, each stretch of the log is. None when some are not there."""
        sizes = _sizes_within(data, max_bytes)
        if sizes is None:
            return None
        count = len(sizes)
        starts = [start for (start,) in _START.iter_unpack(memoryview(data)[: count * ENTRY_BYTES])]
        if min(starts) < self._log.start:
            return None
        ends = list(map(add, starts, sizes))
        # Where one does not start where the one before it ends, another stretch begins.
        edges = [0, *compress(range(1, count), map(ne, islice(starts, 1, None), ends)), count]
        parts: list[memoryview] = []
        is_trusted = offset >= queue.trusted_from
        for first, end in pairwise(edges):
            part = self._log.view(starts[first], ends[end - 1] - starts[first])
            if part is None:
                return None
            last_at = starts[end - 1] - starts[first]
            if not is_trusted and not ends_right(queue, offset + end - 1, part, last_at):
                return None
            parts.append(part)
        total = sum(sizes)
        if sys.byteorder == "little":
            sizes.byteswap()
        return BulkResult(GetStatus.FOUND, count, 0, 0, parts, count, total, sizes=sizes.tobytes())

    def _collect(
        self,
        queue: ConsumeQueue,
        offset: int,
        data: bytes,
        limits: BulkLimits,
        tags: TagFilter | None,
        record: RecordFilter | None,
    ) -> BulkResult:
        log = self._log
        view = log.view
        log_start = log.start
        log_end = log.end
        code_min = self._code_min
        parts: list[memoryview] = []
        sizes = array("i")
        status = GetStatus.NO_MATCHED_MESSAGE
        max_bytes, max_count = limits.max_bytes, limits.max_count
        part_start = part_end = -1
        total = examined = 0
        for physical_offset, size_bytes, tags_code in ENTRY.iter_unpack(data):
            if sizes and (total + size_bytes > max_bytes or len(sizes) >= max_count):
                break
            examined += 1
            found = None
            if log_start <= physical_offset and 0 < size_bytes <= log_end - physical_offset:
                if tags is not None and tags_code >= code_min and not tags(tags_code):
                    continue
                found = view(physical_offset, size_bytes)
            if found is None or not leads_to(queue, offset + examined - 1, found):
                mended = self._repair.mend(queue, offset + examined - 1)
                if mended is Outcome.LATER:
                    # All before it is given; it is asked for again.
                    examined -= 1
                    break
                if mended is Outcome.NONE:
                    if not sizes:
                        status = GetStatus.MESSAGE_WAS_REMOVING
                    continue
                physical_offset, size_bytes, tags_code, found = mended
                if tags is not None and tags_code >= code_min and not tags(tags_code):
                    continue
            if record is not None and not record(found):
                continue
            if physical_offset != part_end:
                if part_end >= 0:
                    _add(parts, view(part_start, part_end - part_start))
                part_start = physical_offset
            part_end = physical_offset + size_bytes
            total += size_bytes
            sizes.append(size_bytes)
        if part_end >= 0:
            _add(parts, view(part_start, part_end - part_start))
        count = len(sizes)
        if sys.byteorder == "little":
            sizes.byteswap()
        return BulkResult(
            GetStatus.FOUND if count else status,
            examined,
            0,
            0,
            parts,
            count,
            total,
            sizes=sizes.tobytes(),
        )


def _sizes_within(data: bytes, max_bytes: int) -> array[int] | None:
    """Sizes of the first records that have no more bytes together, one at least; None when an entry looked at has none.

    Most of the entries are not looked at when the bytes are what counts.
    """
    sizes = array("i")
    total = 0
    for at in range(0, len(data), _STEP * ENTRY_BYTES):
        words = array("i", data[at : at + _STEP * ENTRY_BYTES])
        if sys.byteorder == "little":
            words.byteswap()
        step = words[_SIZE_WORD::_ENTRY_WORDS]
        if min(step) <= 0:
            return None
        step_bytes = sum(step)
        if total + step_bytes > max_bytes:
            within = bisect_right(list(accumulate(step)), max_bytes - total)
            return sizes + step[: within if sizes else max(within, 1)]
        sizes += step
        total += step_bytes
    return sizes


def _without_records(result: GetResult) -> BulkResult:
    return BulkResult(result.status, result.next_offset, result.min_offset, result.max_offset)


def _add(parts: list[memoryview], part: memoryview | None) -> None:
    # Each record of the part was there a moment ago, and only this thread takes log files away.
    assert part is not None
    parts.append(part)
