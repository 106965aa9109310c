"""Walking a store's own log from record to record: every one is checked before it is believed.

Used by recovery, by the follower that feeds queues and index, and by the search after a damaged place.
"""

from __future__ import annotations

from collections.abc import Iterator

from cometmq.model.messages.record import BadRecord, decode_record, peek
from cometmq.model.messages.record_layout import BLANK_BYTES, MAGIC_BLANK
from cometmq.store.files.record_scan import Scanned, is_torn, scan_record, search
from cometmq.store.log.mapped_file_queue import MappedFileQueue


class LogWalk:
    """Iterates over valid records from an offset on, and then tells where and why it stopped.

    ``position`` is the offset after the last valid record. ``fault`` says what was there instead of another one, and
    is empty if nothing was (zeros, or the end of the files).
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
        passes_damage: bool = False,
    ) -> None:
        """
        Args:
            stop: go no further than this offset.
            unsynced_from: from here on, parts of writes may have been lost; see ``is_torn``.
            writes_survive: only the process died, so only its very last write can be incomplete.
            passes_damage: go on behind what is no record, with the next one before ``stop``.
        """
        self.position = start
        self.fault = ""
        self._row = row
        self._stop = stop
        self._check_crc = check_crc
        self._unsynced_from = unsynced_from
        self._writes_survive = writes_survive
        self._passes_damage = passes_damage

    def __iter__(self) -> Iterator[Scanned]:
        yield from self._walk()
        while self._passes_damage and self._stop is not None and self.position < self._stop:
            sound = find_record(self._row, self.position + 1, self._stop)
            self.position = self._stop if sound is None else sound.physical_offset
            yield from self._walk()

    def _walk(self) -> Iterator[Scanned]:
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
        """Whether any record follows: usually directly, but this may be the last of its file."""
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
    """The first valid record that starts within ``start`` … ``stop``, wherever it is."""
    position = start
    while position < stop and (log_file := row.at(position)) is not None:
        view = log_file.file.view(0, row.file_bytes)
        found = _find_in(view, log_file.start, position, stop)
        if found is not None:
            return found
        position = log_file.start + len(view)
    return None


def _find_in(view: memoryview, file_start: int, start: int, stop: int) -> Scanned | None:
    def read(at: int, size_bytes: int) -> bytes:
        return bytes(view[at : at + size_bytes])

    def record_at(at: int) -> Scanned | None:
        return scan_record(view, at, file_start, check_crc=True)

    return search(read, record_at, start - file_start, min(stop - file_start, len(view)))
