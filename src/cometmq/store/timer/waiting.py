"""Messages waiting in the timer topic, in the order of delivery. Entries use memory only when they are almost due.

    far     entries in bucket files, ten minutes each, and in memory only until the next save
    near    the current bucket and the next one, in memory: 16 bytes per entry, by second
    now     the current second: a heap

Everything that is added also goes to its bucket's file, near or not: a restart reads the files, not the log. Owned by
the event loop; only the writing of what ``changes`` returned happens elsewhere.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import Final, NamedTuple

from cometmq.store.timer.bucket_files import BucketFiles
from cometmq.store.timer.entry import (
    ENTRY,
    ENTRY_BYTES,
    START,
    Position,
    is_recall,
    sort_key,
    wake_of,
)

BUCKET_MS: Final = 600_000
LEAD_MS: Final = 60_000
"""How long before its time a bucket is read into memory."""
CHUNK_ENTRIES: Final = 4096
"""Entries read in one step, which takes a few milliseconds."""
RECALL_KEEP_MS: Final = 1000
"""How long a recall stays valid after its time: RocketMQ's brokers know the time of a message only to the second."""


class Change(NamedTuple):
    """Entries to write: to which bucket, from which entry on."""

    bucket: int
    first: int
    data: bytes


class _Bucket:
    __slots__ = ("saved", "unsaved")

    def __init__(self, saved: int = 0) -> None:
        self.saved = saved
        """Entries in the file."""
        self.unsaved = bytearray()

    @property
    def count(self) -> int:
        return self.saved + len(self.unsaved) // ENTRY_BYTES


class _Load(NamedTuple):
    bucket: int
    first: int
    until: int


