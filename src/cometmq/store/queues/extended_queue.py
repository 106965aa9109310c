"""The extension of one consume queue: units of variable length, to which the queue's entries point.

    at   width  field
    0    2      size of the unit
    2    8      hash of the tag (in the schedule topic: when the message is due)
    10   8      store time of the message, ms
    18   2      bytes of bits that follow; 0 if none were calculated
    20   n      bits of the groups that want the message: bit p is bit p % 8 of byte p // 8

A unit is within one file, with at least 4 bytes after it. If the next one does not fit, -1 is written in place of its
size and it goes into the next file. An entry holds the position of its unit in the sequence of files, minus 2**63:
below every hash of a tag. Units wait in memory together with their entries, and are written before them.
"""

from __future__ import annotations

import logging
import struct
from typing import Final, NamedTuple

from cometmq.store.files.file_names import file_name
from cometmq.store.files.queue_entry import ADDRESS_MAX
from cometmq.store.open_files import OpenFiles

logger = logging.getLogger("cometmq.store")

UNIT_BYTES_MIN: Final = 20
UNIT_BYTES_MAX: Final = 0x7FFF
END_BYTES: Final = 4
"""What a file keeps free after its last unit, for the end mark."""

CODE_MIN: Final = -(1 << 63)
OFFSET_MAX: Final = 1 << 56
"""More bytes than any disk has; their addresses all begin with the same byte."""
ADDRESS_BYTE: Final = 0x80
"""How the code of a queue entry begins when it is an address: with 0 or 255 when it is none."""

_UNIT = struct.Struct(">hqqh")
_END_MARK: Final = b"\xff\xff"
_WINDOW_BYTES: Final = UNIT_BYTES_MAX
"""Bytes read at once: units of neighbouring entries are neighbours. At least one unit, however long."""


class Unit(NamedTuple):
    tags_code: int
    store_timestamp: int
    bits: bytes

    @property
    def size_bytes(self) -> int:
        return UNIT_BYTES_MIN + len(self.bits)


def encode_unit(unit: Unit) -> bytes:
    size_bytes = unit.size_bytes
    assert size_bytes <= UNIT_BYTES_MAX, size_bytes
    return _UNIT.pack(size_bytes, unit.tags_code, unit.store_timestamp, len(unit.bits)) + unit.bits


def decode_unit(data: bytes, position: int = 0) -> Unit | None:
    """The unit at a position; None if there is none, or not all of it."""
    bits_at = position + UNIT_BYTES_MIN
    if position < 0 or bits_at > len(data):
        return None
    size_bytes, tags_code, store_timestamp, bits_bytes = _UNIT.unpack_from(data, position)
    end = position + size_bytes
    if bits_bytes < 0 or size_bytes != UNIT_BYTES_MIN + bits_bytes or end > len(data):
        return None
    return Unit(tags_code, store_timestamp, data[bits_at:end])


def is_address(code: int) -> bool:
    return code <= ADDRESS_MAX


def address_of(offset: int) -> int:
    return offset + CODE_MIN


def offset_of(address: int) -> int:
    return address - CODE_MIN


class ExtendedQueue:
    """The unit files of one queue. Owner thread only."""

    __slots__ = ("directory", "dirty_epoch", "end", "file_bytes", "first_start", "waiting")

    def __init__(
        self, directory: str, file_bytes: int, first_start: int = -1, end: int = 0
    ) -> None:
        """
        Args:
            first_start: byte where the first file starts; -1 if there is none.
            end: where the next unit goes.
        """
        self.directory = directory
        self.file_bytes = file_bytes
        self.first_start = first_start
        self.end = end
        self.waiting = bytearray()
        self.dirty_epoch = -1

    def path(self, start: int) -> str:
        return f"{self.directory}/{file_name(start)}"

    @property
    def written(self) -> int:
        """Units below this are in the files, the rest in ``waiting``."""
        return self.end - len(self.waiting)

    def append(self, unit: bytes) -> int:
        """Add a unit, readable at once; it must fit into a file. Returns its offset."""
        left = self.file_bytes - self.end % self.file_bytes
        if len(unit) + END_BYTES > left:
            self.waiting += _END_MARK.ljust(left, b"\0")
            self.end += left
        offset = self.end
        self.waiting += unit
        self.end += len(unit)
        return offset

    def read(self, offset: int, length: int, open_files: OpenFiles) -> bytes:
        """Up to ``length`` bytes, within one file; empty if there is no file."""
        written = self.written
        if offset >= written:
            at = offset - written
            return bytes(self.waiting[at : at + length])
        start = offset - offset % self.file_bytes
        if self.first_start < 0 or start < self.first_start:
            return b""
        stop = min(offset + length, written, start + self.file_bytes)
        try:
            return open_files.get(self.path(start)).read_at(offset - start, stop - offset)
        except FileNotFoundError:
            logger.error("unit file is gone path=%s", self.path(start))
            return b""

    def unit(self, offset: int, open_files: OpenFiles) -> Unit | None:
        return decode_unit(self.read(offset, UNIT_BYTES_MAX, open_files))

    def write_waiting(self, open_files: OpenFiles) -> list[int]:
        """Write the waiting units to the files, creating them as needed. Returns the starts of the files written.

        Raises:
            DiskFull: everything still waits; a later call writes the same bytes to the same positions.
        """
        base = position = self.written
        starts: list[int] = []
        while position < self.end:
            start = position - position % self.file_bytes
            until = min(self.end, start + self.file_bytes)
            # At its first unit a file is new, unless an earlier attempt created it and found the disk full.
            file = open_files.get_or_create(self.path(start), self.file_bytes, position == start)
            file.write_at(position - start, self.waiting[position - base : until - base])
            if self.first_start < 0:
                self.first_start = start
            starts.append(start)
            position = until
        self.waiting = bytearray()
        return starts

    def expire(self, offset: int) -> list[int]:
        """Drop files that end at or before ``offset``, except the last. Returns their starts."""
        last_start = (self.written - 1) // self.file_bytes * self.file_bytes
        expired: list[int] = []
        while 0 <= self.first_start < last_start and self.first_start + self.file_bytes <= offset:
            expired.append(self.first_start)
            self.first_start += self.file_bytes
        return expired

    def __repr__(self) -> str:
        return f"<ExtendedQueue {self.directory} end={self.end} waiting={len(self.waiting)}>"


class UnitReader:
    """Finds the units of one queue, several with one read. Short-lived: it does not see later writes."""

    __slots__ = ("_data", "_open_files", "_row", "_start")

    def __init__(self, row: ExtendedQueue, open_files: OpenFiles) -> None:
        self._row = row
        self._open_files = open_files
        self._start = 0
        self._data = b""

    def unit(self, address: int) -> Unit | None:
        """The unit that an entry points to; None if it is lost."""
        offset = offset_of(address)
        found = decode_unit(self._data, offset - self._start)
        if found is None:
            self._start = offset
            self._data = self._row.read(offset, _WINDOW_BYTES, self._open_files)
            found = decode_unit(self._data)
        return found
