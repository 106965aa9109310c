"""The end of a replica's log that its master does not have: copied aside before it is cut off.

The copy holds the bytes of the log as they were, so its records can be read with the tools for log files. Its name says
where they lay. Nothing here removes a copy: whether somebody needs what is in it is for the operator to decide.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from cometmq.base.ports import Files
from cometmq.store.files.file_names import file_name
from cometmq.store.log.commit_log import CommitLog
from cometmq.store.recovery.checkpoint import Marks

DIRECTORY: Final = "cut"
COPIED_AT_ONCE: Final = 4 << 20


def copy_tail(log: CommitLog, offset: int, directory: str, files: Files, wall_ms: int) -> str:
    """Copy the log from ``offset`` on into a file of its own, durably. Returns its path.

    Raises:
        DiskFull: no space for the copy; nothing was changed.
    """
    files.make_directory(directory)
    path = f"{directory}/{file_name(offset)}-{wall_ms}"
    copy = files.create(path, log.end - offset, allocate=False)
    try:
        at = offset
        while at < log.end:
            size_bytes = min(COPIED_AT_ONCE, log.next_file_start(at) - at, log.end - at)
            view = log.view(at, size_bytes)
            assert view is not None, (at, log)
            copy.write_at(at - offset, view)
            at += size_bytes
        copy.sync()
    finally:
        copy.close()
    files.sync_directory(directory)
    return path


def marks_before(marks: Marks, offset: int) -> Marks:
    """What a checkpoint may still say once the log ends at ``offset``."""
    return replace(
        marks,
        flushed_offset=min(marks.flushed_offset, offset),
        dispatched_offset=min(marks.dispatched_offset, offset),
        last_dispatched_record=min(marks.last_dispatched_record, offset),
        indexed_record=min(marks.indexed_record, offset),
    )
