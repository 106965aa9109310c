"""One entry of a consume queue: where a message lies in the log. The one statement of the layout.

    at   width  field
    0    8      physical offset of the record
    8    4      size of the record
    12   8      hash of its tag (in the schedule topic: when it is due)

All integers are big-endian and signed. Entry n is at byte n * 20 of the row of files. A queue whose first entry is not
number 0 starts with fillers (0, 0x7FFFFFFF, 0) in its first file. What was never written is zero.
"""

from __future__ import annotations

import struct
from typing import Final

# Names and struct codes in their order.
ENTRY_FIELDS: Final = (("physical_offset", "q"), ("size", "i"), ("tags_code", "q"))

ENTRY: Final = struct.Struct(">" + "".join(code for _, code in ENTRY_FIELDS))
ENTRY_BYTES: Final = 20
assert ENTRY.size == ENTRY_BYTES

PLACE: Final = struct.Struct(">qi")
"""Physical offset and size: where the record is."""
STARTS: Final = struct.Struct(">q12x")
"""Physical offset alone, of entries one behind the other."""
TAGS_CODE_AT: Final = 12
ADDRESS_MAX: Final = -(1 << 31) - 1
"""A tags code up to here is the address of a unit (``queues.extended_queue``); hashes and times are above."""

# For whoever takes entries for an array of words of four bytes: two of the offset, the size, two of the tag's hash.
ENTRY_WORDS: Final = 5
SIZE_WORD: Final = 2

FILLER_SIZE: Final = 0x7FFFFFFF
FILLER: Final = ENTRY.pack(0, FILLER_SIZE, 0)


def is_behind(physical_offset: int, size_bytes: int, start: int) -> bool:
    """Whether an entry's record lies at ``start`` of the log or behind. Offsets grow along a queue, fillers first."""
    if size_bytes == FILLER_SIZE:
        return False
    # What cannot be an entry does not stand for a record that is gone.
    return physical_offset >= start or physical_offset < 0 or size_bytes <= 0
