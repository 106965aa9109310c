"""Consume queues with an extension: for each entry, which groups' filters match the message.

    consumequeue/<topic>/<queue>/...        the usual entries; the code of each is the address of a unit
    consumequeue_ext/<topic>/<queue>/...    the units, see ``extended_queue``

The tag's hash moves into the unit. Units are only an optimisation: without one, the record decides. An entry is never
on disk before its unit, so a crash loses units only together with entries, and both are rebuilt from the log.

Thread rule: the owner of the store, except ``sync``, which the flusher calls.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection
from typing import Final

from cometmq.base.errors import CorruptFile
from cometmq.base.ports import Files
from cometmq.model.messages.record import BadRecord, properties_text
from cometmq.model.names import stored_topic_fault
from cometmq.store.files.file_names import check_size, starts_of
from cometmq.store.files.queue_entry import (
    ADDRESS_MAX,
    ENTRY,
    ENTRY_BYTES,
    FILLER_SIZE,
    TAGS_CODE_AT,
)
from cometmq.store.log.commit_log import CommitLog
from cometmq.store.queues.consume_queue import ConsumeQueue
from cometmq.store.queues.consume_queues import SYNCED_SINGLY_MAX, ConsumeQueues, Written
from cometmq.store.queues.extended_queue import (
    ADDRESS_BYTE,
    END_BYTES,
    OFFSET_MAX,
    UNIT_BYTES_MAX,
    UNIT_BYTES_MIN,
    ExtendedQueue,
    Unit,
    UnitReader,
    address_of,
    encode_unit,
    is_address,
    offset_of,
)
from cometmq.store.store_config import ConsumeQueueConfig

logger = logging.getLogger("cometmq.store")

SETTING: Final = "mappedFileSizeConsumeQueueExt"
_SCAN_COUNT: Final = 65_536
WAITING_BYTES_MAX: Final = 8 << 20
"""Bytes of units kept in memory, for all queues together, before they are written with their entries."""

FilterBits = Callable[[str, str], bytes]
"""Topic and properties of a message -> the bits of the groups that want it; empty if none are calculated."""

TagFilter = Callable[[int], bool]
UnitFilter = Callable[[int, bytes], bool]
"""Store time and bits of a message -> whether it may be wanted."""


def no_bits(topic: str, properties: str) -> bytes:
    return b""


class ExtendedConsumeQueues(ConsumeQueues):
    def __init__(
        self,
        directory: str,
        extended_directory: str,
        config: ConsumeQueueConfig,
        files: Files,
        log: CommitLog,
        filter_bits: FilterBits,
    ) -> None:
        super().__init__(directory, config, files)
        self.extended_directory = extended_directory
        self.before_rebuild: Callable[[], None] = _nothing
        """Called before queues are deleted because their units are lost: the checkpoint's guarantees no longer hold."""
        self._unit_file_bytes = config.extended_file_bytes
        self._log = log
        self._filter_bits = filter_bits
        self._rows: dict[ConsumeQueue, ExtendedQueue] = {}
        self._ownerless: list[str] = []
        self._waiting_bytes = 0
        self._is_failing = False
        # What the flusher has to sync. The two ends of a deque may be used from different threads.
        self._dirty_units: deque[str] = deque()
        self._changed_unit_directories: deque[str] = deque()
        self._unit_epoch = 0

    def append(
        self, queue: ConsumeQueue, physical_offset: int, size_bytes: int, tags_code: int
    ) -> None:
        if size_bytes != FILLER_SIZE:
            unit = self._unit_of(queue.topic, physical_offset, size_bytes, tags_code)
            tags_code = self._add_unit(queue, unit)
        super().append(queue, physical_offset, size_bytes, tags_code)

    def append_batches(self, batches: list[tuple[ConsumeQueue, bytearray]]) -> None:
        for queue, entries in batches:
            for entry in ENTRY.iter_unpack(entries):
                self.append(queue, *entry)

    @property
    def is_write_due(self) -> bool:
        return super().is_write_due or self._waiting_bytes >= WAITING_BYTES_MAX

    def units(self, queue: ConsumeQueue) -> UnitReader:
        return UnitReader(self._row(queue), self.open_files)

    def entry_filter(
        self, queue: ConsumeQueue, tags: TagFilter | None, unit: UnitFilter | None
    ) -> TagFilter | None:
        """Evaluates both filters for the code of an entry, whether an address or not; None accepts everything."""
        if tags is None and unit is None:
            return None
        find = self.units(queue).unit

        def wants(code: int) -> bool:
            if code > ADDRESS_MAX:
                return tags is None or tags(code)
            found = find(code)
            if found is None:
                # The record decides, or the client.
                return True
            tags_code, store_timestamp, bits = found
            if tags is not None and not tags(tags_code):
                return False
            return unit is None or unit(store_timestamp, bits)

        return wants

    def load(self, *, is_clean: bool) -> list[tuple[ConsumeQueue, int]]:
        loaded = super().load(is_clean=is_clean)
        for topic in self._names(self.extended_directory):
            topic_directory = f"{self.extended_directory}/{topic}"
            if stored_topic_fault(topic):
                raise CorruptFile(topic_directory, "not the name of a topic", "Move it elsewhere.")
            for name in self._names(topic_directory):
                directory = f"{topic_directory}/{name}"
                if not (name.isascii() and name.isdecimal() and str(int(name)) == name):
                    raise CorruptFile(directory, "not the number of a queue", "Move it elsewhere.")
                queue = self.get(topic, int(name))
                if queue is None or queue.first_start < 0:
                    self._ownerless.append(directory)
                else:
                    self._rows[queue] = self._load_row(directory, is_clean)
        return loaded

    def settled(self) -> Collection[ConsumeQueue]:
        for directory in self._ownerless:
            self._remove_tree(directory)
        self._ownerless.clear()
        lost = [queue for queue in self.all() if not self._resume(queue)]
        if lost:
            self.before_rebuild()
        for queue in lost:
            logger.warning("units lost topic=%s queue=%d", queue.topic, queue.queue_id)
            # From the end, because a power loss may bring files back: a queue that begins with a later file would
            # look like one whose first messages have expired.
            self.truncate(queue, queue.first_start // ENTRY_BYTES, queue.last_start)
            self.delete_queue(queue)
        return lost

    def sync(self) -> Written:
        promise = super().sync()
        # Collected after the entries, so all units that the guarantee covers are included.
        paths = {self._dirty_units.popleft() for _ in range(len(self._dirty_units))}
        directories = {
            self._changed_unit_directories.popleft()
            for _ in range(len(self._changed_unit_directories))
        }
        # From here on, a write marks its file again: this sync may be too early for it.
        self._unit_epoch += 1
        if len(paths) > SYNCED_SINGLY_MAX:
            self._files.sync_partition(self.extended_directory)
        else:
            self._sync_singly(paths, directories)
        return promise

    def delete_topic(self, topic: str) -> int:
        count = super().delete_topic(topic)
        self._remove_tree(f"{self.extended_directory}/{topic}")
        return count

    def delete_queue(self, queue: ConsumeQueue) -> None:
        super().delete_queue(queue)
        self._remove_tree(self._unit_directory(queue))

    def expired_files(self, queue: ConsumeQueue, log_start: int) -> list[str]:
        expired = super().expired_files(queue, log_start)
        row = self._rows.get(queue)
        if row is None:
            return expired
        oldest = queue.entry(queue.min_offset(log_start, self.open_files), self.open_files)
        if oldest is None:
            unit_paths = [row.path(start) for start in row.expire(row.end)]
        elif is_address(oldest[2]):
            unit_paths = [row.path(start) for start in row.expire(offset_of(oldest[2]))]
        else:
            # Stored while there were no units: it is unknown where the units of earlier messages end.
            unit_paths = []
        for path in unit_paths:
            self.open_files.drop(path)
        return expired + unit_paths

    def close(self) -> None:
        super().close()
        self._rows.clear()

    def _unit_of(self, topic: str, physical_offset: int, size_bytes: int, tags_code: int) -> Unit:
        """Computed from the record, which is already in the log, so that a put and the follower get the same."""
        bits = b""
        record = self._log.view(physical_offset, size_bytes)
        if record is not None:
            try:
                bits = self._filter_bits(topic, properties_text(record))
            except BadRecord:
                bits = b""
            except Exception:  # a filter must not keep a stored message out of its queue
                if not self._is_failing:
                    logger.exception("filter bits not calculated topic=%s", topic)
                self._is_failing = True
            else:
                self._is_failing = False
        if UNIT_BYTES_MIN + len(bits) + END_BYTES > min(self._unit_file_bytes, UNIT_BYTES_MAX):
            bits = b""
        return Unit(tags_code, self._log.store_timestamp(physical_offset), bits)

    def _add_unit(self, queue: ConsumeQueue, unit: Unit) -> int:
        row = self._row(queue)
        before = len(row.waiting)
        address = address_of(row.append(encode_unit(unit)))
        self._waiting_bytes += len(row.waiting) - before
        return address

    def _row(self, queue: ConsumeQueue) -> ExtendedQueue:
        row = self._rows.get(queue)
        if row is None:
            directory = self._unit_directory(queue)
            row = self._rows[queue] = ExtendedQueue(directory, self._unit_file_bytes)
        return row

    def _unit_directory(self, queue: ConsumeQueue) -> str:
        return f"{self.extended_directory}/{queue.topic}/{queue.queue_id}"

    def _write(self, queue: ConsumeQueue) -> None:
        row = self._rows.get(queue)
        if row is not None and row.waiting:
            self._write_units(row)
        super()._write(queue)

    def _write_units(self, row: ExtendedQueue) -> None:
        is_new = row.first_start < 0
        unit_bytes = len(row.waiting)
        starts = row.write_waiting(self.open_files)
        self._waiting_bytes -= unit_bytes
        if row.dirty_epoch == self._unit_epoch and len(starts) == 1:
            return
        row.dirty_epoch = self._unit_epoch
        self._dirty_units.extend(row.path(start) for start in starts)
        self._changed_unit_directories.append(row.directory)
        if is_new:
            topic_directory = row.directory.rpartition("/")[0]
            self._changed_unit_directories.extend((self.extended_directory, topic_directory))

    def _drop_files(self, queue: ConsumeQueue) -> None:
        super()._drop_files(queue)
        row = self._rows.pop(queue, None)
        if row is None:
            return
        self._waiting_bytes -= len(row.waiting)
        for start in range(max(row.first_start, 0), row.written, self._unit_file_bytes):
            self.open_files.drop(row.path(start))

    def _load_row(self, directory: str, is_clean: bool) -> ExtendedQueue:
        names = self._names(directory)
        starts = starts_of(names, directory, self._unit_file_bytes, SETTING)
        row = ExtendedQueue(directory, self._unit_file_bytes)
        sizes = [self._files.size(row.path(start)) for start in starts]
        if not is_clean and 0 in sizes:
            kept = sizes.index(0)
            for start in reversed(starts[kept:]):
                self._files.remove(row.path(start))
            del starts[kept:], sizes[kept:]
        for start, size_bytes in zip(starts, sizes, strict=True):
            check_size(row.path(start), size_bytes, self._unit_file_bytes, SETTING)
        if starts and starts[-1] >= OFFSET_MAX:
            raise CorruptFile(
                row.path(starts[-1]), f"beyond the last offset {OFFSET_MAX}", "Move it elsewhere."
            )
        if starts:
            row.first_start = starts[0]
            row.end = starts[-1] + self._unit_file_bytes
        return row

    def _resume(self, queue: ConsumeQueue) -> bool:
        """Find the end of a queue's units, and wipe what follows. False: some that it needs are lost."""
        first = queue.min_offset(self._log.start, self.open_files)
        newest = self._newest_address(queue, first)
        if newest is None:
            # Nothing points to any existing unit.
            if (row := self._rows.pop(queue, None)) is not None:
                self._remove_tree(row.directory)
            return True
        row = self._row(queue)
        unit = row.unit(offset_of(newest), self.open_files)
        oldest = queue.entry(first, self.open_files)
        if unit is None or oldest is None:
            return False
        if is_address(oldest[2]) and row.unit(offset_of(oldest[2]), self.open_files) is None:
            return False
        self._cut(row, offset_of(newest) + unit.size_bytes)
        return True

    def _newest_address(self, queue: ConsumeQueue, first: int) -> int | None:
        """The address in the last entry that points to a unit: nearly always the last entry."""
        end = queue.next_offset
        while end > first:
            start = max(end - _SCAN_COUNT, first)
            data = queue.read(start, end - start, self.open_files)
            at = data[TAGS_CODE_AT::ENTRY_BYTES].rfind(ADDRESS_BYTE) * ENTRY_BYTES
            if at >= 0:
                return int(ENTRY.unpack_from(data, at)[2])
            end = start
        return None

    def _cut(self, row: ExtendedQueue, end: int) -> None:
        """Make ``end`` the position of the next unit. What follows must never be mistaken for units."""
        last_start = row.end - self._unit_file_bytes
        end_start = end - end % self._unit_file_bytes
        for start in range(last_start, end_start, -self._unit_file_bytes):
            self.open_files.remove(row.path(start))
            self._changed_unit_directories.append(row.directory)
        self.open_files.get(row.path(end_start)).zero_from(end - end_start)
        self._dirty_units.append(row.path(end_start))
        row.end = end


def _nothing() -> None:
    return None
