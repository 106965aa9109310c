"""Walks over a range of a log, from record to record, and checks each: what a backup relies on.

``files.record_scan`` says what a sound record is. Damage is passed over, as the store does it, and noted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from cometmq.model.messages.record_layout import BLANK_BYTES, FIXED_BYTES_V4, MAGIC_BLANK, START
from cometmq.store.files.log_files import LogFiles
from cometmq.store.files.record_scan import RECORD_BYTES_MAX, Scanned, scan_record

WINDOW_BYTES: Final = 4 << 20
SEARCHED_BYTES: Final = 32 << 20
"""How far behind damage the next sound record is searched for: far more than the largest message."""


class Bad(NamedTuple):
    """No sound record starts from ``start`` up to ``end``."""

    start: int
    end: int


class LogCheck:
    """Iterate over it once; the attributes are complete after that.

    Attributes:
        bad: what was passed over, with something sound behind it.
        unfollowed: what was passed over at the end.
        sound_end: behind the last sound record.
        last: the last sound record.
    """

    def __init__(self, log: LogFiles, start: int, end: int) -> None:
        self.bad: list[Bad] = []
        self.unfollowed: list[Bad] = []
        self.sound_end = start
        self.last: Scanned | None = None
        self._log = log
        self._start = start
        self._end = end

    def __iter__(self) -> Iterator[Scanned]:
        """Raises LogFileGone: a file expired meanwhile."""
        at = self._start
        while at < self._end:
            file_end = min(self._log.file_end(at), self._end)
            while at < file_end:
                before = at
                for record in self._window(at):
                    at = record.physical_offset + record.size_bytes
                    yield record
                if at == before:
                    at = self._pass(at, file_end)

    def _window(self, start: int) -> Iterator[Scanned]:
        """The sound records at the beginning of a window."""
        data = memoryview(self._log.read(start, WINDOW_BYTES))
        at = 0
        while start + at < self._end:
            record = scan_record(data, at, start, check_crc=True)
            if record is None or start + at + record.size_bytes > self._end:
                return
            at += record.size_bytes
            self._found(record, start + at)
            yield record

    def _pass(self, at: int, file_end: int) -> int:
        """What is there instead of a record that the window holds? Where to go on."""
        head = self._log.read(at, START.size)
        size_bytes: int
        size_bytes, magic = START.unpack(head) if len(head) == START.size else (0, 0)
        if magic == MAGIC_BLANK and size_bytes >= BLANK_BYTES:
            rest = self._log.file_end(at) - at
            if size_bytes == rest:
                self._note_sound(at + rest)
                return at + rest
        if WINDOW_BYTES < size_bytes <= RECORD_BYTES_MAX and at + size_bytes <= self._end:
            record = self._log.record(at, size_bytes)
            if record is not None:
                self._found(record, at + size_bytes)
                return at + size_bytes
        stop = min(file_end, at + SEARCHED_BYTES)
        following = self._log.find_record(at + 1, stop) if stop - at > FIXED_BYTES_V4 else None
        end = file_end if following is None else following
        self.unfollowed.append(Bad(at, end))
        return end

    def _found(self, record: Scanned, end: int) -> None:
        self.last = record
        self._note_sound(end)

    def _note_sound(self, end: int) -> None:
        self.bad += self.unfollowed
        self.unfollowed.clear()
        self.sound_end = end
