"""How many entries a consume queue file holds, determined without reading all of it.

Entries are written in order, so the valid ones form a prefix. After an unclean stop, only entries of records below
``bound`` are known to be on disk; whatever follows (newer entries, or holes where writes were lost) is not counted, so
they form a prefix in that case, too. Only a newer entry that was partly lost can be misleading: what is left of its
offset may be a smaller one. So the last entry is trusted only after a check of the log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from cometmq.base.ports import File
from cometmq.store.files.queue_entry import ENTRY, ENTRY_BYTES, FILLER_SIZE

NO_BOUND: Final = 1 << 63
_WINDOW: Final = 256
"""Entries read at once, a little more than a disk block holds."""


class QueueEnd(NamedTuple):
    entries: int
    """Valid entries at the start of the file."""
    record_end: int
    """Where the record of the last of them ends in the log; 0 if there is none or it is a filler."""
    is_followed: bool
    """Whether something other than zeros follows them."""


IsReal = Callable[[int, int, int], bool]
"""Whether the log has a record for an entry, given its number in the file, physical offset and size."""


def find_queue_end(file: File, bound: int = NO_BOUND, is_real: IsReal | None = None) -> QueueEnd:
    total = file.size_bytes // ENTRY_BYTES
    # Nothing after the first hole can be part of the prefix: in a sparse file this leaves one block to read.
    high = min(total, -(-file.first_hole() // ENTRY_BYTES))
    while True:
        entries, window = _search(file, high, total, bound)
        if not entries:
            return QueueEnd(0, 0, window[:ENTRY_BYTES].strip(b"\0") != b"")
        physical_offset, size_bytes, _ = ENTRY.unpack_from(window, 0)
        if is_real is None or is_real(entries - 1, physical_offset, size_bytes):
            record_end = physical_offset + size_bytes if size_bytes != FILLER_SIZE else 0
            return QueueEnd(entries, record_end, window[ENTRY_BYTES:].strip(b"\0") != b"")
        high = entries - 1


def _search(file: File, high: int, total: int, bound: int) -> tuple[int, bytes]:
    """How many entries below ``high`` are valid, and the bytes of the last valid one and the next one."""
    low = 0
    probe = max(high - _WINDOW, 0)
    while high - low > _WINDOW:
        if _is_good(file.read_at(probe * ENTRY_BYTES, ENTRY_BYTES), 0, bound):
            low = probe + 1
        else:
            high = probe
        probe = (low + high) // 2
    first = max(low - 1, 0)
    window = file.read_at(first * ENTRY_BYTES, (min(high + 1, total) - first) * ENTRY_BYTES)
    while low < high:
        middle = (low + high) // 2
        if _is_good(window, (middle - first) * ENTRY_BYTES, bound):
            low = middle + 1
        else:
            high = middle
    last = max(low - 1 - first, 0) * ENTRY_BYTES
    return low, window[last : last + (2 if low else 1) * ENTRY_BYTES]


def _is_good(data: bytes, position: int, bound: int) -> bool:
    physical_offset: int
    size_bytes: int
    physical_offset, size_bytes, _ = ENTRY.unpack_from(data, position)
    return size_bytes > 0 and 0 <= physical_offset < bound
