"""The input and the result of an append: one message, or a group of them by columns."""

from __future__ import annotations

from itertools import chain

import msgspec
from msgspec.structs import astuple


class NewMessage(msgspec.Struct, kw_only=True):
    """A message to append, complete except for its offsets and its store time."""

    topic: str
    queue_id: int
    body: bytes
    properties: bytes
    """The final property text, UTF-8."""
    tags_code: int = 0
    """The queue entry's value for the tag filter. In the schedule topic, the store writes the delivery time instead."""
    keys: list[str] = []
    """Keys for the index: the unique key first, then the parts of KEYS."""
    flag: int = 0
    sys_flag: int = 0
    """The store sets the bits for IPv6 hosts."""
    born_timestamp: int = 0
    born_host: bytes = b""
    """Packed address of the sender; if empty, the store's own host."""
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0


class NewMessages(msgspec.Struct, kw_only=True):
    """Messages to append by columns, see ``NewMessage``: the input of the append, without an object per message."""

    topics: list[str]
    queue_ids: list[int]
    bodies: list[bytes]
    properties: list[bytes]
    tags_codes: list[int]
    keys: list[str]
    """The keys of all messages, in sequence."""
    key_counts: list[int] | None
    """How many keys each message has; None: one each."""
    flags: list[int]
    sys_flags: list[int]
    born_timestamps: list[int]
    born_hosts: list[bytes]
    reconsume_times: list[int]
    prepared_transaction_offsets: list[int]

    @classmethod
    def of(cls, messages: list[NewMessage]) -> NewMessages:
        topics, queue_ids, bodies, texts, tags_codes, keys, flags, *rest = map(
            list, zip(*map(astuple, messages), strict=True)
        )
        sys_flags, born_timestamps, born_hosts, reconsume_times, prepared = rest
        return cls(
            topics=topics,
            queue_ids=queue_ids,
            bodies=bodies,
            properties=texts,
            tags_codes=tags_codes,
            keys=[*chain(*keys)],
            key_counts=[*map(len, keys)],
            flags=flags,
            sys_flags=sys_flags,
            born_timestamps=born_timestamps,
            born_hosts=born_hosts,
            reconsume_times=reconsume_times,
            prepared_transaction_offsets=prepared,
        )

    def slice(self, start: int, stop: int) -> NewMessages:
        """The messages from ``start`` up to, but excluding, ``stop``."""
        counts = self.key_counts
        first = start if counts is None else sum(counts[:start])
        last = stop if counts is None else first + sum(counts[start:stop])
        columns = {
            name: getattr(self, name)[start:stop]
            for name in self.__struct_fields__
            if name not in ("keys", "key_counts")
        }
        return NewMessages(
            keys=self.keys[first:last],
            key_counts=None if counts is None else counts[start:stop],
            **columns,
        )


class Stored(msgspec.Struct, frozen=True, gc=False):
    """Where a message is stored. Readable at once; durable once ``watermarks.flushed`` reaches ``end_offset``."""

    physical_offset: int
    size_bytes: int
    queue_offset: int
    store_timestamp: int

    @property
    def end_offset(self) -> int:
        return self.physical_offset + self.size_bytes


class StoredMessages(msgspec.Struct, gc=False):
    """The same by columns, in the order of the messages."""

    physical_offsets: list[int]
    sizes: list[int]
    queue_offsets: list[int]
    store_timestamp: int

    @property
    def end_offset(self) -> int:
        return self.physical_offsets[-1] + self.sizes[-1]

    def each(self) -> list[Stored]:
        return [
            Stored(*place, self.store_timestamp)
            for place in zip(self.physical_offsets, self.sizes, self.queue_offsets, strict=True)
        ]
