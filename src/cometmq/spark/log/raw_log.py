"""The log itself from end to end, whatever queues say of it: every record, also those that no queue names.

Messages of deleted topics are in the log and in no queue, and so are prepared and rolled back ones of old versions.
Files are read in stretches. A stretch that begins within a file searches for its first record, which is known by the
offset that every record holds of itself. The log ends where nothing was ever written, before a last record that is not
whole; anything else that is no record is damage.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition

from cometmq.model.messages.record_layout import BLANK_BYTES
from cometmq.spark.columns.decode import UndecodableRecord, decode_at
from cometmq.spark.log.log_arrays import open_directory
from cometmq.spark.log.log_options import LogOptions
from cometmq.spark.log.log_ranges import PIECE_BYTES
from cometmq.spark.log.log_reader import WINDOW_BYTES, DamagedRecord
from cometmq.store.files.log_files import LogFileGone
from cometmq.store.files.record_walk import RecordWalk, Stop

logger = logging.getLogger("cometmq.spark")


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
    directory = open_directory(options)
    stretches: list[StretchPartition] = []
    try:
        log = directory.log
        for file_start, file_end in zip(log.starts, log.ends, strict=True):
            if not any(log.read(file_start, BLANK_BYTES)):
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
        self._directory = open_directory(options)
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
            position = self._log.find_record(stretch.start, stretch.end)
        window_bytes = WINDOW_BYTES
        while position is not None and position < stretch.end:
            data = self._log.read(position, window_bytes)
            walk = RecordWalk(data, stretch.end - position)
            if walk.stop is Stop.CUT and len(data) == window_bytes:
                if len(walk.starts) < 2:
                    window_bytes *= 2
                    continue
                # The last one comes again, with what follows it: that tells whether it is the last of all.
                walk.hold_back()
            elif walk.stop in (Stop.CUT, Stop.UNWRITTEN):
                walk.drop_torn()
            yield from self._rows(data, position, walk.starts, walk.sizes)
            position = self._behind(position + walk.at, walk, stretch.end)
            window_bytes = WINDOW_BYTES

    def _behind(self, position: int, walk: RecordWalk, end: int) -> int | None:
        """Where to read on."""
        if walk.stop is Stop.GO_ON:
            return position
        if walk.stop is Stop.BLANK or (
            walk.stop is not Stop.DAMAGE and self._is_last_used(position)
        ):
            return None
        fault = walk.fault or "nothing was written here, but the log goes on behind"
        if walk.stop is Stop.CUT:
            fault = "a record that goes beyond the end of its file"
        self._report(position, fault)
        return self._log.find_record(position + 1, end)

    def _is_last_used(self, position: int) -> bool:
        """Whether nothing was written into any later file."""
        later = [start for start in self._log.starts if start > position]
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
        path, at = self._log.place_of(physical_offset)
        text = f"{path}: damaged at byte {at}: {reason}"
        if self._options.fail_on_data_loss:
            raise DamagedRecord(
                f"{text}. Read a replica's copy, or set the option failOnDataLoss to false to leave it out"
            )
        logger.warning("record left out %s", text)
