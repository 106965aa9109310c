"""Plain messages that are still in the frames they came in: what an append asks of them, by columns.

The compiled twin (``native.sends``) has the only implementation. Without it, or when something stands in their way,
messages are appended as ``NewMessages``, with the same bytes as the result.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from cometmq.store.queues.consume_queue import ConsumeQueue

_NOTICE: Final = struct.Struct(">qi")


class PlainMessages(Protocol):
    """Messages without a transaction, each with an entry in its queue; none goes to a topic of the broker's own."""

    @property
    def count(self) -> int: ...

    @property
    def size_bytes(self) -> int:
        """Of all records, known after ``measure``."""
        ...

    @property
    def key_count(self) -> int:
        """Keys for the index, known after ``measure``."""
        ...

    @property
    def last_place(self) -> int:
        """Where the last record lies, known after ``lay_out``."""
        ...

    def measure(
        self,
        table: dict[str, dict[int, ConsumeQueue]],
        create: Callable[[str, int], ConsumeQueue],
        store_host: bytes,
        /,
    ) -> None:
        """Find the queues, the offsets in them, and the sizes of the records. May be called again.

        Args:
            table: queues by topic and id; ``create`` makes one that is missing.
        """
        ...

    def lay_out(self, place: int, timestamp: int, store_host: bytes, /) -> bytes:
        """The records one after the other, the first of them at ``place``."""
        ...

    def entries(self) -> list[tuple[ConsumeQueue, bytearray]]:
        """The new entries of each queue."""
        ...

    def keys(self) -> tuple[array[int], array[int]]:
        """Hashes for the index, and the places of their records."""
        ...

    def ends(self) -> list[tuple[ConsumeQueue, int, int]]:
        """Each queue, and where its entries begin and end."""
        ...

    def destinations(self) -> tuple[list[str], list[int]]:
        """Topics and ids of the queues."""
        ...

    def notices(self) -> list[bytes]:
        """For each queue what those who wait are told of its messages, as ``told`` reads it; nothing of the frames."""
        ...


def told(notices: bytes) -> Iterator[tuple[int, bytes]]:
    """Tags code and property text of each message of a queue."""
    at = 0
    while at < len(notices):
        tags_code, text_bytes = _NOTICE.unpack_from(notices, at)
        at += _NOTICE.size + text_bytes
        yield tags_code, notices[at - text_bytes : at]
