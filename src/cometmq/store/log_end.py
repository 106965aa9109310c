"""May the log end where its sound records end? A torn tail may be cut; damage must be refused.

What tells them apart, strongest first:

- The checkpoint. Bytes below its flushed offset were on disk. If they are bad now, they were damaged.
- What follows. The log has one writer that appends, so a killed process leaves at most its very last write in pieces.
  A sound record behind a bad place means that the bad place was whole once.
- What is missing. After a power loss, writes that were never synced may be lost in any order, so sound records may
  follow a torn one. But what is lost are whole sectors, and those of a log file are zero. A wrong byte between
  non-zero ones was not lost, but altered.
"""

from __future__ import annotations

from typing import Final

from cometmq.model.record import peek
from cometmq.model.record_layout import MAGIC_V1, MAGIC_V2
from cometmq.store.log_scan import SECTOR_BYTES, find_record, scan_record
from cometmq.store.mapped_file_queue import MappedFileQueue

FOLLOWER_WITHIN_BYTES: Final = 32 << 20
"""How far behind the end a sound record is looked for. It is far beyond the largest message, and takes some 20 ms."""
_PEEK_BYTES: Final = 8


def damage_at(
    row: MappedFileQueue, end: int, *, flushed: int, is_short: bool, writes_survive: bool
) -> str:
    """Why the log must not end at ``end``; empty when it may.

    Args:
        end: where the sound records end.
        flushed: all bytes below were on disk once; -1 when nobody knows.
        is_short: records that were on disk once are missing, by their offset or by their time.
        writes_survive: at most the process died; nothing that it wrote is lost.
    """
    search_end = max(flushed, end + FOLLOWER_WITHIN_BYTES)
    if is_short and flushed < 0:
        search_end = row.end
    # Not the record at the end itself: all that may be wrong with that are its topic and properties.
    follower = find_record(row, end + 1, search_end)
    if follower is not None:
        behind = follower.physical_offset
        if is_short or writes_survive or not _may_be_lost(row, end, behind):
            return f"sound records follow from offset {behind} on"
    if flushed > end and not _is_start_of_record(row, end, flushed):
        return f"the checkpoint says that the log was on disk up to offset {flushed}"
    return ""


def _may_be_lost(row: MappedFileQueue, start: int, stop: int) -> bool:
    """Whether what is between two offsets may be what a power loss leaves of an unsynced record."""
    log_file = row.at(start)
    if log_file is None:
        return False
    at = start - log_file.start
    view = log_file.file.view(0, row.file_bytes)
    if scan_record(view, at, log_file.start, check_crc=True) is not None:
        # Sound as far as can be checked; it was only taken for torn.
        return True
    limit = min(stop - log_file.start, row.file_bytes)
    while at < limit:
        # Of the first sector, the part behind the last sound record: that may have been synced before. The last one may
        # hold the first bytes of the next sound record, which are zero as well: those of its size.
        sector_end = (at // SECTOR_BYTES + 1) * SECTOR_BYTES
        if not any(view[at:sector_end]):
            return True
        at = sector_end
    return False


def _is_start_of_record(row: MappedFileQueue, start: int, stop: int) -> bool:
    """Whether these bytes begin a record that goes on behind them, as a replica's log does that was cut off there."""
    log_file = row.at(start)
    if log_file is None or stop > log_file.start + row.file_bytes:
        return False
    if stop - start < _PEEK_BYTES:
        return True
    view = log_file.file.view(0, row.file_bytes)
    size_bytes, magic = peek(view, start - log_file.start)
    return magic in (MAGIC_V1, MAGIC_V2) and size_bytes > stop - start
