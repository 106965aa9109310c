"""One index file: from the hash of ``topic#key`` to the physical offsets of records.

    at                     width  field
    0                      8      store time of the first indexed record, ms
    8                      8      store time of the last one
    16                     8      physical offset of the first one
    24                     8      physical offset of the last one
    32                     4      slots in use
    36                     4      number of the next entry (the first is 1)
    40                     4 * s  slots: number of the newest entry of the slot, 0 for none
    40 + 4 * s             20 * e entries: key hash (4), physical offset (8), seconds since the first
                                  record (4), number of the slot's previous entry (4)

A full file holds e - 1 entries, because number 0 means "none". ``index_files`` manages the sequence of files.

New entries wait in memory and are written in groups: entries at once, then slots, then the header, which takes a while
(see ``index_slots``). Because of this order, a process that dies in between leaves entries and slots beyond the
header's count, never a count without entries; ``repair`` undoes them, and they are rebuilt from the log. Thread rule:
everything except ``sync`` belongs to the owner of the store.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from typing import Final

from cometmq.base.errors import CorruptFile
from cometmq.base.ports import File, Files
from cometmq.native.choice import twin
from cometmq.store.index.index_slots import PAGE_MASK, PAGE_SHIFT, SLOT_BYTES, IndexSlots, truncated

HEADER_BYTES: Final = 40
ENTRY_BYTES: Final = 20
SECONDS_MAX: Final = 0x7FFFFFFF
FIRST_SLOT: Final = HEADER_BYTES // SLOT_BYTES
"""The header counts as slots, too."""

ROUND_ENTRIES: Final = 65_536
"""Number of entries after which slots and header are written: by then nearly every page of the slots has changed."""
ROUND_LOG_BYTES: Final = 64 << 20
"""They are also written after this many bytes of the log, which a start after a kill has to read again."""
PAGES_AT_ONCE: Final = 32
"""Pages of slots written with each group of entries, about 40 us."""

_twin = twin("index")
_HEADER = struct.Struct(">qqqqii")
_ENTRY = struct.Struct(">iqii")
_pack_entry = _ENTRY.pack
_REPAIR_ENTRIES: Final = 4096

_HeaderFields = tuple[int, int, int, int, int, int]
NewEntry = tuple[int, int, int]
"""Key hash, physical offset and store timestamp of a record."""


def file_bytes(slot_count: int, entry_count: int) -> int:
    return HEADER_BYTES + SLOT_BYTES * slot_count + ENTRY_BYTES * entry_count


class IndexFile:
    """See the module. ``begin_ms``, ``end_ms`` and ``end_offset`` include entries that are still in memory."""

    __slots__ = (
        "_entries_at",
        "_entry_limit",
        "_file",
        "_first_waiting",
        "_is_round_under_way",
        "_slot_count",
        "_slots",
        "_slots_used",
        "_stated",
        "_to_state",
        "_waiting",
        "begin_ms",
        "begin_offset",
        "count",
        "end_ms",
        "end_offset",
    )

    def __init__(
        self, file: File, slot_count: int, entry_count: int, *, is_new: bool = False
    ) -> None:
        self._file = file
        self._slot_count = slot_count
        self._entry_limit = entry_count
        self._entries_at = HEADER_BYTES + SLOT_BYTES * slot_count
        self._slots = IndexSlots(file, FIRST_SLOT, slot_count, is_new=is_new)
        data = file.read_at(0, HEADER_BYTES)
        if len(data) != HEADER_BYTES:
            raise truncated(file)
        header: tuple[int, ...] = _HEADER.unpack(data)
        self.begin_ms, self.end_ms, self.begin_offset, self.end_offset = header[:4]
        self._slots_used, count = header[4:]
        # A file that was created but never written has a count of 0; numbers start at 1 nevertheless.
        self.count = max(count, 1)
        self._first_waiting = self.count
        self._waiting = bytearray()
        # The header in the file, and the one to write when the round of the slots is finished.
        self._stated = self._to_state = self._header()
        self._is_round_under_way = False
        if not (self.count <= entry_count and 0 <= self._slots_used <= slot_count):
            raise CorruptFile(
                file.path,
                f"its header counts {count - 1} entries in {self._slots_used} slots, "
                f"but it has room for {entry_count - 1} in {slot_count}",
                "Move it out of the index directory; queries by key then miss what it held.",
            )

    @classmethod
    def create(cls, files: Files, path: str, slot_count: int, entry_count: int) -> IndexFile:
        file = files.create(path, file_bytes(slot_count, entry_count), allocate=False)
        return cls(file, slot_count, entry_count, is_new=True)

    @classmethod
    def open(cls, files: Files, path: str, slot_count: int, entry_count: int) -> IndexFile:
        expected = file_bytes(slot_count, entry_count)
        if (size := files.size(path)) != expected:
            raise CorruptFile(
                path,
                f"an index file of {size} bytes where {expected} are expected",
                "Set maxHashSlotNum and maxIndexNum to what it was written with, or move it away.",
            )
        file = files.open(path, mapped=False)
        try:
            return cls(file, slot_count, entry_count)
        except BaseException:
            file.close()
            raise

    @property
    def path(self) -> str:
        return self._file.path

    @property
    def room(self) -> int:
        """Entries that still fit."""
        return self._entry_limit - self.count

    @property
    def is_written(self) -> bool:
        """Whether everything is in the file."""
        return self._stated[5] == self.count

    def check_whole(self) -> None:
        """Raises CorruptFile if somebody has truncated the file."""
        if not self._file.is_whole():
            raise truncated(self._file)

    @property
    def is_empty(self) -> bool:
        return self.count == 1

    def add(self, entries: list[NewEntry]) -> None:
        """Add records under their keys, in the order of the log; the caller has checked ``room``."""
        if not entries:
            return
        number = self.count
        assert number + len(entries) <= self._entry_limit, self
        if number == 1:
            _, self.begin_offset, self.begin_ms = entries[0]
        begin_ms = self.begin_ms
        slot_count = self._slot_count
        pages, changed, load = self._slots.pages, self._slots.changed, self._slots.load
        waiting = self._waiting
        timestamp = seconds = -1
        for key_hash, physical_offset, store_timestamp in entries:
            if store_timestamp != timestamp:
                timestamp = store_timestamp
                seconds = min(max((timestamp - begin_ms) // 1000, 0), SECONDS_MAX)
            slot = key_hash % slot_count + FIRST_SLOT
            page_number = slot >> PAGE_SHIFT
            page = pages[page_number] or load(page_number)
            slot &= PAGE_MASK
            previous = page[slot]
            if not 0 < previous < number:
                previous = 0
                self._slots_used += 1
            waiting += _pack_entry(key_hash, physical_offset, seconds, previous)
            page[slot] = number
            changed[page_number] = True
            number += 1
        self.count = number
        _, self.end_offset, self.end_ms = entries[-1]

    def add_hashed(
        self, hashes: array[int], physical_offsets: array[int], store_timestamp: int
    ) -> None:
        """``add`` of keys by columns, with one time for all."""
        if _twin is None:
            self.add(
                [
                    (key_hash, offset, store_timestamp)
                    for key_hash, offset in zip(hashes, physical_offsets, strict=True)
                ]
            )
            return
        number = self.count
        assert number + len(hashes) <= self._entry_limit, self
        if number == 1:
            self.begin_offset, self.begin_ms = physical_offsets[0], store_timestamp
        slots = self._slots
        entries, fresh_slots = _twin.enter_keys(
            hashes,
            physical_offsets,
            number,
            min(max((store_timestamp - self.begin_ms) // 1000, 0), SECONDS_MAX),
            self._slot_count,
            FIRST_SLOT,
            PAGE_SHIFT,
            slots.pages,
            slots.changed,
            slots.load,
        )
        self._waiting += entries
        self._slots_used += fresh_slots
        self.count = number + len(hashes)
        self.end_offset, self.end_ms = physical_offsets[-1], store_timestamp

    def write_part(self) -> None:
        """Write waiting entries to the file, and now and then a part of the slots. Not yet durable.

        Raises:
            DiskFull: what was not written still waits; a later call writes the same bytes to the same positions.
            CorruptFile: somebody has truncated the file.
        """
        self._write_entries()
        if not self._is_round_under_way:
            stated_end_offset, stated_count = self._stated[3], self._stated[5]
            if (
                self.count - stated_count < ROUND_ENTRIES
                and self.end_offset - stated_end_offset < ROUND_LOG_BYTES
            ):
                return
            self._begin_round()
        self._write_slots(PAGES_AT_ONCE)

    def write_all(self) -> None:
        """Write everything to the file. Raises the same errors as ``write_part``."""
        if self.is_written:
            return
        self._write_entries()
        self._write_slots(self._begin_round())
        if self.room <= 0:
            self._slots.forget()

    def _write_entries(self) -> None:
        self.check_whole()
        if self._waiting:
            at = self._entries_at + ENTRY_BYTES * self._first_waiting
            self._file.write_at(at, self._waiting)
            self._first_waiting = self.count
            self._waiting = bytearray()

    def _begin_round(self) -> int:
        self._to_state = self._header()
        self._is_round_under_way = True
        return self._slots.begin_round()

    def _write_slots(self, page_count: int) -> None:
        if self._slots.write_part(page_count):
            self._file.write_at(0, _HEADER.pack(*self._to_state))
            self._stated = self._to_state
            self._is_round_under_way = False

    def _header(self) -> _HeaderFields:
        return (
            self.begin_ms,
            self.end_ms,
            self.begin_offset,
            self.end_offset,
            self._slots_used,
            self.count,
        )

    def find(self, key_hash: int, max_count: int, begin_ms: int, end_ms: int) -> list[int]:
        """Physical offsets of a key, newest first.

        An entry only has its time to the second: it is included if any millisecond of that second is in the range.

        Raises:
            CorruptFile: somebody has truncated the file.
        """
        found: list[int] = []
        number = self._slots.get(key_hash % self._slot_count + FIRST_SLOT)
        while len(found) < max_count:
            if not 0 < number < self.count:
                break
            entry_hash, physical_offset, seconds, previous = self._entry(number)
            earliest = self.begin_ms + seconds * 1000
            if seconds < 0 or earliest + 999 < begin_ms:
                break
            if entry_hash == key_hash and earliest <= end_ms:
                found.append(physical_offset)
            # An entry only ever points back. Anything else is damage, and following it might never end.
            if previous >= number:
                break
            number = previous
        return found

    def has_time(self, begin_ms: int, end_ms: int) -> bool:
        """Whether the file can contain anything stored within the range."""
        return not self.is_empty and self.begin_ms <= end_ms and self.end_ms >= begin_ms

    def keys_of_record(self, physical_offset: int) -> int:
        """How many entries at the end belong to this record."""
        keys = 0
        number = self.count - 1
        while number > 0 and self._entry(number)[1] == physical_offset:
            keys += 1
            number -= 1
        return keys

    def repair(self) -> None:
        """Undo a write that was interrupted by the end of the process: entries beyond the count, and slots leading to
        them.

        Raises:
            CorruptFile: the header was torn, too.
        """
        # A header is torn from its end, where the count is; its other fields must not cover more than the count.
        if self.is_empty:
            self.begin_ms = self.end_ms = self.begin_offset = self.end_offset = 0
            self._slots_used = 0
        elif self._entry(self.count - 1)[1] != self.end_offset:
            raise CorruptFile(self.path, "its header does not match its last entry", "Remove it.")
        undone: dict[int, int] = {}
        for key_hash, previous in self._entries_past_count():
            # The first undone entry of a slot has the slot's previous value.
            undone.setdefault(key_hash % self._slot_count + FIRST_SLOT, previous)
        slots = self._slots
        for slot, previous in undone.items():
            found = slots.get(slot)
            # The last entry may be torn itself; then no slot was written yet, and their values are right.
            is_right = found == previous or (
                0 < found < self.count
                and self._entry(found)[0] % self._slot_count + FIRST_SLOT == slot
            )
            if not is_right:
                page_number = slot >> PAGE_SHIFT
                page = slots.pages[page_number] or slots.load(page_number)
                page[slot & PAGE_MASK] = previous
                slots.changed[page_number] = True
        slots.write_part(slots.begin_round())

    def _entries_past_count(self) -> Iterator[tuple[int, int]]:
        """Key hash and previous entry of the entries in the file that the header does not count."""
        number = self.count
        while number < self._entry_limit:
            at = self._entries_at + ENTRY_BYTES * number
            count = min(_REPAIR_ENTRIES, self._entry_limit - number)
            data = self._file.read_at(at, ENTRY_BYTES * count)
            if len(data) != ENTRY_BYTES * count:
                raise truncated(self._file)
            for at in range(0, len(data), ENTRY_BYTES):
                if not any(data[at : at + ENTRY_BYTES]):
                    return
                key_hash, _, _, previous = _ENTRY.unpack_from(data, at)
                yield key_hash, previous
            number += count

    def sync(self) -> None:
        """Make durable what has been written. Any thread."""
        self._file.sync()

    def close(self) -> None:
        self._file.close()

    def _entry(self, number: int) -> tuple[int, int, int, int]:
        if number >= self._first_waiting:
            return _ENTRY.unpack_from(self._waiting, (number - self._first_waiting) * ENTRY_BYTES)
        data = self._file.read_at(self._entries_at + ENTRY_BYTES * number, ENTRY_BYTES)
        if len(data) != ENTRY_BYTES:
            raise truncated(self._file)
        return _ENTRY.unpack(data)

    def __repr__(self) -> str:
        return (
            f"<IndexFile {self.path} entries={self.count - 1} waiting={len(self._waiting) // ENTRY_BYTES} "
            f"end_offset={self.end_offset}>"
        )
