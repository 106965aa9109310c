"""From record to record through a window of a log, by the first bytes of each. For readers that check them later.

``log.log_scan`` checks each record on its way; this only finds out where they are, in a fifth of the time.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from cometmq.model.messages.record import BadRecord, read_record
from cometmq.model.messages.record_layout import (
    BLANK_BYTES,
    FIXED_BYTES_V4,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    START,
)
from cometmq.store.files.record_scan import RECORD_BYTES_MAX

_MAGICS: Final = (MAGIC_V1, MAGIC_V2)


class Stop(Enum):
    """Why a walk went no further."""

    GO_ON = 1
    """The next record belongs to the next window, or to somebody else."""
    BLANK = 2
    """The file is full."""
    CUT = 3
    """What comes next is not all there."""
    UNWRITTEN = 4
    DAMAGE = 5


class RecordWalk:
    """Places and sizes of the records of a window that start before its place ``end``.

    ``at`` is where the next one starts, or what is there instead of it; ``stop`` and ``fault`` say why it ended there.
    """

    def __init__(self, data: bytes, end: int) -> None:
        self.starts: list[int] = []
        self.sizes: list[int] = []
        self.at = 0
        self.fault = ""
        self._data = data
        self.stop = self._go(data, end)

    def hold_back(self) -> None:
        """Leave the last record for the next window."""
        self.at = self.starts.pop()
        self.sizes.pop()
        self.stop = Stop.GO_ON

    def drop_torn(self) -> None:
        """Leave out records at the very end that are not whole: being written, or lost with the power."""
        while self.starts:
            try:
                read_record(self._data, self.starts[-1], True)
            except BadRecord:
                self.starts.pop()
                self.sizes.pop()
            else:
                return

    def _go(self, data: bytes, end: int) -> Stop:
        limit = len(data)
        at = 0
        while True:
            self.at = at
            if limit - at < BLANK_BYTES:
                return Stop.CUT
            size, magic = START.unpack_from(data, at)
            if not size and not magic:
                return Stop.UNWRITTEN
            if at >= end:
                return Stop.GO_ON
            if magic == MAGIC_BLANK:
                return Stop.BLANK
            if magic not in _MAGICS:
                self.fault = f"magic {magic:#x} is not that of a record"
                return Stop.DAMAGE
            if not FIXED_BYTES_V4 <= size <= RECORD_BYTES_MAX:
                self.fault = f"a record of {size} bytes"
                return Stop.DAMAGE
            if at + size > limit:
                return Stop.CUT
            self.starts.append(at)
            self.sizes.append(size)
            at += size
