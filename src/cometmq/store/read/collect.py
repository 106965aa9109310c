"""Walks the entries of a queue and gathers the records that a reader wants.

``reader`` uses it for pulls, ``bulk_reader`` for whole ranges. An entry that does not lead to its record is repaired
from the log on the way. A damaged record is left out, unless it is about to be healed: then the reader waits for it.
What is found are views of the mapped log; adjacent records become one view.
"""

from __future__ import annotations

from cometmq.store.files.queue_entry import ENTRY
from cometmq.store.log.commit_log import CommitLog
from cometmq.store.queues.consume_queue import ConsumeQueue
from cometmq.store.queues.queue_check import leads_to
from cometmq.store.queues.queue_repair import Outcome, QueueRepair
from cometmq.store.read.gather import gather
from cometmq.store.read.read_results import GetStatus
from cometmq.store.read.soundness import Soundness
from cometmq.store.read.wanted import Collected, Limits, Wanted


def collect(
    log: CommitLog,
    repair: QueueRepair,
    soundness: Soundness,
    queue: ConsumeQueue,
    data: bytes,
    offset: int,
    wanted: Wanted,
    limits: Limits,
) -> Collected:
    """Gather records by the entries in ``data``, the first of which is number ``offset`` of the queue."""
    found = gather(log, soundness, queue, data, offset, wanted, limits)
    if found is not None:
        return found
    return collect_carefully(log, repair, soundness, queue, data, offset, wanted, limits)


def collect_carefully(
    log: CommitLog,
    repair: QueueRepair,
    soundness: Soundness,
    queue: ConsumeQueue,
    data: bytes,
    offset: int,
    wanted: Wanted,
    limits: Limits,
) -> Collected:
    """The whole of ``collect``, whatever the log and the entries hold."""
    view = log.view
    log_start = log.start
    log_end = log.end
    hot_from = soundness.hot_from
    tags, code_min, record = wanted
    memory_count, memory_bytes, disk_count, disk_bytes, on_disk_below = limits
    parts: list[memoryview] = []
    sizes: list[int] = []
    part_start = part_end = -1
    status = GetStatus.NO_MATCHED_MESSAGE
    count = total = examined = 0
    physical_offset = -1
    for physical_offset, size_bytes, tags_code in ENTRY.iter_unpack(data):
        if count:
            if physical_offset < on_disk_below:
                if count >= disk_count or total + size_bytes > disk_bytes:
                    break
            elif count >= memory_count or total + size_bytes > memory_bytes:
                break
        examined += 1
        found = None
        if log_start <= physical_offset and 0 < size_bytes <= log_end - physical_offset:
            if tags is not None and tags_code >= code_min and not tags(tags_code):
                continue
            found = view(physical_offset, size_bytes)
        if found is None or not leads_to(queue, offset + examined - 1, found):
            mended = repair.mend(queue, offset + examined - 1)
            if mended is Outcome.LATER:
                # Return what came before it; the reader asks for this entry again.
                examined -= 1
                break
            if mended is Outcome.NONE:
                if found is not None and soundness.waits_for(
                    queue, offset + examined - 1, physical_offset, size_bytes
                ):
                    examined -= 1
                    break
                if not count:
                    status = GetStatus.MESSAGE_WAS_REMOVING
                continue
            physical_offset, size_bytes, tags_code, found = mended
            if tags is not None and tags_code >= code_min and not tags(tags_code):
                continue
        if physical_offset < hot_from and not soundness.is_sound(physical_offset, found):
            if soundness.waits_for(queue, offset + examined - 1, physical_offset, size_bytes):
                examined -= 1
                break
            if not count:
                status = GetStatus.MESSAGE_WAS_REMOVING
            continue
        if record is not None and not record(found):
            continue
        if physical_offset != part_end:
            if part_end >= 0:
                _add(parts, view(part_start, part_end - part_start))
            part_start = physical_offset
        part_end = physical_offset + size_bytes
        total += size_bytes
        sizes.append(size_bytes)
        count += 1
    if part_end >= 0:
        _add(parts, view(part_start, part_end - part_start))
    return Collected(
        GetStatus.FOUND if count else status, examined, parts, sizes, total, physical_offset
    )


def _add(parts: list[memoryview], part: memoryview | None) -> None:
    # Each record of the part was there a moment ago, and only this thread removes log files.
    assert part is not None
    parts.append(part)
