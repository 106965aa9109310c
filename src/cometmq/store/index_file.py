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

A full file takes e - 1 entries, because number 0 means "none". ``index_files`` holds the row of them.

New entries wait in memory and reach the file grouped: entries, then slots, then header. In that order a process
that dies in between leaves slots that point past the header's count, never a count that has no entries. A query
looks at both. Thread rule: all but ``sync`` belongs to the owner of the store.
"""

from __future__ import annotations

import struct
from typing import Final

from cometmq.base.errors import CorruptFile
from cometmq.base.ports import File, Files

HEADER_BYTES: Final = 40
SLOT_BYTES: Final = 4
ENTRY_BYTES: Final = 20
SECONDS_MAX: Final = 0x7FFFFFFF

_HEADER = struct.Struct(">qqqqii")
_SLOT = struct.Struct(">i")
_ENTRY = struct.Struct(">iqii")
_unpack_slot = _SLOT.unpack_from
_pack_entry = _ENTRY.pack

NewEntry = tuple[int, int, int]
"""Key hash, physical offset and store timestamp of a record."""


def file_bytes(slot_count: int, entry_count: int) -> int:
    return HEADER_BYTES + SLOT_BYTES * slot_count + ENTRY_BYTES * entry_count


def _head_bytes(slot_count: int) -> int:
    """Header and slots are written at random, 4 bytes at a time: through a mapping that costs no system call."""
    return HEADER_BYTES + SLOT_BYTES * slot_count


class IndexFile:
    """See the module. ``begin_ms``, ``end_ms`` and ``end_offset`` include entries that still wait in memory."""

    __slots__ = (
        "_entries_at",
        "_entry_limit",
        "_file",
        "_first_waiting",
        "_slot_count",
        "_slots",
        "_slots_used",
        "_waiting",
        "_waiting_slots",
        "begin_ms",
        "begin_offset",
        "count",
        "end_ms",
        "end_offset",
    )

    def __init__(self, file: File, slot_count: int, entry_count: int) -> None:
        self._file = file
        self._slot_count = slot_count
        self._entry_limit = entry_count
        self._entries_at = HEADER_BYTES + SLOT_BYTES * slot_count
        self._slots = file.view(HEADER_BYTES, SLOT_BYTES * slot_count)
        header: tuple[int, ...] = _HEADER.unpack(file.read_at(0, HEADER_BYTES))
        self.begin_ms, self.end_ms, self.begin_offset, self.end_offset = header[:4]
        self._slots_used, count = header[4:]
        # A file that was made but never written has a count of 0; numbers start at 1 all the same.
        self.count = max(count, 1)
        self._first_waiting = self.count
        self._waiting: list[bytes] = []
        self._waiting_slots: dict[int, int] = {}
        if not (self.count <= entry_count and 0 <= self._slots_used <= slot_count):
            raise CorruptFile(
                file.path,
                f"its header counts {count - 1} entries in {self._slots_used} slots, "
                f"but it has room for {entry_count - 1} in {slot_count}",
                "Move it out of the index directory; queries by key then miss what it held.",
            )

    @classmethod
    def create(cls, files: Files, path: str, slot_count: int, entry_count: int) -> IndexFile:
        size = file_bytes(slot_count, entry_count)
        head = _head_bytes(slot_count)
        file = files.create(path, size, allocate=False, head_bytes=head)
        return cls(file, slot_count, entry_count)

    @classmethod
    def open(cls, files: Files, path: str, slot_count: int, entry_count: int) -> IndexFile:
        expected = file_bytes(slot_count, entry_count)
        if (size := files.size(path)) != expected:
            raise CorruptFile(
                path,
                f"an index file of {size} bytes where {expected} are expected",
                "Set maxHashSlotNum and maxIndexNum to what it was written with, or move it away.",
            )
        file = files.open(path, mapped=False, head_bytes=_head_bytes(slot_count))
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
    def waiting(self) -> int:
        """Entries that are only in memory."""
        return len(self._waiting)

    @property
    def is_empty(self) -> bool:
        return self.count == 1

    def add(self, entries: list[NewEntry]) -> None:
        """Enter records under their keys, in the order of the log; the caller has made sure of ``room``."""
        if not entries:
            return
        number = self.count
        assert number + len(entries) <= self._entry_limit, self
        if number == 1:
            _, self.begin_offset, self.begin_ms = entries[0]
        begin_ms = self.begin_ms
        slot_count = self._slot_count
        waiting_slots = self._waiting_slots
        enter = self._waiting.append
        timestamp = seconds = -1
        for key_hash, physical_offset, store_timestamp in entries:
            if store_timestamp != timestamp:
                timestamp = store_timestamp
                seconds = min(max((timestamp - begin_ms) // 1000, 0), SECONDS_MAX)
            slot = key_hash % slot_count
            previous = waiting_slots.get(slot)
            if previous is None:
                (previous,) = _unpack_slot(self._slots, SLOT_BYTES * slot)
                if not 0 < previous < number:
                    previous = 0
                    self._slots_used += 1
            enter(_pack_entry(key_hash, physical_offset, seconds, previous))
            waiting_slots[slot] = number
            number += 1
        self.count = number
        _, self.end_offset, self.end_ms = entries[-1]

    def write_out(self) -> None:
        """Put what waits into the file, not yet durable.

        Raises:
            DiskFull: everything still waits; a later call writes the same bytes to the same places.
        """
        if not self._waiting:
            return
        write_at = self._file.write_at
        at = self._entries_at + ENTRY_BYTES * self._first_waiting
        write_at(at, b"".join(self._waiting))
        self._file.write_ints(HEADER_BYTES, self._waiting_slots)
        header = (self.begin_ms, self.end_ms, self.begin_offset, self.end_offset)
        write_at(0, _HEADER.pack(*header, self._slots_used, self.count))
        self._first_waiting = self.count
        self._waiting = []
        self._waiting_slots = {}

    def find(self, key_hash: int, max_count: int, begin_ms: int, end_ms: int) -> list[int]:
        """Physical offsets of a key, newest first.

        An entry knows its time to the second only: it is taken if any millisecond of that second is in the range.
        """
        found: list[int] = []
        slot = key_hash % self._slot_count
        number = self._waiting_slots.get(slot, 0) or self._slot_on_disk(slot)
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
        """Whether anything stored within the range can be here."""
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
        """Undo a write that the end of the process cut short: entries past the count, and slots that lead to them.

        Raises:
            CorruptFile: the header was cut short, too.
        """
        # A header is cut from its end, where the count is; its other fields must not count what it does not.
        if self.is_empty:
            self.begin_ms = self.end_ms = self.begin_offset = self.end_offset = 0
            self._slots_used = 0
        elif self._entry(self.count - 1)[1] != self.end_offset:
            raise CorruptFile(self.path, "its header does not match its last entry", "Remove it.")
        undone: dict[int, int] = {}
        number = self.count
        while number < self._entry_limit:
            at = self._entries_at + ENTRY_BYTES * number
            raw = self._file.read_at(at, ENTRY_BYTES)
            if not any(raw):
                break
            key_hash, _, _, previous = _ENTRY.unpack(raw)
            # The first one undone of a slot knows what the slot held before.
            undone.setdefault(key_hash % self._slot_count, previous)
            number += 1
        for slot, previous in undone.items():
            (found,) = _unpack_slot(self._slots, SLOT_BYTES * slot)
            # The last entry may be cut short itself; then no slot was written yet, and what they hold is right.
            is_right = found == previous or (
                0 < found < self.count and self._entry(found)[0] % self._slot_count == slot
            )
            if not is_right:
                self._file.write_at(HEADER_BYTES + SLOT_BYTES * slot, _SLOT.pack(previous))

    def sync(self) -> None:
        """Make durable what ``write_out`` has written. Any thread."""
        self._file.sync()

    def close(self) -> None:
        self._slots = memoryview(b"")
        self._file.close()

    def _slot_on_disk(self, slot: int) -> int:
        number: int = _unpack_slot(self._slots, SLOT_BYTES * slot)[0]
        return number if 0 < number < self.count else 0

    def _entry(self, number: int) -> tuple[int, int, int, int]:
        if number >= self._first_waiting:
            return _ENTRY.unpack(self._waiting[number - self._first_waiting])
        at = self._entries_at + ENTRY_BYTES * number
        return _ENTRY.unpack(self._file.read_at(at, ENTRY_BYTES))

    def __repr__(self) -> str:
        return (
            f"<IndexFile {self.path} entries={self.count - 1} waiting={len(self._waiting)} "
            f"end_offset={self.end_offset}>"
        )
