"""Reads back what a backup has copied of the log: whether it is sound, and what it says about queues and times."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cometmq.base.errors import CorruptFile
from cometmq.store.backup.log_check import LogCheck
from cometmq.store.files.log_files import LogFiles
from cometmq.store.recovery.log_follower import has_queue_entry

QueueEnds = dict[str, dict[int, int]]
"""By topic and queue, the offset of the next message."""
Tell = Callable[[str, int, int], None]
"""Progress: what is done, how far, out of how much."""


class ReadBack(NamedTuple):
    damaged: list[int]
    """Where records were damaged in the store already."""
    queue_ends: QueueEnds
    """Of the queues with records in this part."""
    last_stored_ms: int
    """0 without any record."""


def read_back(log: LogFiles, directory: str, start: int, end: int, tell: Tell) -> ReadBack:
    """Raises CorruptFile: it does not end with the record that the store has there."""
    check = LogCheck(log, start, end)
    ends: QueueEnds = {}
    for record in check:
        tell("checked", record.physical_offset - start, end - start)
        if has_queue_entry(record.sys_flag):
            queues = ends.setdefault(record.topic.decode(errors="replace"), {})
            known = queues.get(record.queue_id, 0)
            queues[record.queue_id] = max(record.queue_offset + 1, known)
    if check.unfollowed or check.sound_end != end:
        raise CorruptFile(
            directory,
            f"the copy of the log has no sound record at offset {check.sound_end}, where the store has one",
            "Check the disk of the backups",
        )
    last_ms = check.last.store_timestamp if check.last is not None else 0
    return ReadBack([one.start for one in check.bad], ends, last_ms)


def stored_ms(log: LogFiles, start: int, end: int) -> int:
    """When the first record of a part was stored; 0 without any."""
    return next((record.store_timestamp for record in LogCheck(log, start, end)), 0)
