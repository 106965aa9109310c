"""Makes written bytes durable: one thread for the log, one for queues, index and checkpoint.

The log's flusher is the group commit: it remembers how far the log reaches, syncs once, and releases everyone who
waits for an offset below. In ASYNC_FLUSH nobody waits, and it syncs at intervals.

A failed sync is final. The kernel drops the failed pages and reports the error once, so a second sync would succeed
without the bytes being on disk: the mark does not move, the store refuses further puts, and recovery decides.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from cometmq.base.errors import CometError
from cometmq.base.ports import Clock
from cometmq.store.index.index_files import IndexFiles
from cometmq.store.log.commit_log import CommitLog
from cometmq.store.queues.consume_queue import PAGE_BYTES
from cometmq.store.queues.consume_queues import ConsumeQueues
from cometmq.store.recovery.checkpoint import Checkpoint
from cometmq.store.store_config import FlushConfig
from cometmq.store.upkeep.flush_times import FlushTimes
from cometmq.store.watermarks import Watermarks

logger = logging.getLogger("cometmq.store")


REDISPATCHED_BYTES_MAX: Final = 256 * 1024 * 1024
"""Bytes of the log whose queue entries recovery may have to rebuild, because they were not synced."""


class _Worker:
    """A thread that runs ``_round`` until it is stopped, at most ``_pause`` seconds after the previous round."""

    def __init__(self, name: str) -> None:
        self._wake = threading.Event()
        self._is_stopping = False
        self._thread: threading.Thread | None = None
        self._name = name

    def start(self) -> None:
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name=self._name)
        self._thread.start()

    def wake(self) -> None:
        if not self._wake.is_set():
            self._wake.set()

    def stop(self) -> None:
        """Stop the thread and wait for it."""
        if self._thread is not None:
            self._is_stopping = True
            self._wake.set()
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while not self._is_stopping:
            self._wake.wait(self._pause())
            self._wake.clear()
            if not self._round():
                return

    def _pause(self) -> float:
        raise NotImplementedError

    def _round(self) -> bool:
        """One round; False ends the thread."""
        raise NotImplementedError


class LogFlusher(_Worker):
    def __init__(
        self,
        log: CommitLog,
        watermarks: Watermarks,
        config: FlushConfig,
        clock: Clock,
        on_failure: Callable[[str], None],
    ) -> None:
        super().__init__("cometmq-log-flush")
        self.store_timestamp = 0
        """Store time of the newest record, kept up to date by the store."""
        self.flushed_timestamp = 0
        """Store time up to which records are guaranteed to be flushed."""
        self._log = log
        self._watermarks = watermarks
        self._config = config
        self._clock = clock
        self._on_failure = on_failure
        self._flushed_at = clock.monotonic()
        self.has_failed = False
        self.times = FlushTimes()

    def apply(self, config: FlushConfig) -> None:
        self._config = config

    def flush(self) -> bool:
        """Sync everything appended so far; False if that failed."""
        flushed = self._watermarks.flushed
        # Read before the sync starts: what is appended meanwhile may or may not be covered. The time first, so that
        # it never belongs to a record beyond the target.
        timestamp = self.store_timestamp
        target = self._watermarks.appended.value
        if self.has_failed:
            return False
        if target > flushed.value:
            started = self._clock.monotonic()
            try:
                self._log.sync_range(flushed.value, target)
            except (OSError, CometError) as error:
                self.has_failed = True
                logger.critical(
                    "log flush failed from=%d to=%d error=%s", flushed.value, target, error
                )
                self._on_failure(f"the log could not be written to disk: {error}")
                return False
            self.times.add(self._clock.monotonic() - started)
            flushed.advance(target)
        self.flushed_timestamp = timestamp
        self._flushed_at = self._clock.monotonic()
        return True

    def _pause(self) -> float:
        # Somebody may have started to wait during the last sync. Those that wait for what is already synced are just
        # not released yet: the owner thread will do that, and needs the interpreter for it.
        marks = self._watermarks
        if marks.flushed.waiting and marks.appended.value > marks.flushed.value:
            return 0
        return self._config.log_interval_ms / 1000

    def _round(self) -> bool:
        behind = self._watermarks.appended.value - self._watermarks.flushed.value
        idle_ms = (self._clock.monotonic() - self._flushed_at) * 1000
        if (
            self._watermarks.flushed.waiting
            or behind >= self._config.log_least_pages * PAGE_BYTES
            or idle_ms >= self._config.log_thorough_interval_ms
        ):
            return self.flush()
        return True


class QueueFlusher(_Worker):
    """Syncs queues and index, and writes the checkpoint; it is the only writer while it runs."""

    def __init__(
        self,
        queues: ConsumeQueues,
        index: IndexFiles | None,
        checkpoint: Checkpoint,
        log_flusher: LogFlusher,
        watermarks: Watermarks,
        config: FlushConfig,
        clock: Clock,
    ) -> None:
        super().__init__("cometmq-queue-flush")
        self._queues = queues
        self._index = index
        self._checkpoint = checkpoint
        self._log_flusher = log_flusher
        self._watermarks = watermarks
        self._config = config
        self._clock = clock
        self._flushed_at = clock.monotonic()
        self._is_asked_for = False
        self.has_failed = False

    def apply(self, config: FlushConfig) -> None:
        self._config = config

    def flush_soon(self) -> None:
        """Flush with the next round, however little there is to flush, and start that round now."""
        self._is_asked_for = True
        self.wake()

    def flush(self) -> None:
        """Sync what is written of queues and index, then record it in the checkpoint."""
        if self.has_failed:
            return
        self._is_asked_for = False
        marks = self._checkpoint.marks
        self._note_flushed_log()
        try:
            promise = self._queues.sync()
            if self._index is not None:
                self._index.sync()
                marks.index_ms = max(marks.index_ms, self._index.safe_until_ms)
            marks.dispatched_offset = promise.offset
            marks.logical_ms = max(marks.logical_ms, promise.store_timestamp)
            marks.last_dispatched_record = promise.last_record
            marks.indexed_record = promise.indexed_record
            self._checkpoint.save(sync=True)
        except (OSError, CometError) as error:
            self._fail(error)
        self._flushed_at = self._clock.monotonic()

    def _note_acknowledged(self) -> None:
        """In SYNC_FLUSH, what was flushed was acknowledged: record it in the checkpoint, however little it is.

        After a power loss, this distinguishes damage of acknowledged records from a torn tail.
        """
        if not self._config.is_sync or self.has_failed:
            return
        if self._checkpoint.marks.flushed_offset == self._watermarks.flushed.value:
            return
        self._note_flushed_log()
        try:
            self._checkpoint.save(sync=True)
        except (OSError, CometError) as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        # Recovery starts from the last checkpoint, which is still valid: no need to stop the store.
        self.has_failed = True
        logger.critical("queue flush failed error=%s", error)

    def _note_flushed_log(self) -> None:
        marks = self._checkpoint.marks
        # The flushed offset is read after its time, so that the time never covers more.
        marks.physical_ms = max(marks.physical_ms, self._log_flusher.flushed_timestamp)
        marks.flushed_offset = self._watermarks.flushed.value

    def _pause(self) -> float:
        return self._config.queue_interval_ms / 1000

    @property
    def is_due(self) -> bool:
        """Whether a flush was requested, is worth its pages, or is late."""
        queues, config = self._queues, self._config
        behind_bytes = queues.written.offset - self._checkpoint.marks.dispatched_offset
        idle_ms = (self._clock.monotonic() - self._flushed_at) * 1000
        return (
            self._is_asked_for
            or queues.unsynced_bytes_per_file >= config.queue_least_pages * PAGE_BYTES
            or behind_bytes >= REDISPATCHED_BYTES_MAX
            or idle_ms >= config.queue_thorough_interval_ms
        )

    def _round(self) -> bool:
        if self.is_due:
            self.flush()
        else:
            self._note_acknowledged()
        return not self.has_failed
