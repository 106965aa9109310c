"""The store of one broker: put, get, query.

    put  ->  appender  ->  commit_log  (what counts)
                       ->  consume_queues, index_files  (how it is found again)
                       ->  watermarks, arrivals  (who waits for it)
    get  ->  reader  ->  views of the log

``recovery`` makes all parts consistent again after a stop, ``flush`` makes them durable, ``housekeeping`` deletes.

Thread rule: one thread, the owner, calls everything here. The store's own threads only sync, allocate and unlink.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterator
from typing import Final

from cometmq.base.errors import (
    CometError,
    DiskFull,
    NotMaster,
    StoreClosed,
    StoreError,
    UsageError,
)
from cometmq.base.ports import Clock, File, Files, Lock
from cometmq.model.messages.record import Record, readable_record
from cometmq.model.messages.sink_mark import SinkMark
from cometmq.store.files.file_names import QUEUES_DIRECTORY
from cometmq.store.index.index_files import IndexFiles
from cometmq.store.log.appender import Appender, Listener
from cometmq.store.log.commit_log import CommitLog
from cometmq.store.log.damage import Damages
from cometmq.store.log.delivered import Delivered, copied_since, delivered_since
from cometmq.store.log.new_messages import NewMessage, NewMessages, Stored, StoredMessages
from cometmq.store.log.plain_messages import PlainMessages
from cometmq.store.log.record_check import is_sound
from cometmq.store.log.replica_log import ReplicaLog
from cometmq.store.log.sink_scan import SinkRows, sink_marks_since, sink_rows
from cometmq.store.queues.consume_queues import ConsumeQueues
from cometmq.store.queues.delay_levels import DelayLevels
from cometmq.store.queues.deleted_topics import DeletedTopics
from cometmq.store.queues.extended_queue import Unit
from cometmq.store.queues.extended_queues import (
    ExtendedConsumeQueues,
    FilterBits,
    TagFilter,
    UnitFilter,
    no_bits,
)
from cometmq.store.queues.queue_repair import QueueRepair
from cometmq.store.read.bulk_reader import BulkLimits, BulkReader, BulkResult
from cometmq.store.read.cold import ColdReads
from cometmq.store.read.hidden import Hidden
from cometmq.store.read.loading import Loader
from cometmq.store.read.read_results import GetResult, QueryResult
from cometmq.store.read.reader import Reader
from cometmq.store.read.soundness import Soundness
from cometmq.store.read.wanted import RecordFilter
from cometmq.store.recovery.checkpoint import Checkpoint
from cometmq.store.recovery.cut_tail import DIRECTORY as CUT_DIRECTORY
from cometmq.store.recovery.cut_tail import copy_tail, marks_before
from cometmq.store.recovery.log_follower import Follower
from cometmq.store.recovery.log_recovery import Recovery, Stop
from cometmq.store.store_config import StoreConfig
from cometmq.store.upkeep.deletion import Housekeeping
from cometmq.store.upkeep.flush import LogFlusher, QueueFlusher
from cometmq.store.upkeep.flush_times import FlushTimes
from cometmq.store.watermarks import Schedule, Watermarks

logger = logging.getLogger("cometmq.store")

UNLIMITED: Final = 1 << 31
WRITTEN_AT_ONCE: Final = 1024
"""Number of queues whose entries an idle store writes at a time."""

CHECKED_BYTES: Final = 16 << 20
"""Size of the end of the log whose queue entries are checked at a start, about 5 us each."""

DISK_CHECK_SECONDS: Final = 1.0
"""How often a refused put may check whether the disk has space again."""


class MessageStore:
    def __init__(
        self,
        config: StoreConfig,
        *,
        store_host: bytes,
        files: Files,
        clock: Clock,
        schedule: Schedule | None = None,
        filter_bits: FilterBits = no_bits,
    ) -> None:
        """
        Args:
            store_host: packed address of this broker, stored in every record.
            schedule: runs a callback on the owner thread; see ``watermarks``.
            filter_bits: computes what the extended consume queue stores for a message, if there is one.
        """
        self.config = config
        self.watermarks = Watermarks(schedule)
        self._files = files
        self._clock = clock
        self._log = CommitLog(config.log_path, config.log, files, clock)
        self._queues = self._make_queues(filter_bits)
        self._index: IndexFiles | None = None
        if config.index.enabled:
            self._index = IndexFiles(config.path("index"), config.index, files, clock)
        self._delay_levels = DelayLevels(config.queues.message_delay_level)
        self._checkpoint = Checkpoint(config.path("checkpoint"), files)
        self._deleted = DeletedTopics(config.path("deletedTopics.json"), config.log_path, files)
        self._repair = QueueRepair(self._log, self._queues, self._delay_levels, self._deleted)
        self.damages = Damages(self._log, clock)
        """Damaged records that were found, and who heals them."""
        self._soundness = Soundness(
            self._log, self.damages, config.read, files.memory_bytes(), clock
        )
        self.hidden = Hidden()
        """Messages that readers do not see yet. Off by itself: whoever promises that they are safe turns it on."""
        cold = ColdReads(self._log, self._queues, self._soundness, clock)
        self.loader = Loader(files)
        """Loads what is not in memory, in threads."""
        self._reader = Reader(
            self._log,
            self._queues,
            self._index,
            config.read,
            files.memory_bytes(),
            self._delay_levels,
            self._repair,
            self._soundness,
            self.hidden,
            cold,
        )
        self._bulk_reader = BulkReader(
            self._log, self._queues, self._repair, self._soundness, self.hidden, cold
        )
        self._log_flusher = LogFlusher(
            self._log, self.watermarks, config.flush, clock, self._on_flush_failure
        )
        self._queue_flusher = QueueFlusher(
            self._queues,
            self._index,
            self._checkpoint,
            self._log_flusher,
            self.watermarks,
            config.flush,
            clock,
        )
        self._appender = Appender(
            self._log,
            self._queues,
            self._index,
            self._delay_levels,
            self.watermarks,
            self._log_flusher,
            clock,
            store_host,
            self.hidden,
        )
        self._appender.body_bytes_max = config.log.message_bytes_max
        self._appender.recheck = self._recheck_disk
        self.replica = ReplicaLog(
            self._log,
            self._queues,
            self._make_follower,
            self._appender,
            self.watermarks,
            self._soundness.distrust,
        )
        """What a slave appends to, instead of ``put``."""
        self._housekeeping = Housekeeping(
            config, self._log, self._queues, self._index, self._deleted, files, clock
        )
        self._lock: Lock | None = None
        self._disk_checked_at = 0.0
        self._is_replica = False
        self._has_threads = False

    @property
    def arrivals(self) -> list[Listener]:
        """Notified of each message once it is readable."""
        return self._appender.arrivals

    def load(self) -> None:
        """Lock the directory and recover its content. After that, appends and reads work.

        Raises:
            CorruptFile: a damaged or foreign file; nothing was overwritten.
            StoreError: another process holds the directory.
        """
        self._files.make_directory(self.config.root)
        self._lock = self._files.lock(self.config.path("lock"))
        try:
            self._recover()
        except BaseException:
            self._close_files()
            raise
        self._appender.refusal = None
        if self._is_replica:
            self.follow()
        self._watch_disk()

    def start(self) -> None:
        """Start the flush threads, and let others allocate log files in advance and remove old ones."""
        self._has_threads = True
        self._log.make_ahead()
        self.watermarks.flushed.on_wait(self._log_flusher.wake)
        self._log_flusher.start()
        self._queue_flusher.start()
        # Flush soon what recovery rebuilt, so that a process that is killed repeatedly makes progress.
        self._queue_flusher.flush_soon()
        self._housekeeping.in_background = True

    def flush(self) -> None:
        """Make everything durable now: log, queues, index, checkpoint. Blocks.

        Raises:
            DiskFull: queue or index entries could not be written; they are kept.
            StoreError: a sync failed, now or earlier.
        """
        self._appender.write_out()
        self._log_flusher.flush()
        self._queue_flusher.flush()
        if self._log_flusher.has_failed or self._queue_flusher.has_failed:
            raise StoreError("a sync has failed: what is on disk is known only after a restart")

    def close(self) -> None:
        """Stop. Everything is flushed, and the directory is marked as cleanly stopped unless that failed."""
        if self._lock is None:
            return
        self._appender.refusal = StoreClosed("the store is closed")
        self.loader.stop()
        self._stop_threads()
        try:
            has_all_entries = not self._queues.restore_lengths()
            self.flush()
            if has_all_entries:
                self._files.remove(self.config.path("abort"))
            else:
                # As after a crash that lost all queues: the next start rebuilds them from the log.
                self._distrust_queues()
            logger.info("store closed log_end=%d", self._log.end)
        except (CometError, OSError) as error:
            logger.error("store not closed cleanly error=%s", error)
        finally:
            self.hidden.forget()
            self.watermarks.abandon()
            self._close_files()

    def follow(self) -> None:
        """Take messages from a master's log alone: ``replica`` may be appended to, and puts are refused."""
        self._is_replica = True
        if not isinstance(self._appender.refusal, StoreClosed):
            self._appender.refusal = NotMaster("this broker is a slave: its log is its master's")

    def lead(self) -> None:
        """Take messages by puts, behind the last whole record that has come from a master."""
        self.open_again()
        self._is_replica = False
        while self.replica.dispatch():
            pass
        if self.hidden.first is not None:
            # Left from the time before it followed. Now they are what all others have to follow.
            self.flush()
            self.hidden.show_all()
        self._cut_partial()
        if isinstance(self._appender.refusal, NotMaster):
            self._appender.refusal = None
            self._watch_disk()

    def cut_tail(self, offset: int) -> str:
        """Remove the log of a replica from ``offset`` on, where a record begins. Returns the path of a copy.

        The rest is what a start does: queues and index are recovered to match the shorter log. Whoever waited for a
        flush is answered as if it had failed.

        Raises:
            CorruptFile, DiskFull, StoreError: the store may be closed then; see ``open_again``.
        """
        self.flush()
        directory = self.config.path(CUT_DIRECTORY)
        path = copy_tail(self._log, offset, directory, self._files, self._clock.wall_ms())
        self._stop_threads()
        # What is recovered is shown.
        self.hidden.forget()
        self.watermarks.abandon()
        self._checkpoint.marks = marks_before(self._checkpoint.marks, offset)
        self._checkpoint.save(sync=True)
        self._log.resume(offset)
        self._close_files()
        self.replica.renew()
        self.open_again()
        return path

    def open_again(self) -> None:
        """Load the store if a cut has left it closed, for want of space for example. Raises as ``load``."""
        if self._lock is None:
            self.load()
            if self._has_threads:
                self.start()

    def put(self, message: NewMessage) -> Stored:
        """Append a message. On return it is readable, unless it is ``hidden``. It is durable once
        ``watermarks.flushed`` has passed it.

        Raises:
            DiskFull: no space; nothing was stored.
            RecordTooLarge: body or properties exceed their limit.
            StoreClosed: not loaded, closed, or a flush has failed.
            UsageError: an invalid topic name.
        """
        return self.put_all([message])[0]

    def put_all(self, messages: list[NewMessage]) -> list[Stored]:
        """Append messages, all or none, with nothing in between. Raises the same errors as ``put``.

        A crash can truncate the group: then the last record of the log is one of these, and all before it are there.
        """
        if not messages:
            raise UsageError("expected messages to append, found none")
        return self._appender.append(NewMessages.of(messages)).each()

    def append(self, new: NewMessages) -> StoredMessages:
        """``put_all`` by columns."""
        return self._appender.append(new)

    def append_each(self, new: NewMessages) -> list[StoredMessages | Exception]:
        """Append independent messages: one outcome for all together, or one for each."""
        return self._appender.append_each(new)

    def append_plain(self, new: PlainMessages) -> int | None:
        """Append plain messages: where they end in the log, or None if nothing could be appended."""
        return self._appender.append_plain(new)

    def get(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max_count: int,
        *,
        max_bytes: int = UNLIMITED,
        tags: TagFilter | None = None,
        record: RecordFilter | None = None,
        scan_max: int = UNLIMITED,
        unit: UnitFilter | None = None,
        may_wait: bool = True,
    ) -> GetResult:
        """Records of a queue from ``offset`` on, as many as the limits allow; see ``GetStatus`` for the rest.

        Args:
            tags: selects an entry by its tags code.
            record: selects a record by its bytes; called after ``tags``.
            scan_max: maximum number of entries to look at.
            unit: rules an entry out by its unit, if the extended consume queue has one; called before ``record``.
            may_wait: for the disk; otherwise, what is not in memory is refused.

        Raises:
            NotInMemory: ``loader`` can load what is missing. That may have to be done twice: the entries of the
                queue, and then the records.
        """
        return self._reader.get(
            topic, queue_id, offset, max_count, max_bytes, tags, record, scan_max, unit, may_wait
        )

    def get_bulk(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        end_offset: int,
        limits: BulkLimits,
        *,
        tags: TagFilter | None = None,
        record: RecordFilter | None = None,
        unit: UnitFilter | None = None,
        may_wait: bool = True,
    ) -> BulkResult:
        """The same for a reader of a whole range, up to its end and within its limits, with sizes."""
        return self._bulk_reader.get(
            topic, queue_id, offset, end_offset, limits, tags, record, unit, may_wait
        )

    def min_offset(self, topic: str, queue_id: int) -> int:
        """The first offset whose record still exists; 0 for an unknown queue."""
        return self._reader.min_offset(topic, queue_id)

    def max_offset(self, topic: str, queue_id: int) -> int:
        """Where a queue ends for its readers: at its end, or at the first hidden message. 0 for an unknown queue."""
        return self._reader.max_offset(topic, queue_id)

    def offset_by_time(
        self, topic: str, queue_id: int, timestamp_ms: int, *, upper: bool = False
    ) -> int:
        """See ``Reader.offset_by_time``."""
        return self._reader.offset_by_time(topic, queue_id, timestamp_ms, upper=upper)

    def store_time(self, topic: str, queue_id: int, queue_offset: int) -> int:
        """When a message was stored, in ms; -1 if it does not exist."""
        return self._reader.store_time(topic, queue_id, queue_offset)

    def record_at(self, physical_offset: int, *, expected: bool = False) -> memoryview | None:
        """The whole record that starts at an offset of the log; None if none does, or if it is damaged.

        Args:
            expected: a record was there, so if there is none now, it is damaged.

        Raises:
            RecordBeingHealed: it is damaged, and a replica is being asked for it: try again.
        """
        return self._soundness.record(physical_offset, expected=expected)

    def record_time(self, physical_offset: int) -> int:
        """Store time of the record that begins there, in ms; -1 if none does."""
        return self._log.store_timestamp(physical_offset)

    def overwrite(self, physical_offset: int, record: bytes) -> File:
        """Replace a damaged record with its sound bytes. The caller syncs the returned file, and closes it.

        Raises:
            DiskFull: no space.
            UsageError: it is no sound record of that place, or the log does not reach so far.
        """
        if not is_sound(memoryview(record), physical_offset):
            raise UsageError(f"expected a sound record for offset {physical_offset}, found none")
        return self._log.overwrite(physical_offset, record)

    def decoded_at(
        self, physical_offset: int, topic: str | None = None, *, expected: bool = False
    ) -> Record | None:
        """``record_at``, decoded; None if that fails, too, or it is not of ``topic``."""
        record = readable_record(self.record_at(physical_offset, expected=expected))
        return record if record is None or topic in (None, record.topic) else None

    def log_view(self, offset: int, size_bytes: int) -> memoryview | None:
        """Bytes of the log as they are, of one file; None when they are not, or no longer, there."""
        return self._log.view(offset, size_bytes)

    def entries(
        self, topic: str, queue_id: int, offset: int, count: int
    ) -> list[tuple[int, int, int]]:
        """Raw queue entries, hidden ones included: physical offset, size, tags code."""
        return self._reader.entries(topic, queue_id, offset, count)

    def units(self, topic: str, queue_id: int, offset: int, count: int) -> list[Unit | None]:
        """What the extended consume queue holds for these entries; None where it holds nothing."""
        return self._reader.units(topic, queue_id, offset, count)

    def delivered_since(self, physical_offset: int) -> Iterator[Delivered]:
        """Delayed messages that were delivered by records from an offset on, where a record must begin."""
        return delivered_since(self._log, physical_offset)

    def copied_since(self, physical_offset: int, topic: str) -> Iterator[Record]:
        """Waiting records of a topic that were copied by records from an offset on."""
        return copied_since(self._log, physical_offset, topic)

    def sink_marks_since(self, physical_offset: int) -> Iterator[tuple[SinkMark, int]]:
        """Rows that sinks wrote, with their offsets, from an offset on, where a record must begin."""
        return sink_marks_since(self._log, physical_offset)

    def sink_rows(
        self, mark: SinkMark, start: int, stop: int, bytes_max: int, *, of_others: bool = False
    ) -> SinkRows:
        """See ``sink_scan``."""
        return sink_rows(self._log, mark, start, stop, bytes_max, of_others=of_others)

    def query(
        self, topic: str, key: str, max_count: int, begin_ms: int, end_ms: int
    ) -> QueryResult:
        """Records with a key (or unique key), newest first; at most as many as the settings allow."""
        limit = min(max_count, self.config.index.query_count_max)
        return self._reader.query(topic, key, limit, begin_ms, end_ms)

    def is_in_memory(self, physical_offset: int) -> bool:
        return self._reader.is_in_memory(physical_offset)

    def topics(self) -> list[str]:
        return list(self._queues.table)

    def queue_ids(self, topic: str) -> list[int]:
        return sorted(self._queues.table.get(topic, ()))

    @property
    def min_physical(self) -> int:
        return self._log.start

    @property
    def max_physical(self) -> int:
        return self._log.end

    @property
    def last_record(self) -> int:
        """Where the last record of the log begins, if known: always after a crash, otherwise since the last put."""
        return self._appender.last_record

    @property
    def last_timestamp(self) -> int:
        """Store time of the newest message, in ms; the next one is never earlier, whatever the clock does."""
        return self._log_flusher.store_timestamp

    @property
    def flush_behind_bytes(self) -> int:
        return max(self.watermarks.appended.value - self.watermarks.flushed.value, 0)

    @property
    def flush_times(self) -> FlushTimes:
        return self._log_flusher.times

    @property
    def fault(self) -> str | None:
        """Why the log cannot be written until a restart; None as long as it can."""
        refusal = self._appender.refusal
        return str(refusal) if isinstance(refusal, StoreClosed) else None

    @property
    def dispatch_behind_bytes(self) -> int:
        return max(self.watermarks.appended.value - self.watermarks.dispatched.value, 0)

    @property
    def is_disk_full(self) -> bool:
        return self._housekeeping.is_disk_full

    @property
    def log_disk_ratio(self) -> float:
        return self._files.used_ratio(self.config.log_path)

    @property
    def queue_disk_ratio(self) -> float:
        return self._files.used_ratio(self._queues.directory)

    def earliest_store_time(self) -> int:
        """Store time of the oldest message, in ms; -1 if there is none."""
        return self._log.store_timestamp(self._log.start)

    def delete_topic(self, topic: str) -> None:
        """Delete the queues of a topic, durably; its records are deleted with their log files. Raises DiskFull."""
        self._housekeeping.delete_topics([topic])

    def clean_unused(self, keep: Container[str]) -> int:
        """Delete the queues of all topics except ``keep``. Returns the number of topics."""
        unused = [topic for topic in self._queues.table if topic not in keep]
        self._housekeeping.delete_topics(unused)
        return len(unused)

    def clean_expired_queues(self) -> None:
        """Delete queues in which all messages have expired."""
        self._housekeeping.delete_expired_queues()

    def delete_expired_files(self) -> None:
        """Delete expired files with the next rounds of ``maintain``, whatever the hour."""
        self._housekeeping.ask()

    def maintain(self) -> None:
        """Retention, disk check, writing waiting entries. To be called about every ten seconds."""
        # Not what the flusher is about to guarantee, but what it has guaranteed.
        dispatched_offset = self._checkpoint.kept_offset
        self._housekeeping.run(min(self.watermarks.flushed.value, dispatched_offset))
        self._watch_disk()
        self._soundness.age()
        try:
            self._appender.write_part(WRITTEN_AT_ONCE)
        except DiskFull:
            logger.warning("queue entries wait for space count=%d", self._queues.waiting_count)

    def apply(self, config: StoreConfig) -> None:
        """Apply settings that may change while running. Raises ConfigError."""
        self._housekeeping.apply(config.retention)
        self._reader.apply(config.read)
        self._soundness.apply(config.read)
        self._log_flusher.apply(config.flush)
        self._queue_flusher.apply(config.flush)
        self._appender.body_bytes_max = config.log.message_bytes_max
        self.config = config

    def _make_queues(self, filter_bits: FilterBits) -> ConsumeQueues:
        config, directory = self.config, self.config.path(QUEUES_DIRECTORY)
        if not config.queues.extended:
            return ConsumeQueues(directory, config.queues, self._files)
        queues = ExtendedConsumeQueues(
            directory,
            config.path("consumequeue_ext"),
            config.queues,
            self._files,
            self._log,
            filter_bits,
        )
        queues.before_rebuild = self._distrust_queues
        return queues

    def _cut_partial(self) -> None:
        end = self.replica.dispatched
        if end == self.replica.end:
            return
        self._stop_threads()
        try:
            # Before the bytes go: a start that finds zeros where the log was on disk takes them for damage.
            self._checkpoint.marks = marks_before(self._checkpoint.marks, end)
            self._checkpoint.save(sync=True)
            self.replica.cut_partial()
        finally:
            if self._has_threads:
                self.start()

    def _distrust_queues(self) -> None:
        """If the process dies while queues are rebuilt, the next start rebuilds all of them."""
        self._checkpoint.marks.dispatched_offset = 0
        self._checkpoint.marks.logical_ms = 0
        self._checkpoint.save(sync=True)

    def _recover(self) -> None:
        has_checkpoint = self._checkpoint.load()
        self._deleted.load()
        self._log.load()
        deleted = self._deleted.by_topic_bytes()
        abort = self.config.path("abort")
        boot_id = self._files.boot_id().encode()
        is_clean = not self._files.exists(abort)
        stop = Stop(
            is_clean=is_clean,
            has_checkpoint=has_checkpoint,
            is_same_boot=not is_clean and boot_id != b"" and self._files.read(abort) == boot_id,
            marks=self._checkpoint.marks,
        )
        follower = self._make_follower()
        recovery = Recovery(
            self.config, self._files, self._log, self._queues, self._index, follower, deleted, stop
        )

        # RocketMQ only checks that this file exists; the boot id in it is our extension.
        def note_start() -> None:
            if is_clean:
                self._files.replace(abort, boot_id)
            elif has_checkpoint:
                # A half-written checkpoint lets the scan start early, and queues are cut to that. A power loss would
                # bring back the one before, and the next scan would start behind what was cut.
                self._checkpoint.save(sync=True)

        recovery.run(note_start)
        if is_clean:
            self._repair.check_newest(CHECKED_BYTES)
        self._queues.trust_what_comes()
        self._soundness.trust_what_comes()
        self.damages.forget_from(recovery.end)
        for damage in recovery.damaged:
            self.damages.found(damage)
        self._checkpoint.marks = recovery.marks_after()
        self._checkpoint.save(sync=True)
        self.watermarks.reset(recovery.end)
        self._appender.resume(recovery.last_timestamp, recovery.last_record)
        self._log_flusher.flushed_timestamp = recovery.last_timestamp
        if self._deleted:
            self._deleted.prune(self._log.start, recovery.end)
        if not is_clean and not stop.is_same_boot:
            # Only after everything is repaired: a kill before that must not make lost writes look like surviving ones.
            self._files.replace(abort, boot_id)

    def _stop_threads(self) -> None:
        self._housekeeping.stop()
        self._log_flusher.stop()
        self._queue_flusher.stop()

    def _make_follower(self) -> Follower:
        deleted = self._deleted.by_topic_bytes()
        return Follower(self._log, self._queues, self._index, self._delay_levels, deleted)

    def _on_flush_failure(self, reason: str) -> None:
        self._appender.refusal = StoreClosed(reason)

    def _watch_disk(self) -> None:
        self._housekeeping.watch_disk()
        self._disk_checked_at = self._clock.monotonic()
        is_refusing = isinstance(self._appender.refusal, DiskFull)
        if self._housekeeping.is_disk_full and self._appender.refusal is None:
            limit = self.config.retention.disk_warning_percent
            self._appender.refusal = DiskFull(f"more than {limit} percent of the disk are in use")
        elif is_refusing and not self._housekeeping.is_disk_full:
            self._appender.refusal = None

    def _recheck_disk(self) -> None:
        if self._clock.monotonic() >= self._disk_checked_at + DISK_CHECK_SECONDS:
            self._watch_disk()

    def _close_files(self) -> None:
        if self._index is not None:
            self._index.abandon()
        self._queues.close()
        self._log.close()
        self._checkpoint.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __repr__(self) -> str:
        return f"<MessageStore {self.config.root} {self._log} {self.watermarks}>"
