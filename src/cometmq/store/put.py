"""What goes into the store, and what it answers."""

from __future__ import annotations

import msgspec


class NewMessage(msgspec.Struct, kw_only=True):
    """A message to append, decided in every detail but its offsets and its store time."""

    topic: str
    queue_id: int
    body: bytes
    properties: bytes
    """The final property text, UTF-8."""
    tags_code: int = 0
    """What the queue entry holds for the tag filter. In the schedule topic the store puts the deliver time instead."""
    keys: list[str] = []
    """Keys for the index: the unique key first, then the parts of KEYS."""
    flag: int = 0
    sys_flag: int = 0
    """The bits that tell IPv6 hosts are set by the store."""
    born_timestamp: int = 0
    born_host: bytes = b""
    """Packed address of the sender; empty means the store's own host."""
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0


class NewBatch(msgspec.Struct, kw_only=True):
    """Plain messages of one queue by columns, see ``NewMessage``: none of a transaction or of the schedule topic."""

    topic: str
    queue_id: int
    flags: list[int]
    bodies: list[bytes]
    properties: list[bytes]
    tags_codes: list[int]
    keys: list[str]
    """Of the messages, one after the other."""
    key_counts: list[int] | None = None
    """How many of them each message has; None: one."""
    sys_flag: int = 0
    born_timestamp: int = 0
    born_host: bytes = b""
    reconsume_times: int = 0


class StoredBatch(msgspec.Struct, frozen=True, gc=False):
    """Where the messages of a batch lie now, one behind the other."""

    physical_offsets: list[int]
    size_bytes: int
    """Of all of them."""
    queue_offset: int
    """Of the first."""
    store_timestamp: int

    @property
    def end_offset(self) -> int:
        return self.physical_offsets[0] + self.size_bytes


class Stored(msgspec.Struct, frozen=True, gc=False):
    """Where a message lies now. Readable at once; durable once ``watermarks.flushed`` reaches ``end_offset``."""

    physical_offset: int
    size_bytes: int
    queue_offset: int
    store_timestamp: int

    @property
    def end_offset(self) -> int:
        return self.physical_offset + self.size_bytes
