"""Getting one record from the log of a replica: what to ask for, and whether what came is the record. No I/O.

A replica's port gives its log from any offset on. A few bytes before the record are asked for as well: they show that
both logs are the same there, even if nothing of the own record is left.
"""

from __future__ import annotations

from typing import Final

from cometmq.base.errors import CometError
from cometmq.broker.replication.ha_wire import Piece
from cometmq.model.messages.checksum import crc32
from cometmq.model.messages.record import BadRecord, Record, decode_record
from cometmq.model.messages.record_layout import CRC_FIELD, CRC_MASK, SIZE, body_at
from cometmq.store.files.record_scan import RECORD_BYTES_MAX
from cometmq.store.log.damage import Damage
from cometmq.store.log.record_check import is_sound

CONTEXT_BYTES: Final = 64
HEARTBEATS_MAX: Final = 2
"""So many in a row say that the replica has nothing there. One may come before the data."""


class NotHealed(CometError):
    """A replica cannot give a record."""


class RecordFetch:
    """Args:
    damage: the record.
    context: the bytes before it in its file, some or none.
    own: its bytes as they are here, damaged; fewer if its size is not known.
    """

    def __init__(self, damage: Damage, context: bytes, own: bytes) -> None:
        self._damage = damage
        self._context = context
        self._own = own
        # Nobody can ask for offset 0: it means "I have nothing". The first byte of a size is 0.
        self._known = b"\0" if damage.place == 0 else b""
        self._start = damage.place - len(context)
        self.asked_from = self._start + len(self._known)
        self._came = bytearray(self._known)
        self._heartbeats = 0

    def came(self, piece: Piece) -> bytes | None:
        """The record, once all of it is here. Raises NotHealed."""
        if not piece.data:
            self._heartbeats += 1
            if self._heartbeats >= HEARTBEATS_MAX:
                raise NotHealed("it has nothing there")
            return None
        self._heartbeats = 0
        if piece.offset != self._start + len(self._came):
            raise NotHealed(f"it has nothing there: its log goes on at {piece.offset}")
        self._came += piece.data
        before = len(self._context)
        if len(self._came) < before + SIZE.size:
            return None
        (size_bytes,) = SIZE.unpack_from(self._came, before)
        if self._damage.size_bytes not in (0, size_bytes) or not 0 < size_bytes < RECORD_BYTES_MAX:
            raise NotHealed(f"it has {size_bytes} as the size, not {self._damage.size_bytes}")
        if len(self._came) < before + size_bytes:
            return None
        record = bytes(self._came[before : before + size_bytes])
        fault = self._fault(record)
        if fault:
            raise NotHealed(fault)
        return record

    def _fault(self, theirs: bytes) -> str:
        """Why it is not the record that was written here; empty if it is."""
        damage = self._damage
        if not is_sound(memoryview(theirs), damage.place):
            return "its copy is damaged, too"
        if theirs == self._own:
            return "it has the same bytes"
        try:
            record = decode_record(theirs)
        except BadRecord as error:
            return f"its copy is damaged, too: {error}"
        if damage.topic and (record.topic, record.queue_id, record.queue_offset) != (
            damage.topic,
            damage.queue_id,
            damage.queue_offset,
        ):
            return (
                f"it has another message there: topic {record.topic}, queue {record.queue_id}, "
                f"queue offset {record.queue_offset}"
            )
        has_same_context = self._context != b"" and self._came.startswith(self._context)
        if not has_same_context and not self._agrees(record):
            return "nothing of it agrees with what is here: its log is another"
        return ""

    def _agrees(self, record: Record) -> bool:
        """Whether enough of the own record is left to recognize it: its checksum, or the body."""
        own_crc = int.from_bytes(self._own[CRC_FIELD], "big")
        start = body_at(record.sys_flag)
        own_body = self._own[start : start + len(record.body)]
        return bool(record.body) and record.body_crc in (own_crc, crc32(own_body) & CRC_MASK)
