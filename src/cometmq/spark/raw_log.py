"""The log itself from end to end, whatever queues say of it: every record, also those that no queue names.

Messages of deleted topics are in the log and in no queue, and so are prepared and rolled back ones of old versions.
Files are read in stretches. A stretch that begins within a file searches for its first record, which is known by the
offset that every record holds of itself. The log ends where nothing was ever written, before a last record that is not
whole; anything else that is no record is damage.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition

from cometmq.model.record import BadRecord, read_record
from cometmq.model.record_layout import (
    BLANK_BYTES,
    FIXED_BYTES_V4,
    MAGIC_AT,
    MAGIC_BLANK,
    MAGIC_START,
    MAGIC_V1,
    MAGIC_V2,
    PLACE,
    START,
)
from cometmq.spark.decode import UndecodableRecord, decode_at
from cometmq.spark.log_files import RECORD_BYTES_MAX, LogFileGone, LogFiles, StoreDirectory
from cometmq.spark.log_options import LogOptions
from cometmq.spark.log_ranges import PIECE_BYTES
from cometmq.spark.log_reader import WINDOW_BYTES, DamagedRecord

logger = logging.getLogger("cometmq.spark")

_MAGICS: Final = (MAGIC_V1, MAGIC_V2)
_SEARCH_BYTES: Final = 1 << 20


class StretchPartition(InputPartition):
    """Records that start from ``start`` on and before ``end``, all in one file."""

    def __init__(self, start: int, end: int, is_file_start: bool) -> None:
        super().__init__(None)
        self.start = start
        self.end = end
        self.is_file_start = is_file_start

    def __repr__(self) -> str:
        return f"StretchPartition({self.start}, {self.end})"


def stretches_of(options: LogOptions) -> list[StretchPartition]:
    """The whole log in parts of about the size that one task reads. Raises NoStore."""
    directory = StoreDirectory(options.path, options.log_paths)
    stretches: list[StretchPartition] = []
    try:
        for file_start, file_end in directory.log.files:
            if not any(directory.log.read(file_start, BLANK_BYTES)):
                continue  # Made ahead, and not used yet.
            for start in range(file_start, file_end, PIECE_BYTES):
                end = min(start + PIECE_BYTES, file_end)
                stretches.append(StretchPartition(start, end, start == file_start))
    finally:
        directory.close()
    return stretches


class StretchTask:
    """Reads stretches. Not to be used after ``close``."""

    def __init__(self, options: LogOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = tuple(columns)
        self._directory = StoreDirectory(options.path, options.log_paths)
        self._log = self._directory.log

    def close(self) -> None:
        self._directory.close()

    def read(self, stretch: StretchPartition) -> Iterator[pa.RecordBatch]:
        """
        Raises:
            DamagedRecord: what is there is no record, more comes behind it, and ``failOnDataLoss`` is set.
        """
        try:
            yield from self._read(stretch)
        except LogFileGone:
            text = f"the log file of offset {stretch.start} has expired while it was read"
            if self._options.fail_on_data_loss:
                raise DamagedRecord(
                    f"{text}. To read on with what is left, set the option failOnDataLoss to false"
                ) from None
            logger.warning("%s", text)

    def _read(self, stretch: StretchPartition) -> Iterator[pa.RecordBatch]:
        position: int | None = stretch.start
        if not stretch.is_file_start:
            position = find_record(self._log, stretch.start, stretch.end)
        window_bytes = WINDOW_BYTES
        while position is not None and position < stretch.end:
            data = self._log.read(position, window_bytes)
            walk = _Walk(data, stretch.end - position)
            if walk.why is _Why.CUT and len(data) == window_bytes:
                if len(walk.starts) < 2:
                    window_bytes *= 2
                    continue
                # The last one comes again, with what follows it: that tells whether it is the last of all.
                walk.hold_back()
            elif walk.why in (_Why.CUT, _Why.UNWRITTEN):
                walk.drop_torn(data)
            yield from self._rows(data, position, walk.starts, walk.sizes)
            position = self._behind(position + walk.at, walk, stretch.end)
            window_bytes = WINDOW_BYTES

    def _behind(self, position: int, walk: _Walk, end: int) -> int | None:
        """Where to read on."""
        if walk.why is _Why.GO_ON:
            return position
        if walk.why is _Why.BLANK or (walk.why is not _Why.DAMAGE and self._is_last_used(position)):
            return None
        fault = walk.fault or "nothing was written here, but the log goes on behind"
        if walk.why is _Why.CUT:
            fault = "a record that goes beyond the end of its file"
        self._report(position, fault)
        return find_record(self._log, position + 1, end)

    def _is_last_used(self, position: int) -> bool:
        """Whether nothing was written into any later file."""
        later = [start for start, _ in self._log.files if start > position]
        return not any(any(self._log.read(start, BLANK_BYTES)) for start in later)

    def _rows(
        self, data: bytes, position: int, starts: list[int], sizes: list[int]
    ) -> Iterator[pa.RecordBatch]:
        options = self._options
        is_picky = bool(options.topics or options.topic_pattern)
        columns = self._columns
        if is_picky and "topic" not in columns:
            columns = ("topic", *columns)
        at, lengths = np.array(starts, dtype=np.int64), np.array(sizes, dtype=np.int64)
        # Every turn but the last drops a record.
        while len(at):
            try:
                batch = decode_at(
                    data,
                    at,
                    lengths,
                    columns,
                    options.broker_name,
                    tag=options.tag_expression,
                    check_crc=options.check_crc,
                    physical_offsets=at + position,
                )
            except UndecodableRecord as error:
                self._report(position + error.position, error.reason)
                is_kept = at != error.position
                at, lengths = at[is_kept], lengths[is_kept]
                continue
            if is_picky:
                topics = batch.column("topic")
                wanted = [topic for topic in topics.unique().to_pylist() if options.wants(topic)]
                mask = pc.is_in(topics, value_set=pa.array(wanted, pa.string()))
                batch = batch.filter(mask).select(list(self._columns))
            if batch.num_rows:
                yield batch
            return

    def _report(self, physical_offset: int, reason: str) -> None:
        path, at = self._log.file_of(physical_offset)
        text = f"{path}: damaged at byte {at}: {reason}"
        if self._options.fail_on_data_loss:
            raise DamagedRecord(
                f"{text}. Read a replica's copy, or set the option failOnDataLoss to false to leave it out"
            )
        logger.warning("record left out %s", text)


def find_record(log: LogFiles, start: int, end: int) -> int | None:
    """The first record that starts from ``start`` on and before ``end``, wherever it is; None when there is none."""
    at = start
    while at < end:
        # The overlap finds a magic that lies across the border of two searches.
        data = log.read(at, _SEARCH_BYTES + PLACE.size)
        hit = data.find(MAGIC_START, MAGIC_AT)
        while hit >= 0:
            found = at + hit - MAGIC_AT
            if found >= end:
                return None
            if _is_record(log, found):
                return found
            hit = data.find(MAGIC_START, hit + 1)
        at += _SEARCH_BYTES
    return None


def _is_record(log: LogFiles, physical_offset: int) -> bool:
    head = log.read(physical_offset, FIXED_BYTES_V4)
    if len(head) < FIXED_BYTES_V4:
        return False
    size, _, _, told, _ = PLACE.unpack_from(head, 0)
    if told != physical_offset or not FIXED_BYTES_V4 <= size <= RECORD_BYTES_MAX:
        return False
    try:
        read_record(log.read(physical_offset, size), 0, True)
    except BadRecord:
        return False
    return True


class _Why(Enum):
    """Why a walk went no further."""

    GO_ON = 1
    """The next record belongs to the next window or to the next stretch."""
    BLANK = 2
    """The file is full."""
    CUT = 3
    """What comes next is not all there."""
    UNWRITTEN = 4
    DAMAGE = 5


class _Walk:
    """Places and sizes of the records of a window that start before its place ``end``.

    A step per record, of its first bytes only. ``at`` is where the next one starts, or what is there instead of it.
    """

    def __init__(self, data: bytes, end: int) -> None:
        self.starts: list[int] = []
        self.sizes: list[int] = []
        self.at = 0
        self.fault = ""
        self.why = self._go(data, end)

    def _go(self, data: bytes, end: int) -> _Why:
        limit = len(data)
        at = 0
        while True:
            self.at = at
            if limit - at < BLANK_BYTES:
                return _Why.CUT
            size, magic = START.unpack_from(data, at)
            if not size and not magic:
                return _Why.UNWRITTEN
            if at >= end:
                return _Why.GO_ON
            if magic == MAGIC_BLANK:
                return _Why.BLANK
            if magic not in _MAGICS:
                self.fault = f"magic {magic:#x} is not that of a record"
                return _Why.DAMAGE
            if not FIXED_BYTES_V4 <= size <= RECORD_BYTES_MAX:
                self.fault = f"a record of {size} bytes"
                return _Why.DAMAGE
            if at + size > limit:
                return _Why.CUT
            self.starts.append(at)
            self.sizes.append(size)
            at += size

    def hold_back(self) -> None:
        """Leave the last record for the next window."""
        self.at = self.starts.pop()
        self.sizes.pop()
        self.why = _Why.GO_ON

    def drop_torn(self, data: bytes) -> None:
        """Leave out records at the very end that are not whole: being written, or lost with the power."""
        while self.starts:
            try:
                read_record(data, self.starts[-1], True)
            except BadRecord:
                self.starts.pop()
                self.sizes.pop()
            else:
                return
