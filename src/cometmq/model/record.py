"""Byte layout of a record: the store writes it, a pull ships it unchanged, the client decodes it.

    at   width  field                          at   width  field
    0    4      total size                     56   8      store timestamp, ms
    4    4      magic                          64   8|20   store host
    8    4      CRC32 of the stored body       72   4      reconsume times
    12   4      queue id                       76   8      prepared transaction offset
    16   4      flag (the user's)              84   4+n    body
    20   8      queue offset                        1+n    topic (2+n in a V2 record)
    28   8      physical offset                     2+n    properties
    36   4      system flag
    40   8      born timestamp, ms
    48   8|20   born host: address, port

All integers are big-endian and signed. The positions from 56 on are those of two IPv4 hosts; an IPv6 host
(system flag 16 for the born, 32 for the store host) takes 12 bytes more.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final
from zlib import crc32

from cometmq.base.errors import CometError
from cometmq.model.address import host_text
from cometmq.model.message_id import offset_id_text
from cometmq.model.properties import parse_properties

MAGIC_V1: Final = 0xDAA320A7
MAGIC_V2: Final = 0xDAA320AB
MAGIC_BLANK: Final = 0xCBD43194
BLANK_BYTES: Final = 8
"""A file must keep room for a blank record (size + magic) at its end."""

FIXED_BYTES_V4: Final = 91
"""A V1 record with two IPv4 hosts and without body, topic and properties."""

QUEUE_OFFSET_AT: Final = 20
PHYSICAL_OFFSET_AT: Final = 28
SYS_FLAG_AT: Final = 36
BORN_HOST_AT: Final = 48

_V6_HOST: Final = 16 | 32
"""The system flag bits of IPv6 hosts, as plain integers: an enum's operators cost more than the rest of a read."""

# size, magic, crc, queue id, flag, queue offset, physical offset, sys flag, born timestamp
_HEAD = struct.Struct(">iIIiiqqiq")
# The same, and all that follows up to the body, with two IPv4 hosts: a read of such a record is one step.
_FIXED_V4 = struct.Struct(">iIIiiqqiq8sq8siqi")
# store timestamp
_STORED = struct.Struct(">q")
# reconsume times, prepared transaction offset, body length
_TAIL = struct.Struct(">iqi")
_BLANK = struct.Struct(">iI")
_INT = struct.Struct(">i")


class BadRecord(CometError):
    """Bytes that are no valid record."""


@dataclass(slots=True)
class Record:
    """A record in its parts. ``body`` is as stored, that is possibly compressed; ``properties`` is the raw text."""

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
    return crc32(body) & 0x7FFFFFFF


def record_size(
    *, born_host: bytes, store_host: bytes, body: bytes, topic: bytes, properties: bytes
) -> int:
    """Bytes a V1 record takes (a topic above 127 bytes makes it V2, one byte longer)."""
    hosts_extra = len(born_host) + len(store_host) - 16
    version_extra = 1 if len(topic) > 127 else 0
    return FIXED_BYTES_V4 + hosts_extra + version_extra + len(body) + len(topic) + len(properties)


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
    assert (len(born_host) == 20) == bool(sys_flag & 16), (born_host, sys_flag)
    assert (len(store_host) == 20) == bool(sys_flag & 32), (store_host, sys_flag)
    if len(topic) > 127:
        magic, topic_head = MAGIC_V2, len(topic).to_bytes(2, "big")
    else:
        magic, topic_head = MAGIC_V1, bytes((len(topic),))
    body_bytes = len(body)
    size = record_size(
        born_host=born_host, store_host=store_host, body=body, topic=topic, properties=properties
    )
    return b"".join(
        (
            _HEAD.pack(
                size,
                magic,
                crc32(body) & 0x7FFFFFFF,
                queue_id,
                flag,
                queue_offset,
                physical_offset,
                sys_flag,
                born_timestamp,
            ),
            born_host,
            _STORED.pack(store_timestamp),
            store_host,
            _TAIL.pack(reconsume_times, prepared_transaction_offset, body_bytes),
            body,
            topic_head,
            topic,
            len(properties).to_bytes(2, "big"),
            properties,
        )
    )


def encode_blank(remaining_bytes: int) -> bytes:
    """The marker that fills the rest of a log file."""
    return _BLANK.pack(remaining_bytes, MAGIC_BLANK)


def peek(buffer: bytes | memoryview, position: int) -> tuple[int, int]:
    """Size and magic of what starts at ``position``."""
    size, magic = _BLANK.unpack_from(buffer, position)
    return size, magic


Parts = tuple[
    str, int, int, int, int, int, int, int, bytes, int, bytes, int, int, int, bytes, str, int
]
"""A record's fields in the order of ``Record``."""


def read_record(buffer: bytes | memoryview, position: int, check_crc: bool) -> Parts:
    """What ``decode_record`` reads, as a bare tuple: for those who read many and build something else from it."""
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
        ) = _FIXED_V4.unpack_from(buffer, position)
        if magic != MAGIC_V1 and magic != MAGIC_V2:
            raise BadRecord(f"magic {magic:#x} is not that of a record")
        if size < FIXED_BYTES_V4 or size > at_hand:
            raise BadRecord(f"record of {size} bytes with {at_hand} at hand")
        at = position + _FIXED_V4.size
        if sys_flag & _V6_HOST:
            at = position + BORN_HOST_AT
            born_bytes = 20 if sys_flag & 16 else 8
            born_host = bytes(buffer[at : at + born_bytes])
            at += born_bytes
            (store_timestamp,) = _STORED.unpack_from(buffer, at)
            at += 8
            store_bytes = 20 if sys_flag & 32 else 8
            store_host = bytes(buffer[at : at + store_bytes])
            at += store_bytes
            reconsume_times, prepared_offset, body_bytes = _TAIL.unpack_from(buffer, at)
            at += _TAIL.size
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
    if check_crc and body_bytes and crc32(body) & 0x7FFFFFFF != crc:
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
        BadRecord: not a record, cut off, or (with ``check_crc``) a body that does not match its checksum.
    """
    return Record(*read_record(buffer, position, check_crc))


def properties_text(record: bytes | memoryview) -> str:
    """The property text of one whole record; body and topic are stepped over.

    Raises:
        BadRecord: the lengths in it do not fit, or the text is not UTF-8.
    """
    try:
        # The host bits are in the last byte of the flag.
        hosts = record[SYS_FLAG_AT + 3] & _V6_HOST
        at = _FIXED_V4.size + 12 * hosts.bit_count() if hosts else _FIXED_V4.size
        (body_bytes,) = _INT.unpack_from(record, at - 4)
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
    """The records of a pull reply, one behind the other."""
    records: list[Record] = []
    position = 0
    while position < len(buffer):
        record = Record(*read_record(buffer, position, check_crc))
        records.append(record)
        position += record.size_bytes
    return records
