"""Records and their parts: the store writes them, a pull ships them unchanged, the client decodes them.

``record_layout`` defines where everything is. This module reads and writes single records; ``store.log.record_writer``
writes many at once.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from cometmq.base.errors import CometError
from cometmq.model.address import host_text
from cometmq.model.messages.checksum import crc32
from cometmq.model.messages.message_id import offset_id_text
from cometmq.model.messages.properties import parse_properties
from cometmq.model.messages.record_layout import (
    BODY_AT_V4,
    BODY_LENGTH,
    BORN_HOST_AT,
    BORN_V6,
    CRC_MASK,
    FIXED_BYTES_V4,
    HEAD_V4,
    HOST_V4_BYTES,
    HOST_V6_BYTES,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    START,
    STORE_V6,
    SYS_FLAG_AT,
    TAIL,
    TEXT_LENGTH,
    TIMESTAMP,
    V6_HOSTS,
    body_at,
    head,
    host_bits,
    magic_of,
    topic_field,
)


class BadRecord(CometError):
    """Bytes that are not a valid record."""


@dataclass(slots=True)
class Record:
    """A record split into its parts. ``body`` is as stored, possibly compressed; ``properties`` is the raw text."""

    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    size_bytes: int
    flag: int
    sys_flag: int
    born_timestamp: int
    born_host: bytes
    store_timestamp: int
    store_host: bytes
    reconsume_times: int
    prepared_transaction_offset: int
    body_crc: int
    body: bytes
    properties_text: str
    magic: int = MAGIC_V1
    _properties: dict[str, str] | None = field(default=None, repr=False, compare=False)

    @property
    def properties(self) -> dict[str, str]:
        if self._properties is None:
            self._properties = parse_properties(self.properties_text)
        return self._properties

    def is_at(self, topic: str, queue_id: int, queue_offset: int) -> bool:
        """Whether this is its place. A queue entry that stands in for a lost one points to some other record."""
        return (self.topic, self.queue_id, self.queue_offset) == (topic, queue_id, queue_offset)

    @property
    def offset_id(self) -> str:
        return offset_id_text(self.store_host, self.physical_offset)

    @property
    def born_address(self) -> str:
        return host_text(self.born_host)

    @property
    def store_address(self) -> str:
        return host_text(self.store_host)


def body_crc(body: bytes) -> int:
    return crc32(body) & CRC_MASK


def encode_record(
    *,
    topic: bytes,
    queue_id: int,
    queue_offset: int,
    physical_offset: int,
    flag: int,
    sys_flag: int,
    born_timestamp: int,
    born_host: bytes,
    store_timestamp: int,
    store_host: bytes,
    reconsume_times: int,
    prepared_transaction_offset: int,
    body: bytes,
    properties: bytes,
) -> bytes:
    """The record's bytes. The host bits of ``sys_flag`` must agree with the hosts."""
    born_bytes, store_bytes = len(born_host), len(store_host)
    assert sys_flag & V6_HOSTS == host_bits(born_bytes, store_bytes), (sys_flag, born_host)
    before_body = head(born_bytes, store_bytes)
    topic_part = topic_field(topic)
    size = before_body.size + len(body) + len(topic_part) + TEXT_LENGTH.size + len(properties)
    return b"".join(
        (
            before_body.pack(
                size,
                magic_of(len(topic_part)),
                crc32(body) & CRC_MASK,
                queue_id,
                flag,
                queue_offset,
                physical_offset,
                sys_flag,
                born_timestamp,
                born_host,
                store_timestamp,
                store_host,
                reconsume_times,
                prepared_transaction_offset,
                len(body),
            ),
            body,
            topic_part,
            TEXT_LENGTH.pack(len(properties)),
            properties,
        )
    )


def encode_blank(remaining_bytes: int) -> bytes:
    """The marker that fills the rest of a log file."""
    return START.pack(remaining_bytes, MAGIC_BLANK)


def peek(buffer: bytes | memoryview, position: int) -> tuple[int, int]:
    """Size and magic of what starts at ``position``."""
    size, magic = START.unpack_from(buffer, position)
    return size, magic


Parts = tuple[
    str, int, int, int, int, int, int, int, bytes, int, bytes, int, int, int, bytes, str, int
]
"""A record's fields in the order of ``Record``."""


