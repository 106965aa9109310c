"""The way of a master's log into the store of its slave: raw bytes first, then the entries of whole records.

The log arrives in pieces that may end anywhere, and is appended as it is. A record is entered into its queue and the
index once all of it is there. One whose checksum does not agree is entered, too, but never handed out. Appending is
quick and dispatching is not, so the two are separate calls: what the log has is safe, what was dispatched can be read.
Where the master tells how far all its replicas have the log, no more than that is dispatched: the rest may be cut when
another master is elected, and who had read it would miss what comes in its place.

Thread rule: the owner of the store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cometmq.base.errors import CorruptFile, UsageError
from cometmq.model.messages.record import peek
from cometmq.model.messages.record_layout import BLANK_BYTES, MAGIC_BLANK
from cometmq.store.files.record_scan import Scanned, scan_record
from cometmq.store.log.appender import Appender
from cometmq.store.log.commit_log import CommitLog
from cometmq.store.log.log_scan import find_record
from cometmq.store.log.mapped_file_queue import LogFile
from cometmq.store.log.record_check import begins_soundly
from cometmq.store.queues.consume_queues import ConsumeQueues
from cometmq.store.recovery.log_follower import Follower
from cometmq.store.watermarks import Watermarks

DISPATCHED_AT_ONCE: Final = 256
"""Records that one call dispatches: some milliseconds, in which nobody else is served."""


class ReplicaLog:
    def __init__(
        self,
        log: CommitLog,
        queues: ConsumeQueues,
        follower: Callable[[], Follower],
        appender: Appender,
        watermarks: Watermarks,
        on_damage: Callable[[Scanned], None],
    ) -> None:
        """
        Args:
            on_damage: told of a record that came with a damaged body.
        """
        self._log = log
        self._queues = queues
        self._make_follower = follower
        self._follower: Follower | None = None
        self._appender = appender
        self._watermarks = watermarks
        self._on_damage = on_damage

    @property
    def start(self) -> int:
        return self._log.start

    @property
    def end(self) -> int:
        return self._log.end

    @property
    def dispatched(self) -> int:
        """Below here all records are in their queues."""
        return self._watermarks.dispatched.value

    def read(self, offset: int, size_bytes: int) -> bytes:
        """Bytes of the log, from one file or several. Raises UsageError when it does not hold them."""
        parts: list[memoryview] = []
        while size_bytes > 0:
            part_bytes = min(size_bytes, self._log.next_file_start(offset) - offset)
            part = self._log.view(offset, part_bytes)
            if part is None:
                raise UsageError(f"the log does not hold {part_bytes} bytes at offset {offset}")
            parts.append(part)
            offset += part_bytes
            size_bytes -= part_bytes
        return b"".join(parts)

    def record_from(self, offset: int) -> int:
        """Where the first record at or behind ``offset`` begins; the end of the log when there is none."""
        record = find_record(self._log.row, max(offset, self.start), self.end)
        return self.end if record is None else record.physical_offset

    def record_around(self, offset: int, low: int) -> int:
        """Where the record begins that holds the byte at ``offset``. An earlier one, or the same, begins at ``low``."""
        position = low
        while (following := self._end_of(position)) is not None and following <= offset:
            position = following
        return position

    def is_sound(self, offset: int) -> bool:
        """Whether the record that begins at ``offset`` is here as a whole, and undamaged."""
        end = self._end_of(offset)
        if end is None:
            return False
        verdict = self.judge(offset, self.read(offset, BLANK_BYTES))
        if verdict is None:
            verdict = self.judge(offset, self.read(offset, end - offset))
        return bool(verdict)

    def judge(self, offset: int, data: bytes | bytearray) -> bool | None:
        """Whether another log has an undamaged record at ``offset``; None: more of its bytes are needed to tell."""
        return begins_soundly(data, offset, self._log.next_file_start(offset))

    def append(self, offset: int, data: bytes | memoryview) -> None:
        """Append a piece of the master's log.

        Raises:
            DiskFull: no space; nothing was appended.
            UsageError: it does not belong behind what is there.
        """
        log = self._log
        if log.end == 0 and offset:
            log.begin_at(offset)
            self._watermarks.dispatched.advance(offset)
        if offset != log.end:
            raise UsageError(f"expected bytes of offset {log.end}, found those of {offset}")
        while data:
            room = log.next_file_start(log.end) - log.end
            log.append_raw(data[:room])
            data = data[room:]
        self._watermarks.append_raw(log.end)

    def dispatch(self, end_max: int | None = None, *, count_max: int = DISPATCHED_AT_ONCE) -> bool:
        """Enter the next whole records into their queues and the index. Whether there are more.

        Args:
            end_max: take the log to end there, if it goes on.

        Raises:
            CorruptFile: what came is no record. It stays undispatched.
            DiskFull: entries wait for space; call again later.
        """
        if self._follower is None:
            self._follower = self._make_follower()
        if self._queues.is_write_due:
            self._appender.write_part()
        end = self._log.end if end_max is None else min(self._log.end, end_max)
        if self._dispatch_usual(end, count_max):
            return self._end_of(self.dispatched, end) is not None
        records, position = self._scan(self.dispatched, end, count_max)
        if records:
            entered, last = self._follower.enter(records), records[-1]
            self._appender.resume(last.store_timestamp, last.physical_offset)
            self._watermarks.dispatched.advance(position)
            self._appender.tell(*entered, last.store_timestamp)
        self._watermarks.dispatched.advance(position)
        return self._end_of(position, end) is not None

    def _dispatch_usual(self, end: int, count_max: int) -> bool:
        """Enter what a compiled twin can. Whether there was something."""
        assert self._follower is not None
        position = self.dispatched
        log_file = self._log.row.at(position)
        if log_file is None or position >= end:
            return False
        start = log_file.start
        view = log_file.file.view(0, min(end, start + self._log.file_bytes) - start)
        entered = self._follower.enter_usual(view, position - start, position, count_max)
        if entered is None:
            return False
        self._appender.resume(entered.last_time, entered.last_place)
        self._watermarks.dispatched.advance(entered.end)
        if self._appender.is_awaited(entered.topics, entered.queue_ids):
            records, _ = self._scan(position, entered.end, count_max)
            self._appender.tell(*self._follower.described(records), entered.last_time)
        return True

    def renew(self) -> None:
        """The store is about to be loaded anew: which topics were deleted at which offset may have changed."""
        self._follower = None

    def cut_partial(self) -> None:
        """Remove a record of which only a part has come: its master is gone."""
        if self.dispatched < self.end:
            self._log.resume(self.dispatched)
            self._watermarks.cut(self.dispatched)

    def _scan(self, position: int, end: int, count_max: int) -> tuple[list[Scanned], int]:
        """The whole records from ``position`` to ``end``, of one file, and where the next begins.

        Raises:
            CorruptFile: the first is no record.
        """
        records: list[Scanned] = []
        log = self._log
        log_file = log.row.at(position)
        if log_file is None or position >= end:
            return records, position
        start, file_end = log_file.start, log_file.start + log.file_bytes
        view = log_file.file.view(0, min(end, file_end) - start)
        while len(records) < count_max:
            record = scan_record(view, position - start, start, check_crc=True)
            if record is None:
                return self._scan_end(log_file, position, end, records)
            records.append(record)
            position += record.size_bytes
        return records, position

    def _scan_end(
        self, log_file: LogFile, position: int, end: int, records: list[Scanned]
    ) -> tuple[list[Scanned], int]:
        """The same, where no sound record of which everything has come is next: the log or its file may end there."""
        log, at = self._log, position - log_file.start
        if position + BLANK_BYTES > end or at + BLANK_BYTES > log.file_bytes:
            return records, position
        size_bytes, magic = peek(log_file.file.view(at, BLANK_BYTES), 0)
        room = log.file_bytes - at
        is_blank = magic == MAGIC_BLANK
        if size_bytes > room or (is_blank and size_bytes != room):
            if not records:
                raise _misfit(log_file.path, position, size_bytes, room)
        elif is_blank:
            return records, position if position + room > end else position + room
        elif position + size_bytes <= end and not records:
            # Those before it are entered first.
            record = self._damaged(log_file, at)
            return [record], position + record.size_bytes
        return records, position

    def _damaged(self, log_file: LogFile, at: int) -> Scanned:
        """A record that is sound but for its body. Raises CorruptFile for anything else.

        The copy has to be one, damaged as it is, and the records behind it are good. It is not handed out.
        """
        view = log_file.file.view(0, self._log.file_bytes)
        record = scan_record(view, at, log_file.start, check_crc=False)
        if record is None:
            raise CorruptFile(
                log_file.path,
                f"no sound record at byte {at} (offset {log_file.start + at})",
                "The master's log is damaged there, or it is none. Look into the master's log.",
            )
        self._on_damage(record)
        return record

    def _end_of(self, position: int, end: int | None = None) -> int | None:
        """Where the record at ``position`` ends; None when that is behind ``end``, or not all of it has come."""
        log = self._log
        end = log.end if end is None else end
        log_file = log.row.at(position)
        if log_file is None or position + BLANK_BYTES > end:
            return None
        view = log_file.file.view(0, log.file_bytes)
        at = position - log_file.start
        size_bytes, magic = peek(view, at)
        if magic == MAGIC_BLANK:
            size_bytes = log.file_bytes - at
        if size_bytes <= 0 or size_bytes > log.file_bytes - at:
            # For the caller to find out what it is.
            return position + BLANK_BYTES
        return position + size_bytes if position + size_bytes <= end else None


def _misfit(path: str, position: int, size_bytes: int, room: int) -> CorruptFile:
    return CorruptFile(
        path,
        f"the record at offset {position} says to have {size_bytes} bytes, where {room} are left",
        "Give both brokers the same mappedFileSizeCommitLog and empty this store. If they have it, the master's log is "
        "damaged there: look into the master's log.",
    )
