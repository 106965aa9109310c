"""The driver's side of reading a store's directory: what queues there are, how far they go, what a batch takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from cometmq.base.errors import StoreError
from cometmq.client.core.queue_answers import Bounds
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.record_layout import BORN_V6, PLACE, TIMESTAMP, stored_at
from cometmq.spark.columns.frames import Ints
from cometmq.spark.errors import BadOption
from cometmq.spark.log.log_arrays import entries_of, open_directory
from cometmq.spark.log.log_options import LogOptions
from cometmq.spark.log.log_ranges import Piece, pieces_of, rows_of, rows_per_task
from cometmq.spark.log.log_reader import LogPlaces
from cometmq.spark.queue_offsets import AtOffset, AtTime, Offsets, Positions, Word, positions_of
from cometmq.spark.source.batch_end import Outlook, ranges_between, ranges_of_batch
from cometmq.spark.source.byte_limit import within_bytes
from cometmq.spark.source.ranges import Range
from cometmq.spark.source.trigger import Trigger
from cometmq.store.files.log_files import LogFileGone
from cometmq.store.files.queue_entry import ENTRY_BYTES, FILLER_SIZE

_SAMPLE: Final = 64
_SIZES_AT_ONCE: Final = 65_536
_HEAD_BYTES: Final = stored_at(BORN_V6) + TIMESTAMP.size
"""What is needed of a record to know when it was stored."""


class NoSuchTopic(StoreError):
    """A named topic is not in the directory."""


class LogPlanner:
    def __init__(self, options: LogOptions, *, clock: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            clock: monotonic seconds.

        Raises:
            NoStore: the path is not that of a store.
        """
        self._options = options
        self._clock = clock
        self._directory = open_directory(options)
        self._trigger = Trigger(options, self._within_bytes, clock)
        self._queues: list[MessageQueue] = []
        self._found_at: float | None = None
        self.latest: Offsets | None = None
        """The ends of all queues when they were last looked at."""

    def close(self) -> None:
        self._directory.close()

    # ── batches ──

    def batch(self) -> list[Piece]:
        """What the tasks of a batch read.

        Raises:
            NoSuchTopic: a named topic is not there.
            DataLost: offsets are wanted that the queues do not hold, and ``failOnDataLoss`` is set.
        """
        options = self._options
        bounds = self._bounds()
        starts = self._resolve("startingOffsets", options.start, Word.EARLIEST, bounds)
        ends = self._resolve("endingOffsets", options.end, Word.LATEST, bounds)
        ranges = ranges_of_batch(options, starts, ends, bounds)
        return self.pieces(ranges)

    def pieces(self, ranges: Sequence[Range]) -> list[Piece]:
        rows = rows_of([one for one in ranges if one.rows > 0])
        if not rows:
            return []
        places = LogPlaces(self._directory)
        most = rows_per_task(
            rows,
            self._record_bytes(ranges, places),
            self._options.min_partitions,
            self._options.max_records_per_partition,
        )
        return pieces_of(ranges, most, places)

    # ── streams ──

    def initial(self) -> Offsets:
        """Where a query without a checkpoint starts. Raises NoSuchTopic."""
        start = self._options.start
        # What JSON says nothing about is rather read than passed over.
        default = Word.LATEST if start is None else Word.EARLIEST
        return self._resolve("startingOffsets", start, default, self._bounds())

    def fix_target(self) -> None:
        """From now on nothing is read that is not there yet."""
        self._trigger.target = {queue: now.end for queue, now in self._bounds().items()}

    def next(self, start: Offsets, *, is_limited: bool) -> Offsets:
        """Where the next batch ends; ``start`` itself when there is to be none.

        Raises:
            DataLost: messages that were to be read are gone, or their topic is, and ``failOnDataLoss`` is set.
        """
        outlook, shares = self._trigger.take(start, self._bounds(start), is_limited=is_limited)
        return outlook.ends(shares)

    def stream_pieces(self, start: Offsets, end: Offsets) -> list[Piece]:
        return self.pieces(ranges_between(start, end))

    def _within_bytes(
        self, outlook: Outlook, shares: Mapping[MessageQueue, int], limit_bytes: int, turn: int
    ) -> dict[MessageQueue, int]:
        places = LogPlaces(self._directory)

        def sizes(
            wanted: Mapping[MessageQueue, int], parts: Mapping[MessageQueue, int]
        ) -> dict[MessageQueue, Ints]:
            return {
                queue: self._sizes(outlook.ranges[queue], count, parts[queue], places)
                for queue, count in wanted.items()
            }

        return within_bytes(shares, limit_bytes, sizes, turn=turn)

    def _sizes(self, one: Range, count: int, wanted_bytes: int, places: LogPlaces) -> Ints:
        """Sizes of the first records of a range, enough of them to fill so many bytes."""
        known: list[Ints] = []
        at, end = one.start, one.start + count
        while at < end and wanted_bytes >= 0:
            until = min(at + _SIZES_AT_ONCE, end)
            sizes = entries_of(places.files(one.queue), at, until)["size"].astype(np.int64)
            known.append(sizes)
            wanted_bytes -= int(sizes.sum())
            at = until
        return np.concatenate(known)

    # ── both ──

    def _bounds(self, known: Offsets | None = None) -> dict[MessageQueue, Bounds]:
        """
        Args:
            known: queues of a running query. One that is gone is as if it were empty, its topic having been deleted.
        """
        self._directory.log.refresh()
        now = self._clock()
        due = self._found_at is None or now - self._found_at >= self._options.discovery_seconds
        if known is None or due:
            self._queues = self._find_queues(must_exist=known is None)
            self._found_at = now
        bounds: dict[MessageQueue, Bounds] = {}
        for queue in sorted({*self._queues, *(known or ())}):
            if queue.broker_name != self._options.broker_name:
                raise BadOption(
                    f"option brokerName: expected {queue.broker_name}, which the checkpoint of this query has, "
                    f"got {self._options.broker_name}"
                )
            files = self._directory.queue(queue.topic, queue.queue_id)
            first, end = files.bounds(self._directory.log)
            bounds[queue] = Bounds(first, end)
        self.latest = {queue: now.end for queue, now in bounds.items()}
        return bounds

    def _find_queues(self, *, must_exist: bool) -> list[MessageQueue]:
        options = self._options
        topics = [topic for topic in self._directory.topics() if options.wants(topic)]
        missing = [topic for topic in options.topics if topic not in topics]
        if missing and must_exist:
            batch = [topic for topic in missing if self._directory.has_batch_queues(topic)]
            if batch:
                raise NoSuchTopic(
                    f"{options.path}: {', '.join(batch)} has RocketMQ 5's batch queues (queue.type=BatchCQ), which are "
                    "not read from files; read it from the broker with the format rocketmq"
                )
            raise NoSuchTopic(
                f"{options.path}: expected the topics {', '.join(options.topics)}, but {', '.join(missing)} has no "
                f"messages here; there are {', '.join(self._directory.topics()) or 'none'}"
            )
        return [
            MessageQueue(options.broker_name, queue_id, topic)
            for topic in topics
            for queue_id in self._directory.queue_ids(topic)
        ]

    def _resolve(
        self,
        name: str,
        positions: Positions | None,
        default: Word,
        bounds: Mapping[MessageQueue, Bounds],
    ) -> dict[MessageQueue, int]:
        """An offset for each queue. Numbers come out as given, whether or not the queue holds them."""
        offsets: dict[MessageQueue, int] = {}
        for queue, position in positions_of(name, positions, default, bounds).items():
            held = bounds[queue]
            if isinstance(position, AtOffset):
                offsets[queue] = position.offset
            elif isinstance(position, AtTime):
                offsets[queue] = self._first_at(queue, held, position.timestamp_ms)
            else:
                offsets[queue] = held.first if position is Word.EARLIEST else held.end
        return offsets

    def _first_at(self, queue: MessageQueue, held: Bounds, timestamp_ms: int) -> int:
        """The first offset stored at a time or later. Store times never fall along a queue."""
        files = self._directory.queue(queue.topic, queue.queue_id)
        low, high = held.first, held.end
        while low < high:
            middle = (low + high) // 2
            if self._stored_at(files.place(middle)[0]) < timestamp_ms:
                low = middle + 1
            else:
                high = middle
        return low

    def _stored_at(self, physical_offset: int) -> int:
        try:
            head = self._directory.log.read(physical_offset, _HEAD_BYTES)
        except LogFileGone:
            head = b""
        if len(head) < _HEAD_BYTES:
            return -1  # It has just expired, so it is early.
        *_, sys_flag = PLACE.unpack_from(head)
        (timestamp,) = TIMESTAMP.unpack_from(head, stored_at(sys_flag))
        return int(timestamp)

    def _record_bytes(self, ranges: Sequence[Range], places: LogPlaces) -> int:
        """What a record takes, about: the mean of a few at both ends of each queue."""
        total = count = 0
        for one in ranges:
            if one.rows <= 0:
                continue
            files = places.files(one.queue)
            for start, end in (
                (one.start, min(one.start + _SAMPLE, one.end)),
                (max(one.end - _SAMPLE, one.start), one.end),
            ):
                sizes = entries_of(files, start, end)["size"].astype(np.int64)
                sizes = sizes[(sizes > 0) & (sizes != FILLER_SIZE)]
                total += int(sizes.sum())
                count += len(sizes)
        return max(total // max(count, 1), ENTRY_BYTES)
