"""RocketMQ's own timer checkpoint, ``config/timercheck``: how far its broker came, and where it is to go on.

    at   width  field                                    at   width  field
    0    8      all before this time was delivered, ms   24   8      the same of the master
    8    8      end of its timer log                     32   24     data version: state, time, counter
    16   8      first record of the timer topic that
                is not in its timer log

Seven integers in a file of 4096 bytes. Its index (``timerwheel``, ``timerlog``) is neither read nor written here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from cometmq.base.errors import RemoteProtocolError
from cometmq.broker.timer.timed_forms import TimedName, recalled_as
from cometmq.model.messages.record import Record
from cometmq.model.messages.timer_properties import TIMER_OUT_MS, TIMER_ROLL_TIMES

FILE_BYTES: Final = 4096
_FIELDS = struct.Struct(">7q")
CHECKPOINT_BYTES: Final = _FIELDS.size
"""What a master tells its slaves of it."""


def checkpoint_file(checkpoint: bytes) -> bytes:
    """The file for what a master told. Raises RemoteProtocolError."""
    if len(checkpoint) != CHECKPOINT_BYTES:
        raise RemoteProtocolError(
            f"expected a timer checkpoint of {CHECKPOINT_BYTES} bytes, got {len(checkpoint)}"
        )
    return checkpoint.ljust(FILE_BYTES, b"\0")


@dataclass(frozen=True, slots=True)
class PeerProgress:
    """False when no RocketMQ broker has been here."""

    read_ms: int = 0
    log_end: int = 0
    queue_offset: int = 0
    state_version: int = 0
    counter: int = 0

    @staticmethod
    def decode(content: bytes) -> PeerProgress:
        """What the file says; nothing if it is none."""
        if len(content) < _FIELDS.size:
            return PeerProgress()
        read_ms, log_end, queue_offset, _, state, _, counter = _FIELDS.unpack_from(content)
        return PeerProgress(read_ms, log_end, queue_offset, state, counter)

    def moved(self, *, read_ms: int, queue_offset: int, now_ms: int) -> bytes:
        """The file for a broker that is to go on from here."""
        fields = _FIELDS.pack(
            read_ms,
            self.log_end,
            queue_offset,
            queue_offset,
            self.state_version,
            now_ms,
            self.counter + 1,
        )
        return fields.ljust(FILE_BYTES, b"\0")

    def rolled(self, records: Iterable[Record]) -> dict[TimedName, int]:
        """By name: how often a message was put into the timer topic anew."""
        times: dict[TimedName, int] = {}
        for record in records:
            if TIMER_ROLL_TIMES in record.properties:
                key = recalled_as(record)
                times[key] = max(times.get(key, 0), _roll_times(record))
        return times

    def has_delivered(self, record: Record, rolled: dict[TimedName, int]) -> bool:
        """Whether that broker is done with a record: it was due, or has been put anew since."""
        if rolled.get(recalled_as(record), 0) > _roll_times(record):
            return True
        out_ms = int(record.properties[TIMER_OUT_MS])
        return record.queue_offset < self.queue_offset and out_ms < self.read_ms

    def __bool__(self) -> bool:
        return self.read_ms > 0


def _roll_times(record: Record) -> int:
    text = record.properties.get(TIMER_ROLL_TIMES, "0")
    return int(text) if text.isdecimal() and len(text) < 10 else 0
