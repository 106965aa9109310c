"""What to trust after a stop, clean or not.

First everything is examined and nothing is changed: where to start, how far the log is valid, and whether it may end
there. A torn tail is normal after a crash and is cut. Damage is not normal (``log_end`` tells the two apart): cutting
there would drop acknowledged messages. A few damaged records are noted and passed over: they are never handed out, and
a replica may heal them. If there are many, or the log ends with damage, the store refuses to start and says where. Nor
is a missing log while
checkpoint or queues know of one: most likely its disk is not mounted. Then the log is cut at its end, queues and index
are cut to match, and the follower feeds them what they lack.

Where the scan starts. Clean stop: only the last part of the log, since everything was flushed. Unclean stop: our own
checkpoint gives the offset below which log and queues are on disk; without it (a Java broker's store), the newest file
whose first record is older than the checkpoint's times, as in Java.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from cometmq.base.errors import CorruptFile
from cometmq.base.ports import Files
from cometmq.store.files.queue_end import NO_BOUND
from cometmq.store.files.record_scan import Scanned, scan_record
from cometmq.store.index.index_files import IndexFiles
from cometmq.store.log.commit_log import CommitLog
from cometmq.store.log.damage import Damage, damage_of
from cometmq.store.log.log_scan import LogWalk, find_record
from cometmq.store.queues.consume_queues import ConsumeQueues, Written
from cometmq.store.recovery.checkpoint import Marks
from cometmq.store.recovery.log_end import FOLLOWER_WITHIN_BYTES, damage_at
from cometmq.store.recovery.log_follower import Follower, has_queue_entry
from cometmq.store.recovery.queue_recovery import QueueRecovery, Spans
from cometmq.store.store_config import StoreConfig

logger = logging.getLogger("cometmq.store")

CLEAN_WINDOW_BYTES: Final = 64 << 20
"""How much of the log is verified after a clean stop if the checkpoint says where it ends."""
LOOK_BACK_BYTES: Final = 1 << 20
"""The scan starts with a record at most this far below the checkpoint, so that it starts with a valid one."""
DAMAGED_MAX: Final = 64
"""Damaged places that a start passes over. More are no rot: the file, the disk or its mount is a wrong one."""
FILES_VERIFIED: Final = 3
"""Number of files that Java verifies after a clean stop."""


@dataclass(slots=True)
class Stop:
    """How the last process ended, and what it left in the checkpoint."""

    is_clean: bool
    has_checkpoint: bool
    is_same_boot: bool
    """The operating system has not restarted since: nothing that was written is lost, synced or not."""
    marks: Marks


class Recovery:
    def __init__(
        self,
        config: StoreConfig,
        files: Files,
        log: CommitLog,
        queues: ConsumeQueues,
        index: IndexFiles | None,
        follower: Follower,
        deleted: dict[bytes, int],
        stop: Stop,
    ) -> None:
        self._config = config
        self._files = files
        self._log = log
        self._queues = queues
        self._index = index
        self._follower = follower
        self._deleted = deleted
        self._stop = stop
        self._spans = Spans()
        self._queue_recovery = QueueRecovery(log, queues, deleted, is_clean=stop.is_clean)
        self.end = 0
        """Where the log ends."""
        self.last_timestamp = 0
        """Store time of the last record."""
        self.last_record = 0
        """Where the last record starts."""
        self.damaged: list[Damage] = []
        """Records that were passed over."""
        self._index_was_cut = False

    def run(self, before_changes: Callable[[], None]) -> None:
        """Make log, queues and index consistent.

        Args:
            before_changes: called once everything is known to be recoverable, before the first change on disk.

        Raises:
            CorruptFile: something is damaged or foreign; nothing was changed.
            DiskFull: no space to continue; the next start resumes from here.
        """
        self._queue_recovery.load()
        if not self._log.row.files:
            self._judge_missing_log()
            before_changes()
            self._load_index()
            self._start_empty()
            self._make_durable()
            return
        start = self._scan_start()
        self._scan(start)
        before_changes()
        self._load_index()
        self._log.resume(self.end)
        self._log.sync_range(start, self.end)
        self._queue_recovery.settle(NO_BOUND if self._stop.is_clean else start, self.end)
        self._feed(start)
        self._make_durable()
        indexed_record = self._index.end_offset if self._index is not None else -1
        self._queues.written = Written(
            self.end, self.last_timestamp, self.last_record, indexed_record
        )
        logger.info(
            "store recovered clean=%s log_start=%d log_end=%d scanned_from=%d topics=%d",
            self._stop.is_clean,
            self._log.start,
            self.end,
            start,
            len(self._queues.table),
        )

    def _make_durable(self) -> None:
        """Make sure that what was wiped or removed stays so.

        After another kill it would be unknown that this is not on disk yet, and after a power loss the old entries
        could no longer be told from valid ones.
        """
        if not self._stop.is_clean:
            self._files.sync_partition(self._config.root)

    def marks_after(self) -> Marks:
        """What the checkpoint may guarantee now: the log was synced, the queues not yet."""
        before = self._stop.marks
        if self.end == 0:
            return Marks(flushed_offset=0, dispatched_offset=0)
        return replace(
            before,
            physical_ms=self.last_timestamp,
            logical_ms=min(before.logical_ms, self.last_timestamp),
            last_dispatched_record=min(before.last_dispatched_record, self.last_record),
            flushed_offset=self.end,
            dispatched_offset=min(before.dispatched_offset, self.end),
        )

    def _load_index(self) -> None:
        if self._index is None:
            return
        stop = self._stop
        directory = self._config.path("index")
        names = self._files.names(directory)
        if stop.is_same_boot:
            # The killed process may not have synced what it wrote, and the index assumes that full files are durable.
            for name in names:
                file = self._files.open(f"{directory}/{name}", mapped=False)
                file.sync()
                file.close()
            if names:
                self._files.sync_directory(directory)
        may_have_lost_writes = not (stop.is_clean or stop.is_same_boot)
        self._index.load(
            stop.marks.index_ms if may_have_lost_writes else None,
            safe_record=stop.marks.indexed_record if stop.marks.indexed_record >= 0 else None,
            was_killed=stop.is_same_boot,
        )
        self._index_was_cut = self._index.file_count < len(names)

    def _start_empty(self) -> None:
        """Without a log there is nothing that a queue could point to."""
        if count := self._queue_recovery.queue_count:
            logger.warning("consume queues removed count=%d reason=no-log-files", count)
        for topic in list(self._queues.table):
            self._queues.delete_topic(topic)
        self._queues.settled()
        if self._index is not None:
            self._index.truncate(0)
        self._log.resume(0)

    def _scan_start(self) -> int:
        marks = self._stop.marks
        row = self._log.row
        if self._stop.is_clean:
            oldest = row.files[max(len(row.files) - FILES_VERIFIED, 0)].start
            anchor = max(marks.dispatched_offset, marks.last_dispatched_record)
            if anchor > 0:
                # However many empty files follow, the end itself has to be checked.
                oldest = min(oldest, anchor - anchor % self._log.file_bytes)
            return self._sound_record(anchor - CLEAN_WINDOW_BYTES, anchor, oldest)
        if 0 <= min(marks.flushed_offset, marks.dispatched_offset) <= row.end:
            anchor = max(min(marks.flushed_offset, marks.dispatched_offset), row.start)
            file_start = anchor - anchor % self._log.file_bytes
            return self._sound_record(anchor - LOOK_BACK_BYTES, anchor, min(file_start, row.end))
        return self._start_by_time()

    def _sound_record(self, low: int, high: int, otherwise: int) -> int:
        if low > otherwise:
            record = find_record(self._log.row, low, high)
            if record is not None:
                return record.physical_offset
        return max(otherwise, self._log.row.start)

    def _start_by_time(self) -> int:
        safe_ms = self._stop.marks.safe_ms
        if self._config.index.safe and self._config.index.enabled:
            safe_ms = min(safe_ms, self._stop.marks.index_ms)
        for log_file in reversed(self._log.row.files):
            view = log_file.file.view(0, self._log.file_bytes)
            first = scan_record(view, 0, log_file.start, check_crc=True)
            if first is not None and 0 < first.store_timestamp <= safe_ms:
                return log_file.start
        return self._log.row.start

    def _scan(self, start: int) -> None:
        stop = self._stop
        self.last_timestamp = stop.marks.physical_ms if start > self._log.row.start else 0
        self.last_record = stop.marks.last_dispatched_record
        last_seen_ms = 0
        position: int | None = start
        while position is not None:
            walk = LogWalk(
                self._log.row,
                position,
                check_crc=self._config.log.check_crc_on_recover,
                unsynced_from=max(stop.marks.flushed_offset, 0),
                # A clean stop loses nothing, but a slave's log may end inside a record if its master failed then.
                writes_survive=stop.is_same_boot or stop.is_clean,
            )
            for record in walk:
                self._note(record)
                last_seen_ms = record.store_timestamp
                self.last_record = record.physical_offset
            self.end = walk.position
            position = self._judge(walk.fault, last_seen_ms)
        self.last_timestamp = max(self.last_timestamp, last_seen_ms)

    def _note(self, record: Scanned) -> None:
        if not has_queue_entry(record.sys_flag):
            return
        if self._deleted and record.physical_offset < self._deleted.get(record.topic, 0):
            return
        self._spans.note(record)

    def _judge(self, fault: str, last_seen_ms: int) -> int | None:
        """Decide whether the log may end where the valid records end. If not, where it goes on behind the damage."""
        stop, marks = self._stop, self._stop.marks
        if marks.flushed_offset >= 0:
            is_short = self.end < marks.flushed_offset
        else:
            is_short = not stop.has_checkpoint or last_seen_ms < marks.physical_ms
        damage = damage_at(
            self._log.row,
            self.end,
            flushed=marks.flushed_offset,
            is_short=is_short,
            writes_survive=stop.is_clean or stop.is_same_boot,
        )
        log_file = self._log.row.at(self.end)
        path = self._log.row.path(self.end) if log_file is None else log_file.path
        position = 0 if log_file is None else self.end - log_file.start
        if damage:
            following = self._pass_over()
            if following is not None:
                return following
            found = fault or ("a missing file" if log_file is None else "zeros")
            self._refuse_or_report(
                path,
                f"damaged record at byte {position} (offset {self.end}): {found}; {damage}",
                "Restore the file from a copy or a replica; or, to drop this record and all behind "
                "it, keep a copy of the directory and start with recoverByTruncating=true.",
            )
            logger.error("log truncated offset=%d reason=recoverByTruncating", self.end)
        elif fault or (is_short and stop.has_checkpoint):
            logger.log(
                logging.ERROR if is_short else logging.WARNING,
                "log tail cut path=%s position=%d offset=%d flushed_offset=%d fault=%r",
                path,
                position,
                self.end,
                marks.flushed_offset,
                fault,
            )
        return None

    def _pass_over(self) -> int | None:
        """Note what is damaged at the end of the valid records. Where the log goes on; None if it must not be used."""
        if self._config.log.recover_by_truncating or len(self.damaged) >= DAMAGED_MAX:
            return None
        log_file = self._log.row.at(self.end)
        if log_file is None:
            return None
        view = log_file.file.view(0, self._log.file_bytes)
        record = scan_record(view, self.end - log_file.start, log_file.start, check_crc=False)
        if (
            record is not None
            and scan_record(view, self.end - log_file.start, log_file.start, check_crc=True) is None
        ):
            # Only the body is damaged: it keeps its place in its queue.
            self._note(record)
            self.last_record = record.physical_offset
            self.damaged.append(damage_of(record))
            return record.physical_offset + record.size_bytes
        search_end = max(self._stop.marks.flushed_offset, self.end + FOLLOWER_WITHIN_BYTES)
        following = find_record(self._log.row, self.end + 1, search_end)
        if following is None:
            return None
        self.damaged.append(Damage(self.end))
        return following.physical_offset

    def _judge_missing_log(self) -> None:
        """A store without log files is new, unless something in it says otherwise."""
        marks = self._stop.marks
        known: list[str] = []
        if marks.flushed_offset > 0 or marks.physical_ms > 0:
            written = (
                f"up to offset {marks.flushed_offset}" if marks.flushed_offset > 0 else "before"
            )
            known.append(f"the checkpoint says that the log was on disk {written}")
        if count := self._queue_recovery.queue_count:
            known.append(f"consumequeue holds the files of {count} queues")
        if known:
            self._refuse_or_report(
                self._log.row.directory,
                f"no log files, though {' and '.join(known)}",
                "Mount the disk or restore the directory; or, to give up all messages, keep a copy of "
                "the store and start with recoverByTruncating=true.",
            )

    def _refuse_or_report(self, path: str, reason: str, advice: str) -> None:
        logger.error("log damaged path=%s reason=%r", path, reason)
        if not self._config.log.recover_by_truncating:
            raise CorruptFile(path, reason, advice)

    def _feed(self, scan_start: int) -> None:
        """Let the follower add what queues and index lack."""
        start = scan_start
        if self._stop.is_clean:
            start = min(self._queue_recovery.record_end, self.end)
        gaps = self._queue_recovery.gaps(self._spans)
        start = max(min([start, *gaps, *self._index_start()]), self._log.start)
        if start < min(scan_start, self.end):
            # After a kill, the index is usually behind the log. After a clean stop, something was damaged.
            level = logging.WARNING if self._stop.is_clean else logging.INFO
            logger.log(level, "queues or index rebuilt from=%d to=%d", start, self.end)
        if self._follower.feed(start, self.end) < self.end:
            # A queue entry did not end at a record boundary, so it led nowhere; or a record is damaged: start from
            # the very beginning.
            logger.warning("queues rebuilt from=%d reason=bad-entry-or-record", self._log.start)
            self._follower.feed(self._log.start, self.end, passes_damage=True)

    def _index_start(self) -> list[int]:
        """Where to start feeding the index; empty if it is as complete as the queues."""
        if self._index is None:
            return []
        before = self._index.file_count
        self._index.truncate(self.end)
        was_cut = self._index_was_cut or self._index.file_count < before
        end_offset = self._index.end_offset
        lacks_some = end_offset < self._stop.marks.indexed_record
        # An interrupted recovery may have dropped files, and the keys of one record may be in two files. Nor do the
        # times of a checkpoint without offsets (torn, or Java's) say anything about a file that is not full.
        is_unknown = self._index.ends_full or self._stop.marks.dispatched_offset < 0
        may_lack_keys = is_unknown and not self._stop.is_clean
        return [end_offset] if was_cut or lacks_some or may_lack_keys else []
