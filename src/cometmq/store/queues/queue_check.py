"""Whether a queue entry leads to the right record: of its queue, with its offset, and of its size.

An entry that this process wrote is right. One that existed at the start may have been damaged on disk since it was
written, and nothing in it shows that; the record does.
"""

from __future__ import annotations

import struct
from functools import lru_cache

from cometmq.model.messages.record_layout import (
    BODY_AT_V4,
    FIXED_BYTES_V4,
    NUMBER,
    NUMBER_AND_BODY_V4,
    PLACE,
    V6_HOSTS,
)
from cometmq.store.files.record_scan import Scanned, scan_record
from cometmq.store.log.commit_log import CommitLog
from cometmq.store.queues.consume_queue import ConsumeQueue

_unpack_head = NUMBER_AND_BODY_V4.unpack_from


def leads_to(queue: ConsumeQueue, queue_offset: int, record: memoryview) -> bool:
    """Whether the bytes that an entry leads to are the record with its queue offset."""
    if len(record) < FIXED_BYTES_V4:
        return False
    size_bytes, queue_id, number, sys_flag, body_bytes = _unpack_head(record)
    if size_bytes != len(record) or number != queue_offset or queue_id != queue.queue_id:
        return False
    if sys_flag & V6_HOSTS or body_bytes < 0:
        return _is_of(queue, queue_offset, record)
    topic_at = BODY_AT_V4 + body_bytes
    field = queue.topic_field
    if record[topic_at : topic_at + len(field)] == field:
        return True
    # A long name has its length in two bytes, and a short one may have.
    return _is_of(queue, queue_offset, record)


def all_lead_to(
    queue: ConsumeQueue, queue_offset: int, records: list[memoryview], sizes: tuple[int, ...]
) -> bool:
    """``leads_to`` for consecutive entries, in two thirds of the time."""
    count = len(records)
    try:
        found_sizes, queue_ids, numbers, sys_flags, body_bytes = zip(
            *map(_unpack_head, records), strict=True
        )
        if found_sizes != sizes or queue_ids.count(queue.queue_id) != count:
            return False
        if numbers != tuple(range(queue_offset, queue_offset + count)):
            return False
        field = queue.topic_field
        topics = map(_text(len(field)).unpack_from, records, map(BODY_AT_V4.__add__, body_bytes))
        if list(topics) == [(field,)] * count and not any(map(V6_HOSTS.__and__, set(sys_flags))):
            return True
    except struct.error:
        # Something is too short, or not at its position for two IPv4 hosts.
        pass
    return all(
        leads_to(queue, number, record) for number, record in enumerate(records, queue_offset)
    )


@lru_cache(maxsize=128)
def _text(length: int) -> struct.Struct:
    return struct.Struct(f"{length}s")


def ends_right(queue: ConsumeQueue, queue_offset: int, records: memoryview, last_at: int) -> bool:
    """Whether the last of adjacent records has the right queue offset; then all of them have.

    Args:
        last_at: where it begins.
    """
    if queue_offset < queue.trusted_from:
        return leads_to(queue, queue_offset, records[last_at:])
    return len(records) - last_at >= FIXED_BYTES_V4 and NUMBER.unpack_from(records, last_at) == (
        len(records) - last_at,
        queue.queue_id,
        queue_offset,
    )


def record_of(log: CommitLog, queue: ConsumeQueue, number: int, offset: int) -> Scanned | None:
    """The record at an offset of the log, if it has this queue offset."""
    log_file = log.row.at(offset)
    if log_file is None or offset >= log.end:
        return None
    view = log_file.file.view(0, log.file_bytes)
    record = scan_record(view, offset - log_file.start, log_file.start, check_crc=False)
    if record is None:
        return None
    place = record.topic, record.queue_id, record.queue_offset
    return record if place == (queue.topic.encode(), queue.queue_id, number) else None


def _is_of(queue: ConsumeQueue, queue_offset: int, record: memoryview) -> bool:
    # A record contains its own offset. It does not matter here, so we pass what it expects.
    _, _, _, start, _ = PLACE.unpack_from(record)
    found = scan_record(record, 0, start, check_crc=False)
    return found is not None and (found.topic, found.queue_id, found.queue_offset) == (
        queue.topic.encode(),
        queue.queue_id,
        queue_offset,
    )
