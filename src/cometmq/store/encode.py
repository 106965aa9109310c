"""From a message to the bytes of its record, at the place it got.

The layout is that of ``model.record``; here it is written for speed: one ``struct`` for everything up to the body
when both hosts are IPv4, which is nearly always.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, count, repeat
from typing import Final
from zlib import crc32

from cometmq.base.errors import RecordTooLarge
from cometmq.model.properties import TEXT_BYTES_MAX
from cometmq.model.record import MAGIC_V1, MAGIC_V2
from cometmq.store.put import NewBatch, NewMessage

_HEAD_V4 = struct.Struct(">iIIiiqqiq8sq8siqi")
_HEAD = struct.Struct(">iIIiiqqiq")
_STORED = struct.Struct(">q")
_TAIL = struct.Struct(">iqi")
_LENGTH = struct.Struct(">H")
_PLACE = struct.Struct(">iIIiiqq")
_ORIGIN = struct.Struct(">iq")
_REPEATS = struct.Struct(">iq")
_BODY_LENGTH = struct.Struct(">i")
_FIXED_BYTES: Final = 88 + 2
_HOST_V4_BYTES: Final = 8
_TOPIC_V1_MAX: Final = 128
"""Length byte and 127 bytes of text; a longer topic makes it a V2 record."""
SLACK_BYTES: Final = 65_536
"""A record may exceed the largest body by this much."""


def record_bytes(
    message: NewMessage, topic_field: bytes, store_host: bytes, body_bytes_max: int
) -> int:
    """Size of the record a message becomes.

    Raises:
        RecordTooLarge: body or properties above their limit.
    """
    body_bytes = len(message.body)
    properties_bytes = len(message.properties)
    if body_bytes > body_bytes_max or properties_bytes > TEXT_BYTES_MAX:
        check_bytes(body_bytes, properties_bytes, body_bytes_max)
    born_bytes = len(message.born_host) or len(store_host)
    hosts_extra = born_bytes + len(store_host) - 2 * _HOST_V4_BYTES
    return _FIXED_BYTES + body_bytes + len(topic_field) + properties_bytes + hosts_extra


def check_bytes(body_bytes: int, properties_bytes: int, body_bytes_max: int) -> None:
    """Raises RecordTooLarge."""
    if body_bytes > body_bytes_max:
        raise RecordTooLarge(f"body of {body_bytes} bytes, at most {body_bytes_max} are allowed")
    if properties_bytes > TEXT_BYTES_MAX:
        raise RecordTooLarge(
            f"properties of {properties_bytes} bytes, at most {TEXT_BYTES_MAX} are allowed"
        )


def encode(
    message: NewMessage,
    size_bytes: int,
    topic_field: bytes,
    queue_offset: int,
    physical_offset: int,
    store_timestamp: int,
    store_host: bytes,
) -> bytes:
    """The record. ``topic_field`` is the topic with its length in front, ``size_bytes`` as ``record_bytes`` says."""
    return b"".join(
        encode_parts(
            message,
            size_bytes,
            topic_field,
            queue_offset,
            physical_offset,
            store_timestamp,
            store_host,
        )
    )


def encode_parts(
    message: NewMessage,
    size_bytes: int,
    topic_field: bytes,
    queue_offset: int,
    physical_offset: int,
    store_timestamp: int,
    store_host: bytes,
) -> tuple[bytes, ...]:
    """The same in parts, for somebody who joins several records."""
    body = message.body
    properties = message.properties
    born_host = message.born_host or store_host
    magic = MAGIC_V1 if len(topic_field) <= _TOPIC_V1_MAX else MAGIC_V2
    sys_flag = message.sys_flag & ~48
    if len(born_host) == 8 and len(store_host) == 8:
        return (
            _HEAD_V4.pack(
                size_bytes,
                magic,
                crc32(body) & 0x7FFFFFFF,
                message.queue_id,
                message.flag,
                queue_offset,
                physical_offset,
                sys_flag,
                message.born_timestamp,
                born_host,
                store_timestamp,
                store_host,
                message.reconsume_times,
                message.prepared_transaction_offset,
                len(body),
            ),
            body,
            topic_field,
            _LENGTH.pack(len(properties)),
            properties,
        )
    sys_flag |= (16 if len(born_host) == 20 else 0) | (32 if len(store_host) == 20 else 0)
    head = (
        _HEAD.pack(
            size_bytes,
            magic,
            crc32(body) & 0x7FFFFFFF,
            message.queue_id,
            message.flag,
            queue_offset,
            physical_offset,
            sys_flag,
            message.born_timestamp,
        ),
        born_host,
        _STORED.pack(store_timestamp),
        store_host,
        _TAIL.pack(message.reconsume_times, message.prepared_transaction_offset, len(body)),
    )
    return (*head, body, topic_field, _LENGTH.pack(len(properties)), properties)


def batch_record_bytes(
    batch: NewBatch, topic_field: bytes, store_host: bytes, body_bytes_max: int
) -> list[int]:
    """``record_bytes`` of each. Raises RecordTooLarge."""
    body_sizes, text_sizes = list(map(len, batch.bodies)), list(map(len, batch.properties))
    check_bytes(max(body_sizes), max(text_sizes), body_bytes_max)
    hosts_bytes = (len(batch.born_host) or len(store_host)) + len(store_host)
    fixed = _FIXED_BYTES + len(topic_field) + hosts_bytes - 2 * _HOST_V4_BYTES
    return [fixed + body + text for body, text in zip(body_sizes, text_sizes, strict=True)]


def encode_batch(
    batch: NewBatch,
    sizes: list[int],
    topic_field: bytes,
    queue_offset: int,
    physical_offsets: list[int],
    store_timestamp: int,
    store_host: bytes,
) -> bytes:
    """The records of a batch, one behind the other. What they have in common is laid out once."""
    born_host = batch.born_host or store_host
    magic = MAGIC_V1 if len(topic_field) <= _TOPIC_V1_MAX else MAGIC_V2
    sys_flag = batch.sys_flag & ~48
    sys_flag |= (16 if len(born_host) == 20 else 0) | (32 if len(store_host) == 20 else 0)
    common = b"".join(
        (
            _ORIGIN.pack(sys_flag, batch.born_timestamp),
            born_host,
            _STORED.pack(store_timestamp),
            store_host,
            _REPEATS.pack(batch.reconsume_times, 0),
        )
    )
    body_bytes, text_bytes = len(batch.bodies[0]), len(batch.properties[0])
    if set(sizes) == {sizes[0]} and set(map(len, batch.bodies)) == {body_bytes}:
        # One layout fits all; the fields that are the same in each are packed again all the same, in C.
        before_body = common + _BODY_LENGTH.pack(body_bytes)
        before_text = topic_field + _LENGTH.pack(text_bytes)
        layout = _layout(len(before_body), body_bytes, len(before_text), text_bytes)
        return b"".join(
            map(
                layout.pack,
                sizes,
                repeat(magic),
                [crc & 0x7FFFFFFF for crc in map(crc32, batch.bodies)],
                repeat(batch.queue_id),
                batch.flags,
                count(queue_offset),
                physical_offsets,
                repeat(before_body),
                batch.bodies,
                repeat(before_text),
                batch.properties,
            )
        )
    return b"".join(
        chain.from_iterable(
            _batch_parts(batch, sizes, topic_field, queue_offset, physical_offsets, magic, common)
        )
    )


@lru_cache(maxsize=256)
def _layout(
    before_body_bytes: int, body_bytes: int, before_text_bytes: int, text_bytes: int
) -> struct.Struct:
    sizes = (before_body_bytes, body_bytes, before_text_bytes, text_bytes)
    return struct.Struct(_PLACE.format + "".join(f"{size}s" for size in sizes))


def _batch_parts(
    batch: NewBatch,
    sizes: list[int],
    topic_field: bytes,
    queue_offset: int,
    physical_offsets: list[int],
    magic: int,
    common: bytes,
) -> Iterator[tuple[bytes, ...]]:
    queue_id, pack = batch.queue_id, _PLACE.pack
    for flag, body, text, size_bytes, physical_offset in zip(
        batch.flags, batch.bodies, batch.properties, sizes, physical_offsets, strict=True
    ):
        crc = crc32(body) & 0x7FFFFFFF
        place = pack(size_bytes, magic, crc, queue_id, flag, queue_offset, physical_offset)
        yield (
            place,
            common,
            _BODY_LENGTH.pack(len(body)),
            body,
            topic_field,
            _LENGTH.pack(len(text)),
            text,
        )
        queue_offset += 1
