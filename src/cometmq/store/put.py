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


class Stored(msgspec.Struct, frozen=True, gc=False):
    """Where a message lies now. Readable at once; durable once ``watermarks.flushed`` reaches ``end_offset``."""

    physical_offset: int
    size_bytes: int
    queue_offset: int
    store_timestamp: int

    @property
    def end_offset(self) -> int:
        return self.physical_offset + self.size_bytes
