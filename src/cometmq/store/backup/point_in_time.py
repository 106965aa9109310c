"""Where a log is cut to be as of a time, and which backup's tables fit to that.

The log comes from the first backup that was taken at that time or later. Tables come from the last one that was taken
before: what groups had consumed in between is delivered again, and nothing that waited then is passed over. Without an
earlier one, the later tables have to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cometmq.base.errors import UsageError
from cometmq.store.backup.log_check import LogCheck
from cometmq.store.backup.manifest import Manifest, time_text
from cometmq.store.files.log_files import LogFiles
from cometmq.store.recovery.log_follower import has_queue_entry


class Chosen(NamedTuple):
    log_of: Manifest
    tables_of: Manifest

    @property
    def has_older_tables(self) -> bool:
        return self.tables_of.taken_ms < self.log_of.taken_ms


def choose(known: Sequence[Manifest], at_ms: int) -> Chosen:
    """Backups for a time, oldest first. Raises UsageError: none reaches it."""
    later = [one for one in known if one.taken_ms >= at_ms]
    if not later:
        newest = f"the newest is of {time_text(known[-1].taken_ms)}" if known else "there is none"
        raise UsageError(
            f"expected a backup that was taken at {time_text(at_ms)} or later, but {newest}; leave out the time to "
            "restore that one"
        )
    earlier = [one for one in known if one.taken_ms < at_ms]
    log_of = later[0]
    tables_of = earlier[-1] if earlier and earlier[-1].log_end >= log_of.log_start else log_of
    return Chosen(log_of, tables_of)


def find_cut(log: LogFiles, manifest: Manifest, at_ms: int) -> int:
    """Where the first record begins that was stored after a time. Raises UsageError: that is the very first."""
    if not manifest.first_stored_ms or manifest.first_stored_ms > at_ms:
        raise UsageError(
            f"{time_text(at_ms)} is before the first message of the backup {manifest.name}, of "
            f"{time_text(manifest.first_stored_ms)}"
        )
    starts = [start for start in log.starts if manifest.log_start <= start < manifest.log_end]
    low, high = 0, len(starts)
    while high - low > 1:
        middle = (low + high) // 2
        first = _first_stored_ms(log, starts[middle], manifest.log_end)
        if first and first <= at_ms:
            low = middle
        else:
            high = middle
    for record in LogCheck(log, starts[low], manifest.log_end):
        if record.store_timestamp > at_ms:
            return record.physical_offset
    return manifest.log_end


def deleted_below(known: Sequence[Manifest], cut: int) -> dict[str, int]:
    """Of each topic, the last deletion that had happened when the log ended at ``cut``."""
    ends: dict[str, int] = {}
    for manifest in known:
        for topic, end in manifest.deleted:
            if end <= cut:
                ends[topic] = max(end, ends.get(topic, 0))
    return ends


def queues_after(log: LogFiles, cut: int, end: int) -> dict[str, dict[int, int]]:
    """Of queues with records behind the cut, the offset of the first: there they ended at the time."""
    firsts: dict[str, dict[int, int]] = {}
    for record in LogCheck(log, cut, end):
        if not has_queue_entry(record.sys_flag):
            continue
        queues = firsts.setdefault(record.topic.decode(errors="replace"), {})
        queues.setdefault(record.queue_id, record.queue_offset)
    return firsts


def _first_stored_ms(log: LogFiles, start: int, end: int) -> int:
    for record in LogCheck(log, start, end):
        return record.store_timestamp
    return 0
