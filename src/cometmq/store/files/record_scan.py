"""A record in the bytes of a log, trusting nothing: checked before it is believed, or searched for.

``log.log_scan`` walks a store's own log with this, from record to record; readers of its files search them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

import msgspec

from cometmq.model.messages.checksum import crc32
from cometmq.model.messages.record_layout import (
    BODY_AT_V4,
    BODY_LENGTH,
    CRC_MASK,
    FIXED_BYTES_V4,
    HEAD_V4,
    MAGIC_AT,
    MAGIC_START,
    MAGIC_V1,
    MAGIC_V2,
    TIMESTAMP,
    V6_HOSTS,
    body_at,
    stored_at,
)

RECORD_BYTES_MAX: Final = 1 << 29
"""A size beyond is damage: nobody configures messages of half a gigabyte."""

SECTOR_BYTES: Final = 512
SEARCH_BYTES: Final = 1 << 20

Found = TypeVar("Found")


class Scanned(msgspec.Struct, frozen=True, gc=False):
    """What recovery and the follower need of a record."""

    physical_offset: int
    size_bytes: int
    queue_id: int
    queue_offset: int
    sys_flag: int
    store_timestamp: int
    topic: bytes
    properties: bytes


def scan_record(
    view: memoryview, position: int, file_start: int, *, check_crc: bool
) -> Scanned | None:
    """The record that starts at ``position`` of a log file, or None when what is there is no sound record.

    Sound means: a record's magic, its own physical offset, parts that add up to its size, and the body's checksum.
    """
    limit = len(view)
    if position + FIXED_BYTES_V4 > limit:
        return None
    (
        size,
        magic,
        crc,
        queue_id,
        _,
        queue_offset,
        physical_offset,
        sys_flag,
        _,
        _,
        store_ms,
        _,
        _,
        _,
        body_bytes,
    ) = HEAD_V4.unpack_from(view, position)
    end = position + size
    if magic != MAGIC_V1 and magic != MAGIC_V2:
        return None
    if physical_offset != file_start + position or size < FIXED_BYTES_V4 or end > limit:
        return None
    at = position + BODY_AT_V4
    if sys_flag & V6_HOSTS:
        at = position + body_at(sys_flag)
        if at > end:
            return None
        (store_ms,) = TIMESTAMP.unpack_from(view, position + stored_at(sys_flag))
        (body_bytes,) = BODY_LENGTH.unpack_from(view, at - BODY_LENGTH.size)
    topic_at = at + body_bytes
    if body_bytes < 0 or topic_at + 3 > end:
        return None
    if magic == MAGIC_V1:
        topic_bytes = view[topic_at]
        topic_at += 1
    else:
        topic_bytes = view[topic_at] << 8 | view[topic_at + 1]
        topic_at += 2
    properties_at = topic_at + topic_bytes + 2
    if properties_at > end:
        return None
    if view[properties_at - 2] << 8 | view[properties_at - 1] != end - properties_at:
        return None
    if check_crc and body_bytes and crc32(view[at : at + body_bytes]) & CRC_MASK != crc:
        return None
    return Scanned(
        physical_offset,
        size,
        queue_id,
        queue_offset,
        sys_flag,
        store_ms,
        bytes(view[topic_at : topic_at + topic_bytes]),
        bytes(view[properties_at:end]),
    )


def is_torn(view: memoryview, position: int, record: Scanned) -> bool:
    """Whether a record whose write was never synced has lost a piece that its checksum does not cover.

    A lost piece of a log file is zero, and whole sectors are lost. So: zeros in the topic, at the end of the
    properties, or in all of the properties that lie in one sector.
    """
    properties = record.properties
    if b"\0" in record.topic:
        return True
    if b"\0" not in properties:
        return False
    end = position + record.size_bytes
    at = end - len(properties)
    while at < end:
        until = min((at // SECTOR_BYTES + 1) * SECTOR_BYTES, end)
        if not any(view[at:until]):
            return True
        at = until
    return properties.endswith(b"\0")


def search(
    read: Callable[[int, int], bytes],
    record_at: Callable[[int], Found | None],
    start: int,
    stop: int,
) -> Found | None:
    """The first record that starts within ``start`` … ``stop``, wherever it is.

    Args:
        read: so many bytes from a place on; fewer only at the end of what there is.
        record_at: what is at a place where a record may start; None when that is none.
    """
    at = start
    while at < stop:
        # The overlap finds a magic that lies across the border of two searches.
        for hit in _candidates(read(at, SEARCH_BYTES + MAGIC_AT + len(MAGIC_START) - 1)):
            if at + hit >= stop:
                return None
            found = record_at(at + hit)
            if found is not None:
                return found
        at += SEARCH_BYTES
    return None


def _candidates(data: bytes) -> Iterator[int]:
    hit = data.find(MAGIC_START, MAGIC_AT)
    while hit >= 0:
        yield hit - MAGIC_AT
        hit = data.find(MAGIC_START, hit + 1)
