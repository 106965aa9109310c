"""May the log end where its valid records end? A torn tail may be cut; damage must be refused.

How to tell them apart, strongest evidence first:

- The checkpoint. Bytes below its flushed offset were on disk. If they are bad now, they were damaged.
- What follows. The log has one writer that appends, so a killed process leaves at most its very last write incomplete.
  A valid record after a bad place means that the bad place was intact once.
- What is missing. After a power loss, writes that were never synced may be lost in any order, so valid records may
  follow a torn one. But what is lost reaches up to the end of a sector, and is zero in a log file. A wrong byte between
  non-zero ones was not lost, but altered.
"""

from __future__ import annotations

from typing import Final

from cometmq.model.messages.record import peek
from cometmq.model.messages.record_layout import MAGIC_V1, MAGIC_V2
from cometmq.store.files.record_scan import SECTOR_BYTES, scan_record
from cometmq.store.log.log_scan import find_record
from cometmq.store.log.mapped_file_queue import MappedFileQueue

FOLLOWER_WITHIN_BYTES: Final = 32 << 20
"""How far after the end to search for a valid record. Far more than the largest message; takes about 20 ms."""
LOST_BYTES_MIN: Final = 16
"""So many zeros at the end of a sector are taken for what is missing there. Fewer are found in sound records."""
_PEEK_BYTES: Final = 8


def damage_at(
    row: MappedFileQueue, end: int, *, flushed: int, is_short: bool, writes_survive: bool
) -> str:
    """Why the log must not end at ``end``; empty if it may.

    Args:
        end: where the valid records end.
        flushed: all bytes below this were on disk once; -1 if unknown.
        is_short: records that were on disk once are missing, judging by offset or by time.
        writes_survive: at most the process died; nothing it wrote is lost.
    """
    search_end = max(flushed, end + FOLLOWER_WITHIN_BYTES)
    if is_short and flushed < 0:
        search_end = row.end
    # Not the record at the end itself: only its topic and properties may be wrong.
    follower = find_record(row, end + 1, search_end)
    if follower is not None:
        behind = follower.physical_offset
        if is_short or writes_survive or not _may_be_lost(row, end, behind):
            return f"sound records follow from offset {behind} on"
    if flushed > end and not _is_start_of_record(row, end, flushed):
        return f"the checkpoint says that the log was on disk up to offset {flushed}"
    return ""


def _may_be_lost(row: MappedFileQueue, start: int, stop: int) -> bool:
    """Whether the bytes between two offsets may be what a power loss leaves of an unsynced record."""
    log_file = row.at(start)
    if log_file is None:
        return False
    at = start - log_file.start
    view = log_file.file.view(0, row.file_bytes)
    if scan_record(view, at, log_file.start, check_crc=True) is not None:
        # Valid as far as can be checked; it was only considered torn.
        return True
    limit = min(stop - log_file.start, row.file_bytes)
    while at < limit:
        # In the first sector, the part after the last valid record, which may have been synced before. The last
        # sector may hold the first bytes of the next valid record, those of its size, which are zero as well.
        # A replica's record comes in pieces: of any sector, the end alone may be lost.
        sector_end = (at // SECTOR_BYTES + 1) * SECTOR_BYTES
        if not any(view[max(at, sector_end - LOST_BYTES_MIN) : sector_end]):
            return True
        at = sector_end
    return False


def _is_start_of_record(row: MappedFileQueue, start: int, stop: int) -> bool:
    """Whether these bytes begin a record that continues after them, as in a replica's log that was cut off there."""
    log_file = row.at(start)
    if log_file is None or stop > log_file.start + row.file_bytes:
        return False
    if stop - start < _PEEK_BYTES:
        return True
    view = log_file.file.view(0, row.file_bytes)
    size_bytes, magic = peek(view, start - log_file.start)
    return magic in (MAGIC_V1, MAGIC_V2) and size_bytes > stop - start
