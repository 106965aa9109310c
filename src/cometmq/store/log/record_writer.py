"""From messages to the bytes of their records at their final offsets: columns in, one piece of the log out.

This runs for every message and makes no decisions: it could be replaced by compiled code.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from itertools import repeat
from typing import Final

from cometmq.base.errors import RecordTooLarge
from cometmq.model.messages.checksum import crc32
from cometmq.model.messages.properties import TEXT_BYTES_MAX
from cometmq.model.messages.record_layout import (
    CRC_MASK,
    HEAD_V4,
    HOST_V4_BYTES,
    TEXT_LENGTH,
    V6_HOSTS,
    head,
    host_bits,
    magic_of,
)
from cometmq.store.log.new_messages import NewMessages

_FIXED_BYTES: Final = HEAD_V4.size + TEXT_LENGTH.size - 2 * HOST_V4_BYTES
"""Size of a record without hosts, body, topic and properties."""
ALIKE_MIN: Final = 4
"""From this many records of one shape, one format packs them at half the cost. For fewer, checking costs more."""


def record_sizes(
    new: NewMessages, topic_fields: list[bytes], store_host: bytes, body_bytes_max: int
) -> list[int]:
    """The sizes of the messages' records.

    Raises:
        RecordTooLarge: body or properties exceed their limit.
    """
    fixed = _FIXED_BYTES + len(store_host)
    sizes: list[int] = []
    for body, text, topic_field, born_host in zip(
        new.bodies, new.properties, topic_fields, new.born_hosts, strict=True
    ):
        body_bytes, text_bytes = len(body), len(text)
        if body_bytes > body_bytes_max or text_bytes > TEXT_BYTES_MAX:
            _refuse(body_bytes, text_bytes, body_bytes_max)
        sizes.append(
            fixed + body_bytes + text_bytes + len(topic_field) + len(born_host or store_host)
        )
    return sizes


def _refuse(body_bytes: int, text_bytes: int, body_bytes_max: int) -> None:
    if body_bytes > body_bytes_max:
        raise RecordTooLarge(f"body of {body_bytes} bytes, at most {body_bytes_max} are allowed")
    raise RecordTooLarge(f"properties of {text_bytes} bytes, at most {TEXT_BYTES_MAX} are allowed")


def lay_out(
    new: NewMessages,
    sizes: list[int],
    topic_fields: list[bytes],
    queue_offsets: list[int],
    physical_offsets: list[int],
    store_timestamp: int,
    store_host: bytes,
) -> bytes:
    """The records in sequence.

    Args:
        sizes: from ``record_sizes``.
        topic_fields: the topics, each preceded by its length.
    """
    if len(sizes) >= ALIKE_MIN:
        body_bytes, text_bytes = len(new.bodies[0]), len(new.properties[0])
        topic_bytes, born_bytes = len(topic_fields[0]), len(new.born_hosts[0])
        if (
            set(sizes) == {sizes[0]}
            and set(map(len, new.bodies)) == {body_bytes}
            and set(map(len, new.properties)) == {text_bytes}
            and set(map(len, new.born_hosts)) == {born_bytes}
            and born_bytes
        ):
            shape = _shape(born_bytes, len(store_host), body_bytes, topic_bytes, text_bytes)
            bits = host_bits(born_bytes, len(store_host))
            return b"".join(
                map(
                    shape.pack,
                    sizes,
                    repeat(magic_of(topic_bytes)),
                    [crc & CRC_MASK for crc in map(crc32, new.bodies)],
                    new.queue_ids,
                    new.flags,
                    queue_offsets,
                    physical_offsets,
                    [flag & ~V6_HOSTS | bits for flag in new.sys_flags],
                    new.born_timestamps,
                    new.born_hosts,
                    repeat(store_timestamp),
                    repeat(store_host),
                    new.reconsume_times,
                    new.prepared_transaction_offsets,
                    repeat(body_bytes),
                    new.bodies,
                    topic_fields,
                    repeat(text_bytes),
                    new.properties,
                )
            )
    return b"".join(
        _parts(
            new, sizes, topic_fields, queue_offsets, physical_offsets, store_timestamp, store_host
        )
    )


@lru_cache(maxsize=256)
def _shape(
    born_bytes: int, store_bytes: int, body_bytes: int, topic_bytes: int, text_bytes: int
) -> struct.Struct:
    """The format of one whole record with parts of these sizes."""
    before_body = head(born_bytes, store_bytes).format
    return struct.Struct(
        f"{before_body}{body_bytes}s{topic_bytes}s{TEXT_LENGTH.format[1:]}{text_bytes}s"
    )


def _parts(
    new: NewMessages,
    sizes: list[int],
    topic_fields: list[bytes],
    queue_offsets: list[int],
    physical_offsets: list[int],
    store_timestamp: int,
    store_host: bytes,
) -> list[bytes]:
    store_bytes = len(store_host)
    parts: list[bytes] = []
    for at, size_bytes in enumerate(sizes):
        body, topic_field, text = new.bodies[at], topic_fields[at], new.properties[at]
        born_host = new.born_hosts[at] or store_host
        born_bytes = len(born_host)
        parts += (
            head(born_bytes, store_bytes).pack(
                size_bytes,
                magic_of(len(topic_field)),
                crc32(body) & CRC_MASK,
                new.queue_ids[at],
                new.flags[at],
                queue_offsets[at],
                physical_offsets[at],
                new.sys_flags[at] & ~V6_HOSTS | host_bits(born_bytes, store_bytes),
                new.born_timestamps[at],
                born_host,
                store_timestamp,
                store_host,
                new.reconsume_times[at],
                new.prepared_transaction_offsets[at],
                len(body),
            ),
            body,
            topic_field,
            TEXT_LENGTH.pack(len(text)),
            text,
        )
    return parts
