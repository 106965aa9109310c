"""How many entries a consume queue file holds, found without reading it through.

Entries are written in order, so the good ones form a prefix. After an unclean stop, only entries of records below
``bound`` are known to be on disk; whatever is behind them (newer entries, or holes where writes were lost) is not
counted, so the prefix is one in that case, too.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cometmq.base.ports import File
from cometmq.store.consume_queue import ENTRY, ENTRY_BYTES, FILLER_SIZE

NO_BOUND: Final = 1 << 63
_WINDOW: Final = 256
"""Entries read at once, a little more than a disk block holds."""


class QueueEnd(NamedTuple):
    entries: int
    """Good entries at the start of the file."""
    record_end: int
    """Where the record of the last of them ends in the log; 0 when there is none or it is a filler."""
    is_followed: bool
    """Whether something other than zeros comes behind them."""


def find_queue_end(file: File, bound: int = NO_BOUND) -> QueueEnd:
    total = file.size_bytes // ENTRY_BYTES
    low = 0
    # Nothing behind the first hole can be part of the prefix: in a sparse file this leaves one block to read.
    high = min(total, -(-file.first_hole() // ENTRY_BYTES))
    probe = max(high - _WINDOW, 0)
    while high - low > _WINDOW:
        if _is_good(file.read_at(probe * ENTRY_BYTES, ENTRY_BYTES), 0, bound):
            low = probe + 1
        else:
            high = probe
        probe = (low + high) // 2
    first = max(low - 1, 0)
    window = file.read_at(first * ENTRY_BYTES, (min(high + 1, total) - first) * ENTRY_BYTES)
    high -= first
    low -= first
    while low < high:
        middle = (low + high) // 2
        if _is_good(window, middle * ENTRY_BYTES, bound):
            low = middle + 1
        else:
            high = middle
    record_end = 0
    if low:
        physical_offset, size_bytes, _ = ENTRY.unpack_from(window, (low - 1) * ENTRY_BYTES)
        record_end = physical_offset + size_bytes if size_bytes != FILLER_SIZE else 0
    behind = window[low * ENTRY_BYTES : (low + 1) * ENTRY_BYTES]
    return QueueEnd(first + low, record_end, behind.strip(b"\0") != b"")


def _is_good(data: bytes, position: int, bound: int) -> bool:
    physical_offset: int
    size_bytes: int
    physical_offset, size_bytes, _ = ENTRY.unpack_from(data, position)
    return size_bytes > 0 and 0 <= physical_offset < bound