def read_record(buffer: bytes | memoryview, position: int, check_crc: bool) -> Parts:
    """Like ``decode_record``, but as a bare tuple: for readers of many records that build something else from them."""
    at_hand = len(buffer) - position
    try:
        (
            size,
            magic,
            crc,
            queue_id,
            flag,
            queue_offset,
            physical_offset,
            sys_flag,
            born_timestamp,
            born_host,
            store_timestamp,
            store_host,
            reconsume_times,
            prepared_offset,
            body_bytes,
        ) = HEAD_V4.unpack_from(buffer, position)
        if magic != MAGIC_V1 and magic != MAGIC_V2:
            raise BadRecord(f"magic {magic:#x} is not that of a record")
        if size < FIXED_BYTES_V4 or size > at_hand:
            raise BadRecord(f"record of {size} bytes with {at_hand} at hand")
        if physical_offset < 0:
            raise BadRecord(f"record at the physical offset {physical_offset}")
        at = position + BODY_AT_V4
        if sys_flag & V6_HOSTS:
            at = position + BORN_HOST_AT
            born_bytes = HOST_V6_BYTES if sys_flag & BORN_V6 else HOST_V4_BYTES
            born_host = bytes(buffer[at : at + born_bytes])
            at += born_bytes
            (store_timestamp,) = TIMESTAMP.unpack_from(buffer, at)
            at += TIMESTAMP.size
            store_bytes = HOST_V6_BYTES if sys_flag & STORE_V6 else HOST_V4_BYTES
            store_host = bytes(buffer[at : at + store_bytes])
            at += store_bytes
            reconsume_times, prepared_offset, body_bytes = TAIL.unpack_from(buffer, at)
            at += TAIL.size
        end = position + size
        topic_at = at + body_bytes
        if body_bytes < 0 or topic_at > end:
            raise BadRecord(f"body of {body_bytes} bytes in a record of {size}")
        body = bytes(buffer[at:topic_at])
        if magic == MAGIC_V1:
            at = topic_at + 1
            topic_end = at + buffer[topic_at]
        else:
            at = topic_at + 2
            topic_end = at + (buffer[topic_at] << 8 | buffer[topic_at + 1])
        properties_at = topic_end + 2
        if properties_at > end:
            raise BadRecord(f"parts of {properties_at - position} bytes in a record of {size}")
        properties_end = properties_at + (buffer[topic_end] << 8 | buffer[topic_end + 1])
    except (struct.error, IndexError) as error:
        raise BadRecord(f"cut off after {at_hand} bytes") from error
    if properties_end != end:
        raise BadRecord(f"parts of {properties_end - position} bytes in a record of {size}")
    if check_crc and body_bytes and crc32(body) & CRC_MASK != crc:
        raise BadRecord(f"body does not match its checksum {crc}")
    try:
        topic = str(buffer[at:topic_end], "utf-8")
        properties_text = str(buffer[properties_at:end], "utf-8")
    except UnicodeDecodeError as error:
        raise BadRecord(f"topic or properties are not UTF-8: {error}") from error
    return (
        topic,
        queue_id,
        queue_offset,
        physical_offset,
        size,
        flag,
        sys_flag,
        born_timestamp,
        born_host,
        store_timestamp,
        store_host,
        reconsume_times,
        prepared_offset,
        crc,
        body,
        properties_text,
        magic,
    )


def decode_record(
    buffer: bytes | memoryview, position: int = 0, *, check_crc: bool = True
) -> Record:
    """The record that starts at ``position``.

    Raises:
        BadRecord: not a record, truncated, or (with ``check_crc``) a body that does not match its checksum.
    """
    return Record(*read_record(buffer, position, check_crc))


def readable_record(found: bytes | memoryview | None) -> Record | None:
    """What was found at a place of the log, its checksum left aside; None if nothing was, or it is no record."""
    if found is None:
        return None
    try:
        return decode_record(found, check_crc=False)
    except BadRecord:
        return None


def properties_text(record: bytes | memoryview) -> str:
    """The property text of one whole record; body and topic are skipped.

    Raises:
        BadRecord: its lengths do not fit, or the text is not UTF-8.
    """
    try:
        # The host bits are in the last byte of the flag.
        at = body_at(record[SYS_FLAG_AT + 3])
        (body_bytes,) = BODY_LENGTH.unpack_from(record, at - BODY_LENGTH.size)
        topic_at = at + body_bytes
        if body_bytes < 0:
            raise BadRecord(f"body of {body_bytes} bytes")
        if record[7] == MAGIC_V1 & 0xFF:
            topic_end = topic_at + 1 + record[topic_at]
        else:
            topic_end = topic_at + 2 + (record[topic_at] << 8 | record[topic_at + 1])
        start = topic_end + 2
        end = start + (record[topic_end] << 8 | record[topic_end + 1])
        if end != len(record):
            raise BadRecord(f"parts of {end} bytes in a record of {len(record)}")
        return str(record[start:], "utf-8")
    except (struct.error, IndexError) as error:
        raise BadRecord(f"cut off after {len(record)} bytes") from error
    except UnicodeDecodeError as error:
        raise BadRecord(f"properties are not UTF-8: {error}") from error


def decode_records(buffer: bytes | memoryview, *, check_crc: bool = True) -> list[Record]:
    """The records of a pull reply, in order."""
    records: list[Record] = []
    position = 0
    while position < len(buffer):
        record = Record(*read_record(buffer, position, check_crc))
        records.append(record)
        position += record.size_bytes
    return records
