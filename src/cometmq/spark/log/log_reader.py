"""What a task reads of a store's directory: pieces of the log, window by window, into rows.

A window is read by position into one buffer that is used again and again: records that lie close together in one read,
with what is between them, and the others one by one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from cometmq.base.errors import StoreError
from cometmq.model.java_hash import java_hash
from cometmq.model.message_queue import MessageQueue
from cometmq.model.names import SCHEDULE_TOPIC
from cometmq.spark.columns.decode import UndecodableRecord, decode_at
from cometmq.spark.columns.frames import Ints
from cometmq.spark.errors import Loss, check_losses
from cometmq.spark.log.log_arrays import entries_of, files_of, holds, open_directory
from cometmq.spark.log.log_options import LogOptions
from cometmq.spark.log.log_ranges import Piece, pieces_of
from cometmq.spark.source.ranges import Range
from cometmq.store.files.log_files import LogFileGone, LogFiles
from cometmq.store.files.queue_entry import ADDRESS_MAX, FILLER_SIZE
from cometmq.store.files.queue_files import QueueFiles
from cometmq.store.files.store_directory import StoreDirectory

logger = logging.getLogger("cometmq.spark")

WINDOW_BYTES: Final = 2 << 20
"""Read and decoded at once; a batch of rows is made of each. Larger ones fall out of the processor's caches between the
steps, in Java as here."""

ENTRIES_MAX: Final = 65_536
"""Queue entries held at once."""

GAP_BYTES: Final = 16 << 10
"""Foreign bytes up to so many are rather read than stepped over."""


class DamagedRecord(StoreError):
    """A record in the log that cannot be read as one, or whose body does not match its checksum."""


class LogPartition(InputPartition):
    """Ranges of queues that lie together in the log."""

    def __init__(self, piece: Piece) -> None:
        super().__init__(None)
        self.piece = piece

    def __repr__(self) -> str:
        return f"LogPartition({', '.join(map(str, self.piece))})"


class LogPlaces:
    """Where records lie, as the consume queues say; their files are listed once."""

    def __init__(self, directory: StoreDirectory) -> None:
        self._directory = directory
        self._files: dict[MessageQueue, QueueFiles] = {}

    def files(self, queue: MessageQueue) -> QueueFiles:
        found = self._files.get(queue)
        if found is None:
            found = self._files[queue] = self._directory.queue(queue.topic, queue.queue_id)
        return found

    def of(self, one: Range, offset: int) -> int:
        return self.files(one.queue).place(offset)[0]

    def find(self, one: Range, physical_offset: int) -> int:
        return self.files(one.queue).find(physical_offset, one.start, one.end)


class _Wanted(NamedTuple):
    """Records to be read, in the order of the log: place, size, hash of the tag, queue (its number), offset."""

    physical: Ints
    sizes: Ints
    tags: Ints
    queues: Ints
    offsets: Ints

    def where(self, mask: Ints | slice) -> _Wanted:
        return _Wanted(*(part[mask] for part in self))


class LogTask:
    """Reads pieces. Not to be used after ``close``."""

    def __init__(self, options: LogOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = tuple(columns)
        self._directory = open_directory(options)
        self._hashes = np.array([java_hash(tag) for tag in options.tags], dtype=np.int64)
        self._window = Window(self._directory.log)

    def close(self) -> None:
        self._directory.close()

    def read(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        """
        Raises:
            DataLost: messages are gone since the piece was planned, and ``failOnDataLoss`` is set.
            DamagedRecord: what is there is no record, and ``failOnDataLoss`` is set.
        """
        places = LogPlaces(self._directory)
        for part in pieces_of(piece, ENTRIES_MAX, places):
            wanted = self._present(self._entries(part, places), part)
            for first, end in windows_of(wanted.physical, wanted.sizes):
                yield from self._rows(wanted.where(slice(first, end)), part)

    def _entries(self, piece: Piece, places: LogPlaces) -> _Wanted:
        entries = [entries_of(places.files(one.queue), one.start, one.end) for one in piece]
        every: Ints = np.concatenate(entries)
        counts = [len(part) for part in entries]
        wanted = _Wanted(
            every["physical_offset"].astype(np.int64),
            every["size"].astype(np.int64),
            every["tags_code"].astype(np.int64),
            np.repeat(np.arange(len(piece)), counts),
            np.concatenate([np.arange(one.start, one.end, dtype=np.int64) for one in piece]),
        )
        return wanted.where(np.argsort(wanted.physical, kind="stable"))

    def _present(self, wanted: _Wanted, piece: Piece) -> _Wanted:
        """Those whose records are there and may have the tag."""
        is_entry = (wanted.sizes > 0) & (wanted.sizes != FILLER_SIZE)
        is_held = is_entry & holds(self._directory.log, wanted.physical, wanted.sizes)
        if not is_held.all():
            self._lose(wanted.where(~is_held), piece)
            wanted = wanted.where(is_held)
        if len(self._hashes):
            # Delayed messages have a time where others have the hash; a number below all hashes points elsewhere.
            is_delayed = np.array([one.queue.topic == SCHEDULE_TOPIC for one in piece])
            maybe = np.isin(wanted.tags, self._hashes) | (wanted.tags <= ADDRESS_MAX)
            wanted = wanted.where(maybe | is_delayed[wanted.queues])
        return wanted

    def _rows(self, wanted: _Wanted, piece: Piece) -> Iterator[pa.RecordBatch]:
        """One batch; none when nothing is left of the window."""
        # Every turn but the last drops a record at least.
        while len(wanted.physical):
            try:
                data, starts = self._window.read(wanted.physical, wanted.sizes)
            except LogFileGone:
                self._directory.log.refresh()
                wanted = self._still_there(wanted, piece)
                continue
            try:
                batch = decode_at(
                    data,
                    starts,
                    wanted.sizes,
                    self._columns,
                    self._options.broker_name,
                    tag=self._options.tag_expression,
                    check_crc=self._options.check_crc,
                    physical_offsets=wanted.physical,
                )
            except UndecodableRecord as error:
                row = int(np.flatnonzero(starts == error.position)[0])
                self._report_damage(wanted, row, piece, error.reason)
                wanted = wanted.where(np.arange(len(starts)) != row)
                continue
            if batch.num_rows:
                yield batch
            return

    def _still_there(self, wanted: _Wanted, piece: Piece) -> _Wanted:
        is_held = holds(self._directory.log, wanted.physical, wanted.sizes)
        if is_held.all():
            # Listed, and yet it could not be read to its end: cut off by somebody.
            path, _ = self._directory.log.place_of(int(wanted.physical[-1]))
            raise DamagedRecord(f"{path}: shorter than when it was listed; read a copy instead")
        self._lose(wanted.where(~is_held), piece)
        return wanted.where(is_held)

    def _lose(self, gone: _Wanted, piece: Piece) -> None:
        losses = []
        for number in np.unique(gone.queues).tolist():
            offsets = gone.offsets[gone.queues == number]
            queue = piece[number].queue
            bounds = self._directory.queue(queue.topic, queue.queue_id).bounds(self._directory.log)
            start, end = int(offsets.min()), int(offsets.max()) + 1
            losses.append(Loss(queue, start, end, bounds.first, bounds.end))
        check_losses(losses, fails=self._options.fail_on_data_loss)

    def _report_damage(self, wanted: _Wanted, row: int, piece: Piece, reason: str) -> None:
        queue = piece[int(wanted.queues[row])].queue
        path, at = self._directory.log.place_of(int(wanted.physical[row]))
        text = (
            f"{path}: damaged at byte {at}, which is offset {int(wanted.offsets[row])} of topic={queue.topic} "
            f"queue={queue.queue_id}: {reason}"
        )
        if self._options.fail_on_data_loss:
            raise DamagedRecord(
                f"{text}. Read a replica's copy, or set the option failOnDataLoss to false to leave it out"
            )
        logger.warning("record left out %s", text)


class Window:
    """A buffer that is filled from the log again and again."""

    def __init__(self, log: LogFiles) -> None:
        self._log = log
        self._buffer = np.empty(0, dtype=np.uint8)

    def read(self, physical: Ints, sizes: Ints) -> tuple[memoryview, Ints]:
        """Bytes that hold all of these records, valid until the next call, and where each of them starts.

        Raises:
            LogFileGone: a file is not there any more.
        """
        ends = physical + sizes
        numbers = files_of(self._log, physical)
        is_apart = (physical[1:] - ends[:-1] > GAP_BYTES) | (numbers[1:] != numbers[:-1])
        firsts = np.flatnonzero(np.concatenate(([True], is_apart)))
        run_starts = physical[firsts]
        # Ends do not fall within a run unless entries overlap; the furthest one counts.
        run_sizes = np.maximum.reduceat(ends, firsts) - run_starts
        run_ends = np.cumsum(run_sizes)
        total = int(run_ends[-1])
        if total > len(self._buffer):
            self._buffer = np.empty(max(total, WINDOW_BYTES), dtype=np.uint8)
        view = self._buffer.data
        places = run_ends - run_sizes
        for start, size, at in zip(
            run_starts.tolist(), run_sizes.tolist(), places.tolist(), strict=True
        ):
            self._log.read_into(view[at : at + size], start)
        runs = np.repeat(np.arange(len(firsts)), np.diff(np.append(firsts, len(physical))))
        return view[:total], physical - run_starts[runs] + places[runs]


def windows_of(physical: Ints, sizes: Ints) -> list[tuple[int, int]]:
    """Numbers of the first record of each window, and of the one behind its last.

    Windows are of nearly the same size. A small one behind large ones would make batches of many sizes, and memory of
    one size does not serve another: a worker held a tenth more for it.
    """
    if not len(physical):
        return []
    gaps = np.zeros(len(physical), dtype=np.int64)
    gaps[1:] = np.maximum(physical[1:] - (physical + sizes)[:-1], 0)
    needed = sizes + np.where(gaps <= GAP_BYTES, gaps, 0)
    filled = np.cumsum(needed)
    # With room for one record more than its share, no window leaves anything to one behind the last.
    total, largest = int(filled[-1]), int(needed.max())
    count = -(-total // max(WINDOW_BYTES - largest, 1))
    most = min(total // count + largest, WINDOW_BYTES)
    edges = [0]
    while edges[-1] < len(physical):
        first = edges[-1]
        before = int(filled[first - 1]) if first else 0
        end = int(np.searchsorted(filled, before + most, side="right"))
        edges.append(max(end, first + 1))
    return list(pairwise(edges))
