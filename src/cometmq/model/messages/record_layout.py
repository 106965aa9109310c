"""The layout of a record. This is its only definition: whatever reads or writes records uses it.

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
from functools import lru_cache
from typing import Final

MAGIC_V1: Final = 0xDAA320A7
MAGIC_V2: Final = 0xDAA320AB
MAGIC_BLANK: Final = 0xCBD43194
MAGIC_START: Final = b"\xda\xa3\x20"
"""The bytes that both magics of a record begin with: a search looks for them, ``MAGIC_AT`` bytes after its start."""

BLANK_BYTES: Final = 8
"""A file must have room for a blank record (size + magic) at its end."""
TOPIC_BYTES_V1_MAX: Final = 127
"""A longer topic needs a V2 record, with one more byte for its length."""
CRC_MASK: Final = 0x7FFFFFFF

BORN_V6: Final = 16
STORE_V6: Final = 32
V6_HOSTS: Final = BORN_V6 | STORE_V6
"""The system flag bits of IPv6 hosts, as plain integers: an enum's operators cost more than the rest of a read."""
HOST_V4_BYTES: Final = 8
HOST_V6_BYTES: Final = 20
V6_EXTRA: Final = HOST_V6_BYTES - HOST_V4_BYTES

# Names and struct codes in order: up to the born host, and from after the store host up to the body.
HEAD_FIELDS: Final = (
    ("size", "i"),
    ("magic", "I"),
    ("crc", "I"),
    ("queue_id", "i"),
    ("flag", "i"),
    ("queue_offset", "q"),
    ("physical_offset", "q"),
    ("sys_flag", "i"),
    ("born_timestamp", "q"),
)
TAIL_FIELDS: Final = (("reconsume_times", "i"), ("prepared", "q"), ("body_bytes", "i"))
_HEAD: Final = "".join(code for _, code in HEAD_FIELDS)
_TAIL: Final = "".join(code for _, code in TAIL_FIELDS)

SIZE: Final = struct.Struct(">i")
START: Final = struct.Struct(">iI")
"""Size and magic: a blank record consists of them, and every other record begins with them."""
MAGIC_AT: Final = 4
CRC_FIELD: Final = slice(8, 12)
SYS_FLAG_AT: Final = 36
BORN_HOST_AT: Final = 48
STORED_AT: Final = BORN_HOST_AT + HOST_V4_BYTES
"""Position of the store timestamp after an IPv4 born host."""

PLACE: Final = struct.Struct(">iI12xqqi")
"""Size, magic, queue offset, physical offset and system flag: they tell whether a record is the expected one."""
NUMBER: Final = struct.Struct(">i8xi4xq")
"""Size, queue id and queue offset: which message of a queue a record is."""
NUMBER_AND_BODY_V4: Final = struct.Struct(">i8xi4xq8xi44xi")
"""The same with the system flag and, if both hosts are IPv4, the length of the body."""
CHECKED: Final = struct.Struct(">iII16xqi44xi")
"""Size, magic, checksum, place, system flag and, if both hosts are IPv4, the length of the body."""
CHECKED_WITH_NUMBER: Final = struct.Struct(">iIIi4xqqi44xi")
"""The same with queue id and queue offset before the place."""
TIMESTAMP: Final = struct.Struct(">q")
TAIL: Final = struct.Struct(">" + _TAIL)
BODY_LENGTH: Final = struct.Struct(">i")
TEXT_LENGTH: Final = struct.Struct(">H")


@lru_cache(maxsize=4)
def head(born_host_bytes: int, store_host_bytes: int) -> struct.Struct:
    """Everything up to the body."""
    return struct.Struct(f">{_HEAD}{born_host_bytes}sq{store_host_bytes}s{_TAIL}")


HEAD_V4: Final = head(HOST_V4_BYTES, HOST_V4_BYTES)
BODY_AT_V4: Final = HEAD_V4.size
FIXED_BYTES_V4: Final = BODY_AT_V4 + 1 + TEXT_LENGTH.size
"""A V1 record with two IPv4 hosts and without body, topic and properties."""


def stored_at(sys_flag: int) -> int:
    """Where the store timestamp is."""
    return STORED_AT + V6_EXTRA if sys_flag & BORN_V6 else STORED_AT


def body_at(sys_flag: int) -> int:
    """Where the body begins; its length is in the four bytes before it."""
    hosts = sys_flag & V6_HOSTS
    return BODY_AT_V4 + V6_EXTRA * hosts.bit_count() if hosts else BODY_AT_V4


def host_bits(born_host_bytes: int, store_host_bytes: int) -> int:
    """The bits of the system flag that say how long the hosts are."""
    return (BORN_V6 if born_host_bytes == HOST_V6_BYTES else 0) | (
        STORE_V6 if store_host_bytes == HOST_V6_BYTES else 0
    )


def topic_field(topic: bytes) -> bytes:
    """The topic with its length in front."""
    return len(topic).to_bytes(1 if len(topic) <= TOPIC_BYTES_V1_MAX else 2, "big") + topic


def magic_of(topic_field_bytes: int) -> int:
    return MAGIC_V1 if topic_field_bytes <= 1 + TOPIC_BYTES_V1_MAX else MAGIC_V2