class Waiting:
    """``done`` is the last entry that was removed; nothing at or before it is ever returned again."""

    def __init__(
        self, files: BucketFiles, counts: dict[int, int] | None = None, done: Position = START
    ) -> None:
        self._files = files
        self._buckets = {bucket: _Bucket(count) for bucket, count in (counts or {}).items()}
        self.done = done
        self.count = sum(bucket.count for bucket in self._buckets.values())
        """Waiting entries; all entries of unread files count, although some may be done."""
        self._near_end = 0
        """Buckets before this one are in memory, or in ``_loads``."""
        self._loads: deque[_Load] = deque()
        self._slots: dict[int, bytearray] = {}
        self._seconds: list[int] = []
        self._open_end = 0
        """Seconds before this one are in the heap."""
        self._heap: list[Position] = []

    def add(self, wake_ms: int, physical_offset: int, *, is_recall: bool = False) -> None:
        """Add a record of the timer topic that has just been appended."""
        key = sort_key(wake_ms, is_recall=is_recall)
        if (key, physical_offset) <= self.done:
            # Whatever is added now comes after what is done.
            key = sort_key(wake_of(self.done[0]) + 1, is_recall=is_recall)
        number = wake_of(key) // BUCKET_MS
        bucket = self._buckets.get(number)
        if bucket is None:
            bucket = self._buckets[number] = _Bucket()
        bucket.unsaved += ENTRY.pack(key, physical_offset)
        self.count += 1
        if number < self._near_end:
            self._keep(key, physical_offset)

    def is_past(self, wake_ms: int) -> bool:
        """Whether everything due at this time is done."""
        return wake_ms <= wake_of(self.done[0])

    def approach(self, now_ms: int) -> bool:
        """Read a part of what will soon be due. Returns whether there is more to read now."""
        end = (now_ms + LEAD_MS) // BUCKET_MS + 1
        if end > self._near_end:
            coming = sorted(n for n in self._buckets if self._near_end <= n < end)
            self._near_end = end
            for number in coming:
                bucket = self._buckets[number]
                self._loads.append(_Load(number, 0, bucket.saved))
                self._take(bytes(bucket.unsaved))
        if self._loads:
            load = self._loads.popleft()
            # A bucket may have been dropped meanwhile, because all of it was done.
            if load.first < load.until and load.bucket in self._buckets:
                count = min(CHUNK_ENTRIES, load.until - load.first)
                data = self._files.read(load.bucket, load.first, count)
                self._take(data)
                read = len(data) // ENTRY_BYTES
                assert read, load
                self._loads.appendleft(load._replace(first=load.first + read))
        return bool(self._loads)

    def due(self, now_ms: int) -> Position | None:
        """The next entry in order, if its time has come. It stays until ``finish``."""
        if self._loads:
            # What has not been read yet might come first.
            now_ms = min(now_ms, self._loads[0].bucket * BUCKET_MS - 1)
        # One second at a time: a backlog from the broker's downtime need not be in the heap all at once.
        if not self._heap and self._seconds and self._seconds[0] <= now_ms // 1000:
            second = heapq.heappop(self._seconds)
            self._heap = list(ENTRY.iter_unpack(self._slots.pop(second)))
            heapq.heapify(self._heap)
            self._open_end = second + 1
        if self._heap and wake_of(self._heap[0][0]) <= now_ms:
            return self._heap[0]
        return None

    def finish(self, entry: Position) -> None:
        """The entry returned by ``due`` has been handled."""
        assert self._heap[0] == entry, (self._heap[0], entry)
        heapq.heappop(self._heap)
        self.count -= 1
        self.done = max(self.done, entry)

    def next_wake_ms(self) -> int | None:
        """When the next entry in memory is due, to the second; None if no entry is near."""
        if self._heap:
            return wake_of(self._heap[0][0])
        return self._seconds[0] * 1000 if self._seconds else None

    def due_before(self, until_ms: int) -> int:
        """Entries due by then: to the second for those in memory, to the bucket for the others."""
        near = len(self._heap) + sum(
            len(self._slots[second]) // ENTRY_BYTES
            for second in self._seconds
            if second * 1000 <= until_ms
        )
        far = sum(
            bucket.count
            for number, bucket in self._buckets.items()
            if number >= self._near_end and (number + 1) * BUCKET_MS <= until_ms
        )
        return near + far

    def done_before_ms(self, now_ms: int) -> int:
        """A time before which nothing waits, as far as that is known without reading files."""
        ends = [now_ms, self._near_end * BUCKET_MS]
        if self._loads:
            ends.append(self._loads[0].bucket * BUCKET_MS)
        if (wake := self.next_wake_ms()) is not None:
            ends.append(wake)
        return min(ends)

    def changes(self) -> list[Change]:
        """What is not in the files yet."""
        return [
            Change(number, bucket.saved, bytes(bucket.unsaved))
            for number, bucket in self._buckets.items()
            if bucket.unsaved
        ]

    def written(self, changes: list[Change]) -> None:
        """These changes are now in the files."""
        for change in changes:
            if (bucket := self._buckets.get(change.bucket)) is not None:
                bucket.saved += len(change.data) // ENTRY_BYTES
                del bucket.unsaved[: len(change.data)]

    def counts(self) -> dict[int, int]:
        """Entries by bucket, once ``changes`` are written. Completed buckets are dropped."""
        kept_from = (wake_of(self.done[0]) - RECALL_KEEP_MS) // BUCKET_MS
        for number in [n for n in self._buckets if n < kept_from]:
            del self._buckets[number]
        return {number: bucket.count for number, bucket in self._buckets.items()}

    def oldest(self) -> int | None:
        """The lowest physical offset of all waiting entries. Reads every file."""
        least: int | None = None
        for number, bucket in self._buckets.items():
            parts = [bytes(bucket.unsaved)]
            first = 0
            while first < bucket.saved:
                data = self._files.read(number, first, bucket.saved - first)
                parts.append(data)
                first += len(data) // ENTRY_BYTES
            for part in parts:
                places = [entry[1] for entry in ENTRY.iter_unpack(part) if entry > self.done]
                if places and (least is None or min(places) < least):
                    least = min(places)
        return least

    def _take(self, data: bytes) -> None:
        done = self.done
        recalls_from = sort_key(wake_of(done[0]) - RECALL_KEEP_MS, is_recall=True)
        for entry in ENTRY.iter_unpack(data):
            # A recall that is done may apply to an entry that is not.
            if entry > done or (is_recall(entry[0]) and entry[0] >= recalls_from):
                self._keep(*entry)
            else:
                self.count -= 1

    def _keep(self, key: int, physical_offset: int) -> None:
        second = wake_of(key) // 1000
        if second < self._open_end:
            heapq.heappush(self._heap, (key, physical_offset))
            return
        slot = self._slots.get(second)
        if slot is None:
            slot = self._slots[second] = bytearray()
            heapq.heappush(self._seconds, second)
        slot += ENTRY.pack(key, physical_offset)

    def __repr__(self) -> str:
        near = len(self._heap) + sum(map(len, self._slots.values())) // ENTRY_BYTES
        return f"<Waiting {self.count} entries, {near} near, {len(self._buckets)} buckets>"
