"""The checkpoint file: how far log, queues and index are known to be on disk.

    at    width  field
    0     8      store time of the last flushed record, ms
    8     8      store time of the last record whose queue entry is flushed
    16    8      store time of the last record of the last full, flushed index file
    24    8      flushed offset of the master (RocketMQ 5; kept unchanged)
    32    8      confirmed offset (RocketMQ 5; kept unchanged)
    40    8      physical offset of the last record whose queue entry is flushed (RocketMQ 5.5)
    512   28     our extension, see ``_OWN``; RocketMQ leaves these bytes alone
    rest zero, 4096 bytes in all

The times only identify a log file to start recovery from; our own part gives the exact byte. It counts only while the
times before it are the ones it was written with: a Java broker that ran in between has changed them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from cometmq.base.errors import CorruptFile
from cometmq.base.ports import File, Files
from cometmq.model.messages.checksum import crc32

FILE_BYTES: Final = 4096
OWN_AT: Final = 512
_TIMES = struct.Struct(">qqqqqq")
# flushed offset, dispatched offset, indexed record, CRC32 over these and the first 48 bytes of the file
_OWN = struct.Struct(">qqqI")
_OFFSETS = struct.Struct(">qqq")
SAFETY_MS: Final = 3000
"""Java subtracts this from the times, because its clock may have stood still around the last flush."""


@dataclass(slots=True)
class Marks:
    """The content of the checkpoint. The offsets of our own part are -1 if unknown."""

    physical_ms: int = 0
    logical_ms: int = 0
    index_ms: int = 0
    master_flushed_offset: int = 0
    confirmed_offset: int = 0
    last_dispatched_record: int = 0
    flushed_offset: int = -1
    """Every log byte below this is on disk: damage there is not a torn write."""
    dispatched_offset: int = -1
    """The queue entries of every record below this are on disk."""
    indexed_record: int = -1
    """The last record in the index at that time; an index that ends earlier has lost something."""

    @property
    def safe_ms(self) -> int:
        """Records stored up to this time are on disk, and so are their queue entries."""
        return max(min(self.physical_ms, self.logical_ms) - SAFETY_MS, 0)


def encode_marks(marks: Marks) -> tuple[bytes, bytes]:
    """The bytes at 0 and the bytes at ``OWN_AT``."""
    times = _TIMES.pack(
        marks.physical_ms,
        marks.logical_ms,
        marks.index_ms,
        marks.master_flushed_offset,
        marks.confirmed_offset,
        marks.last_dispatched_record,
    )
    offsets = _OFFSETS.pack(marks.flushed_offset, marks.dispatched_offset, marks.indexed_record)
    return times, offsets + crc32(times + offsets).to_bytes(4, "big")


def decode_marks(data: bytes) -> Marks:
    marks = Marks(*_TIMES.unpack_from(data, 0))
    *offsets, checksum = _OWN.unpack_from(data, OWN_AT)
    if checksum == crc32(data[: _TIMES.size] + data[OWN_AT : OWN_AT + _OFFSETS.size]):
        marks.flushed_offset, marks.dispatched_offset, marks.indexed_record = offsets
    return marks


class Checkpoint:
    """The open file. Loaded by the owner of the store, then written only by the flusher."""

    def __init__(self, path: str, files: Files) -> None:
        self._path = path
        self._files = files
        self._file: File | None = None
        self.marks = Marks()
        self.kept_offset = -1
        """The dispatched offset that is guaranteed to be in the file after a power loss."""

    def load(self) -> bool:
        """Read the marks; False if there is no checkpoint. Raises CorruptFile for a wrong length."""
        if not self._files.exists(self._path):
            return False
        size_bytes = self._files.size(self._path)
        if size_bytes == 0:
            # Created, but without its length when the process died.
            self._files.remove(self._path)
            return False
        if size_bytes != FILE_BYTES:
            raise CorruptFile(
                self._path,
                f"{size_bytes} bytes long where {FILE_BYTES} are expected",
                "Remove it: the store then recovers from the start of the log.",
            )
        self.marks = decode_marks(self._files.read(self._path))
        return True

    def save(self, *, sync: bool) -> None:
        """Write the marks. Visible to the next process at once, and after a power loss with ``sync``."""
        is_new = False
        if self._file is None:
            if self._files.exists(self._path):
                self._file = self._files.open(self._path, mapped=False)
            else:
                self._file = self._files.create(self._path, FILE_BYTES, allocate=False)
                is_new = True
        times, own = encode_marks(self.marks)
        # Our new part never matches the old times, and our old part never matches the new times: whatever a crash
        # leaves, a half-written checkpoint falls back to the times.
        self._file.write_at(OWN_AT, own)
        self._file.write_at(0, times)
        if sync:
            self._file.sync()
            if is_new:
                self._files.sync_directory(self._path.rpartition("/")[0])
            self.kept_offset = self.marks.dispatched_offset

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def __repr__(self) -> str:
        return f"<Checkpoint {self._path} {self.marks}>"
