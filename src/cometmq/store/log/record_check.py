"""Whether the bytes of a record are still what was written: checked where it is handed out.

RocketMQ's checksum covers the body. Of the rest, magic, size, place and the lengths of the parts must agree with each
other. A record may end with the property ``__CRC32#``, a second checksum over everything before it: RocketMQ 5 writes
it with ``enabledAppendPropCRC``. It is only believed if asked for: a client that forwards a message sends it along.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from operator import sub
from typing import Final

from cometmq.model.messages.checksum import crc32
from cometmq.model.messages.record_layout import (
    BLANK_BYTES,
    BODY_AT_V4,
    BODY_LENGTH,
    CHECKED,
    CHECKED_WITH_NUMBER,
    CRC_MASK,
    FIXED_BYTES_V4,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    START,
    TEXT_LENGTH,
    V6_HOSTS,
    body_at,
)

_unpack_head = CHECKED.unpack_from
_unpack_full_head = CHECKED_WITH_NUMBER.unpack_from

JUDGED_BYTES_MAX: Final = 64 * 1024 * 1024
"""Whoever has to wait for the rest of a record waits for no more than this: the size itself may be damaged."""

_MARK: Final = b"__CRC32#\x01"
_DIGITS: Final = 10
MARKED_BYTES: Final = len(_MARK) + _DIGITS + 1
"""The length of the property with the checksum of the whole record, its separators included."""


def is_sound(record: memoryview, place: int) -> bool:
    """Whether these bytes, which a queue entry or another reference leads to, are a record and undamaged.

    Args:
        place: the offset of the log at which they are.
    """
    size_bytes = len(record)
    if size_bytes < FIXED_BYTES_V4:
        return False
    body_bytes: int
    found_bytes, magic, crc, found_place, sys_flag, body_bytes = _unpack_head(record)
    if found_bytes != size_bytes or found_place != place:
        return False
    start = BODY_AT_V4
    if sys_flag & V6_HOSTS:
        start = body_at(sys_flag)
        if start > size_bytes:
            return False
        (body_bytes,) = BODY_LENGTH.unpack_from(record, start - BODY_LENGTH.size)
    topic_at = start + body_bytes
    if body_bytes < 0 or topic_at + 3 > size_bytes:
        return False
    if body_bytes and crc32(record[start:topic_at]) & CRC_MASK != crc:
        return False
    if magic == MAGIC_V1:
        at = topic_at + 3 + record[topic_at]
    elif magic == MAGIC_V2:
        at = topic_at + 4 + (record[topic_at] << 8 | record[topic_at + 1])
    else:
        return False
    return at <= size_bytes and record[at - 2] << 8 | record[at - 1] == size_bytes - at


def begins_soundly(data: bytes | bytearray, place: int, file_end: int) -> bool | None:
    """Whether bytes of a log begin with an undamaged record, or a blank one; None: too few of them to tell.

    Args:
        place: the offset of the log at which they are.
        file_end: where its file ends, which no record crosses.
    """
    if len(data) < BLANK_BYTES:
        return None
    size_bytes: int
    size_bytes, magic = START.unpack_from(data)
    if magic == MAGIC_BLANK:
        return size_bytes == file_end - place
    if magic not in (MAGIC_V1, MAGIC_V2):
        return False
    if not FIXED_BYTES_V4 <= size_bytes <= min(file_end - place, JUDGED_BYTES_MAX):
        return False
    if len(data) < size_bytes:
        return None
    return is_sound(memoryview(data)[:size_bytes], place)


def are_plainly_sound(
    records: Sequence[memoryview],
    places: Sequence[int],
    queue_id: int,
    queue_offset: int,
    topic_field: bytes,
) -> bool:
    """``is_sound`` for consecutive messages of one queue, in half the time. Some that are sound it does not recognize.

    Args:
        queue_offset: that of the first.
        topic_field: their topic with its length in front.
    """
    count = len(records)
    try:
        sizes, magics, crcs, queue_ids, numbers, found_places, sys_flags, body_bytes = zip(
            *map(_unpack_full_head, records), strict=True
        )
        if (
            magics.count(MAGIC_V1) != count
            or queue_ids.count(queue_id) != count
            or numbers != tuple(range(queue_offset, queue_offset + count))
            or found_places != tuple(places)
            or sizes != tuple(map(len, records))
            or any(map(V6_HOSTS.__and__, set(sys_flags)))
            or min(body_bytes) <= 0
        ):
            return False
        ends = [*map(BODY_AT_V4.__add__, body_bytes)]
        topics, lengths = zip(
            *map(_behind_body(len(topic_field)).unpack_from, records, ends), strict=True
        )
    except struct.error:
        return False
    others = len(topic_field) + 2
    return (
        topics.count(topic_field) == count
        and [*map(sub, sizes, ends)] == [*map(others.__add__, lengths)]
        and [
            crc32(record[BODY_AT_V4:end]) & CRC_MASK
            for record, end in zip(records, ends, strict=True)
        ]
        == [*crcs]
    )


def are_alike_and_sound(
    stretches: Sequence[memoryview],
    size_bytes: int,
    places: Sequence[int],
    queue_id: int,
    queue_offset: int,
    topic_field: bytes,
) -> bool:
    """``are_plainly_sound`` for records of one size, whose bodies are of one size, too, in two thirds of its time.

    Args:
        stretches: the records, those of a stretch one right behind the other.
    """
    if size_bytes < FIXED_BYTES_V4:
        return False
    body_bytes: int
    *_, body_bytes = _unpack_head(stretches[0])
    rest_bytes = size_bytes - BODY_AT_V4 - body_bytes - len(topic_field) - TEXT_LENGTH.size
    if body_bytes <= 0 or rest_bytes < 0:
        return False
    unpack = _alike(body_bytes, len(topic_field), rest_bytes).iter_unpack
    sizes, magics, crcs, queue_ids, numbers, found_places, sys_flags, lengths, topics, texts = zip(
        *chain.from_iterable(map(unpack, stretches)), strict=True
    )
    count = len(places)
    return (
        sizes.count(size_bytes) == count
        and magics.count(MAGIC_V1) == count
        and queue_ids.count(queue_id) == count
        and lengths.count(body_bytes) == count
        and topics.count(topic_field) == count
        and texts.count(rest_bytes) == count
        and numbers == tuple(range(queue_offset, queue_offset + count))
        and found_places == tuple(places)
        and not any(map(V6_HOSTS.__and__, set(sys_flags)))
        and [
            crc32(stretch[at : at + body_bytes]) & CRC_MASK
            for stretch in stretches
            for at in range(BODY_AT_V4, len(stretch), size_bytes)
        ]
        == [*crcs]
    )


@lru_cache(maxsize=128)
def _alike(body_bytes: int, topic_bytes: int, rest_bytes: int) -> struct.Struct:
    skipped = BODY_AT_V4 - CHECKED_WITH_NUMBER.size + body_bytes
    text_length = TEXT_LENGTH.format[1:]
    # Not the bodies: copies of megabytes cost more than everything else here.
    return struct.Struct(
        f"{CHECKED_WITH_NUMBER.format}{skipped}x{topic_bytes}s{text_length}{rest_bytes}x"
    )


@lru_cache(maxsize=128)
def _behind_body(topic_bytes: int) -> struct.Struct:
    return struct.Struct(f">{topic_bytes}s{TEXT_LENGTH.format[1:]}")


def is_sound_as_marked(record: memoryview, place: int) -> bool:
    """The same, and that the checksum of the whole record agrees if there is one."""
    if not is_sound(record, place):
        return False
    marked_at = len(record) - MARKED_BYTES
    mark = bytes(record[marked_at:])
    return not mark.startswith(_MARK) or mark == record_mark(record[:marked_at])


def record_mark(record: memoryview | bytes) -> bytes:
    """The property with the checksum of what comes before it. RocketMQ writes the lowest digit first."""
    digits = str(crc32(record) & CRC_MASK)[::-1].ljust(_DIGITS, "0")
    return _MARK + digits.encode() + b"\x02"
