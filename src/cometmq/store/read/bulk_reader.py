"""Reads megabytes of one queue at once, for readers of whole ranges.

As in ``reader``, the results are views of the mapped log, here with the sizes of the records. One read is bounded in
bytes, records and entries looked at, so that the owner of the store is soon free for others.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from itertools import accumulate, compress, islice, pairwise
from operator import add, ne
from typing import Final

import msgspec

from cometmq.store.files.queue_entry import (
    ENTRY_BYTES,
    ENTRY_WORDS,
    SIZE_WORD,
    STARTS,
)
from cometmq.store.log.commit_log import CommitLog
from cometmq.store.queues.consume_queue import ConsumeQueue
from cometmq.store.queues.consume_queues import ConsumeQueues
from cometmq.store.queues.extended_queues import ExtendedConsumeQueues, TagFilter, UnitFilter
from cometmq.store.queues.queue_check import ends_right
from cometmq.store.queues.queue_repair import QueueRepair
from cometmq.store.read.cold import LOAD_BYTES_MAX, ColdReads, NotInMemory
from cometmq.store.read.collect import collect
from cometmq.store.read.hidden import Hidden
from cometmq.store.read.read_results import GetResult, GetStatus
from cometmq.store.read.reader import found_null, judged_code_min, outside
from cometmq.store.read.soundness import Soundness
from cometmq.store.read.wanted import Limits, RecordFilter, Wanted

_STEP: Final = 1024
"""Number of records whose sizes are added up at once."""


class BulkLimits(msgspec.Struct, frozen=True):
    """The first record is always returned, however large; the limits apply from the second on."""

    max_bytes: int
    max_count: int
    scan_max: int


class BulkResult(GetResult):
    """``sizes`` holds the size of each record as four bytes, big-endian."""

    sizes: bytes = b""


class BulkReader:
    def __init__(
        self,
        log: CommitLog,
        queues: ConsumeQueues,
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
        may_wait: bool = True,
    ) -> BulkResult:
        queue = self._queues.get(topic, queue_id)
        if queue is None:
            return BulkResult(GetStatus.NO_MATCHED_LOGIC_QUEUE, 0, 0, 0)
        open_files = self._queues.open_files
        max_offset = self._hidden.end_of(queue)
        min_offset = queue.min_offset(self._log.start, open_files)
        if offset < min_offset or offset >= max_offset:
            return _without_records(outside(offset, min_offset, max_offset, queue.next_offset))
        is_plain = tags is None and record is None
        scan_count = limits.max_count if is_plain else limits.scan_max
        scan_count = min(scan_count, min(end_offset, max_offset) - offset)
        if not may_wait and not self._cold.is_recent(queue, offset):
            # Among the records that nobody wants, any number of bytes is looked at.
            max_bytes = limits.max_bytes if is_plain else LOAD_BYTES_MAX
            if missing := self._cold.missing(queue, offset, scan_count, max_bytes, tags):
                raise NotInMemory(missing)
        data = queue.read(offset, scan_count, open_files)
        if not data:
            return _without_records(found_null(self._queues, offset, min_offset, max_offset))
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
        """Everything is wanted: works by stretches of the log, not by entry. None if some records are not there."""
        sizes = _sizes_within(data, max_bytes)
        if sizes is None:
            return None
        count = len(sizes)
        starts = [start for (start,) in STARTS.iter_unpack(memoryview(data)[: count * ENTRY_BYTES])]
        if min(starts) < self._log.start:
            return None
        ends = list(map(add, starts, sizes))
        # A new stretch begins where a record does not start at the end of the previous one.
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
        if not self._are_sound(queue, offset, starts, sizes, parts, edges):
            return None
        total = sum(sizes)
        return BulkResult(
            GetStatus.FOUND, count, 0, 0, parts, count, total, sizes=_big_endian(sizes)
        )

    def _are_sound(
        self,
        queue: ConsumeQueue,
        offset: int,
        starts: list[int],
        sizes: array[int],
        parts: list[memoryview],
        edges: list[int],
    ) -> bool:
        soundness = self._soundness
        if min(starts) >= soundness.hot_from or soundness.are_known(starts):
            return True
        if 2 * len(parts) <= len(sizes) == sizes.count(sizes[0]) and soundness.are_alike_and_sound(
            queue, offset, starts, sizes[0], parts
        ):
            return True
        records = parts
        if len(parts) < len(starts):
            records = [
                part[start - starts[first] : start - starts[first] + size]
                for part, (first, end) in zip(parts, pairwise(edges), strict=True)
                for start, size in zip(starts[first:end], sizes[first:end], strict=True)
            ]
        return soundness.are_sound(queue, offset, starts, sizes, records)

    def _collect(
        self,
        queue: ConsumeQueue,
        offset: int,
        data: bytes,
        limits: BulkLimits,
        tags: TagFilter | None,
        record: RecordFilter | None,
    ) -> BulkResult:
        wanted = Wanted(tags, self._code_min, record)
        count, size = limits.max_count, limits.max_bytes
        # Records on disk are worth as much here as those in memory.
        alike = Limits(count, size, count, size, on_disk_below=0)
        found = collect(
            self._log, self._repair, self._soundness, queue, data, offset, wanted, alike
        )
        return BulkResult(
            found.status,
            found.examined,
            0,
            0,
            found.parts,
            len(found.sizes),
            found.total_bytes,
            sizes=_big_endian(array("i", found.sizes)),
        )


def _sizes_within(data: bytes, max_bytes: int) -> array[int] | None:
    """Sizes of the first records within ``max_bytes`` in total, at least one; None if an entry has no valid size.

    If the bytes are the limit, most entries are not looked at.
    """
    sizes = array("i")
    total = 0
    for at in range(0, len(data), _STEP * ENTRY_BYTES):
        words = array("i", data[at : at + _STEP * ENTRY_BYTES])
        if sys.byteorder == "little":
            words.byteswap()
        step = words[SIZE_WORD::ENTRY_WORDS]
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


def _big_endian(sizes: array[int]) -> bytes:
    if sys.byteorder == "little":
        sizes.byteswap()
    return sizes.tobytes()
