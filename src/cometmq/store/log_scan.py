"""Reading the log forward, trusting nothing: every record is checked before it is believed.

Recovery, the follower that feeds queues and index, and the search behind a damaged place go through here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple
from zlib import crc32

from cometmq.model.record import BadRecord, decode_record, peek
from cometmq.model.record_layout import (
    BLANK_BYTES,
    BODY_AT_V4,
    BODY_LENGTH,
    CRC_MASK,
    FIXED_BYTES_V4,
    HEAD_V4,
    MAGIC_AT,
    MAGIC_BLANK,
    MAGIC_START,
    MAGIC_V1,
    MAGIC_V2,
    TIMESTAMP,
    V6_HOSTS,
    body_at,
    stored_at,
)
from cometmq.store.mapped_file_queue import MappedFileQueue

_SEARCH_BYTES: Final = 1 << 20
SECTOR_BYTES: Final = 512


class Scanned(NamedTuple):
    """What recovery and the follower need of a record."""

    physical_offset: int
    size_bytes: int
    queue_id: int
    queue_offset: int
    sys_flag: int
    store_timestamp: int
    topic: bytes
    properties: bytes


def scan_record(
    view: memoryview, position: int, file_start: int, *, check_crc: bool
) -> Scanned | None:
    """The record that starts at ``position`` of a log file, or None when what is there is no sound record.

    Sound means: a record's magic, its own physical offset, parts that add up to its size, and the body's checksum.
    """
    limit = len(view)
    if position + FIXED_BYTES_V4 > limit:
        return None
    (
        size,
        magic,
        crc,
        queue_id,
        _,
        queue_offset,
        physical_offset,
        sys_flag,
        _,
        _,
        store_ms,
        _,
        _,
        _,
        body_bytes,
    ) = HEAD_V4.unpack_from(view, position)
    end = position + size
    if magic != MAGIC_V1 and magic != MAGIC_V2:
        return None
    if physical_offset != file_start + position or size < FIXED_BYTES_V4 or end > limit:
        return None
    at = position + BODY_AT_V4
    if sys_flag & V6_HOSTS:
        at = position + body_at(sys_flag)
        if at > end:
            return None
        (store_ms,) = TIMESTAMP.unpack_from(view, position + stored_at(sys_flag))
        (body_bytes,) = BODY_LENGTH.unpack_from(view, at - BODY_LENGTH.size)
    topic_at = at + body_bytes
    if body_bytes < 0 or topic_at + 3 > end:
        return None
    if magic == MAGIC_V1:
        topic_bytes = view[topic_at]
        topic_at += 1
    else:
        topic_bytes = view[topic_at] << 8 | view[topic_at + 1]
        topic_at += 2
    properties_at = topic_at + topic_bytes + 2
    if properties_at > end:
        return None
    if view[properties_at - 2] << 8 | view[properties_at - 1] != end - properties_at:
        return None
    if check_crc and body_bytes and crc32(view[at : at + body_bytes]) & CRC_MASK != crc:
        return None
    return Scanned(
        physical_offset,
        size,
        queue_id,
        queue_offset,
        sys_flag,
        store_ms,
        bytes(view[topic_at : topic_at + topic_bytes]),
        bytes(view[properties_at:end]),
    )


def is_torn(view: memoryview, position: int, record: Scanned) -> bool:
    """Whether a record whose write was never synced has lost a piece that its checksum does not cover.

    A lost piece of a log file is zero, and whole sectors are lost. So: zeros in the topic, at the end of the
    properties, or in all of the properties that lie in one sector.
    """
    properties = record.properties
    if b"\0" in record.topic:
        return True
    if b"\0" not in properties:
        return False
    end = position + record.size_bytes
    at = end - len(properties)
    while at < end:
        until = min((at // SECTOR_BYTES + 1) * SECTOR_BYTES, end)
        if not any(view[at:until]):
            return True
        at = until
    return properties.endswith(b"\0")


class LogWalk:
    """Iterates over sound records from an offset on, and then tells where and why it stopped.

    ``position`` is the offset behind the last sound record. ``fault`` says what was there instead of a further
    one, and is empty when nothing was (zeros, or the end of the row).
    """

    def __init__(
        self,
        row: MappedFileQueue,
        start: int,
        *,
        stop: int | None = None,
        check_crc: bool = True,
        unsynced_from: int | None = None,
        writes_survive: bool = False,
    ) -> None:
        """
        Args:
            stop: go no further than this offset.
            unsynced_from: from here on, writes may have been lost in pieces; see ``is_torn``.
            writes_survive: only the process died, so only its very last write can be in pieces.
        """
        self.position = start
        self.fault = ""
        self._row = row
        self._stop = stop
        self._check_crc = check_crc
        self._unsynced_from = unsynced_from
        self._writes_survive = writes_survive

    def __iter__(self) -> Iterator[Scanned]:
        stop = self._row.end if self._stop is None else self._stop
        while self.position < stop:
            log_file = self._row.at(self.position)
            if log_file is None:
                return
            file_start = log_file.start
            view = log_file.file.view(0, self._row.file_bytes)
            yield from self._walk_file(view, file_start, stop)
            at = self.position - file_start
            if at < len(view):
                size, magic = peek(view, at) if at + BLANK_BYTES <= len(view) else (0, 0)
                if self.position >= stop:
                    return
                if magic != MAGIC_BLANK or size != len(view) - at:
                    if size or magic:
                        self.fault = self._what_is_wrong(view, at)
                    return
                self.position = file_start + len(view)

    def _walk_file(self, view: memoryview, file_start: int, stop: int) -> Iterator[Scanned]:
        check_crc = self._check_crc
        unsynced_from = stop if self._unsynced_from is None else self._unsynced_from
        limit = min(stop - file_start, len(view))
        at = self.position - file_start
        while at < limit:
            record = scan_record(view, at, file_start, check_crc=check_crc)
            if record is None:
                return
            end = at + record.size_bytes
            if (
                record.physical_offset >= unsynced_from
                and is_torn(view, at, record)
                and not (self._writes_survive and self._is_followed(view, end, file_start))
            ):
                return
            at = end
            self.position = file_start + at
            yield record

    def _is_followed(self, view: memoryview, at: int, file_start: int) -> bool:
        """Whether any record follows: the next one, as a rule, but this may be the last of its file."""
        if scan_record(view, at, file_start, check_crc=True) is not None:
            return True
        return find_record(self._row, file_start + at, self._row.end) is not None

    def _what_is_wrong(self, view: memoryview, at: int) -> str:
        try:
            record = decode_record(view, at, check_crc=self._check_crc)
        except BadRecord as error:
            return str(error)
        expected = self.position
        if record.physical_offset != expected:
            return f"a record of offset {record.physical_offset} at offset {expected}"
        return "topic or properties are cut off"


def find_record(row: MappedFileQueue, start: int, stop: int) -> Scanned | None:
    """The first sound record that starts within ``start`` … ``stop``, wherever it is."""
    position = start
    while position < stop and (log_file := row.at(position)) is not None:
        file_start = log_file.start
        view = log_file.file.view(0, row.file_bytes)
        at = position - file_start
        limit = min(stop - file_start, len(view))
        while at < limit:
            # The overlap finds a magic that lies across the border of two searches.
            data = bytes(view[at : at + _SEARCH_BYTES + 8])
            hit = data.find(MAGIC_START, MAGIC_AT)
            while hit >= 0:
                if at + hit - MAGIC_AT < limit:
                    record = scan_record(view, at + hit - MAGIC_AT, file_start, check_crc=True)
                    if record is not None:
                        return record
                hit = data.find(MAGIC_START, hit + 1)
            at += _SEARCH_BYTES
        position = file_start + len(view)
    return None
