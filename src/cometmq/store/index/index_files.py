"""The sequence of index files: from a key to records, and from an append to the index.

``appender`` calls ``add`` for every record with keys. Keys wait until there is a group of them: hashing many together
costs a quarter of hashing each alone. Files are named by the local time of their creation; the newest takes entries
until it is full. The index is derived from the log: after a crash, ``load`` drops what the checkpoint does not
guarantee, and the store replays the log from ``end_offset``.

Thread rule: the owner of the store calls everything; only ``sync`` may run in a worker.
"""

from __future__ import annotations

import datetime
import logging
import threading
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Final

from cometmq.base.errors import CorruptFile
from cometmq.base.ports import Clock, Files
from cometmq.model.java_hash import power_of_31, unsigned_hash, unsigned_hashes, utf16_length
from cometmq.store.index.index_file import IndexFile, NewEntry, file_bytes
from cometmq.store.store_config import IndexConfig

logger = logging.getLogger("cometmq.store")

GROUP_KEYS: Final = 256
"""Keys that are hashed and written together: 0.3 ms in which nothing else is served. Their slots are scattered over the
file; writing them soon after reading them finds them in the processor's caches."""

EVERYTHING: Final = 1 << 62
_NAME_DIGITS: Final = 17
_POWERS_READY: Final = 257


def key_prefix(topic: str) -> int:
    """The common prefix of all keys of a topic: the hash of ``topic#``."""
    return unsigned_hash(topic + "#")


class IndexFiles:
    def __init__(self, directory: str, config: IndexConfig, files: Files, clock: Clock) -> None:
        self._directory = directory
        self._slot_count = config.slot_count
        self._entry_count = config.entry_count
        self._files = files
        self._clock = clock
        self._row: list[IndexFile] = []
        # Files created in advance for a record whose keys do not fit into the last file.
        self._spare: list[IndexFile] = []
        # Pending entries, by columns: key, and its record's prefix, physical offset and store timestamp.
        self._pending_keys: list[str] = []
        self._pending_prefixes: list[int] = []
        self._pending_offsets: list[int] = []
        self._pending_times: list[int] = []
        # Entries of hashed keys since waiting entries were written.
        self._hashed_count = 0
        # Entries that fit into the last file and the spare ones after the pending entries.
        self._room = 0
        self._resume_offset = -1
        self._resume_keys = 0
        self._powers: list[int] = [power_of_31(length) for length in range(_POWERS_READY)]
        self._unsynced: list[IndexFile] = []
        self._unsynced_lock = threading.Lock()
        # Whether a file was lost: then nothing more is added.
        self._is_lost = False
        self.safe_until_ms = 0
        """Store time up to which full files are durable: the value for the checkpoint."""

    def load(
        self,
        safe_until_ms: int | None,
        *,
        safe_record: int | None = None,
        was_killed: bool = False,
    ) -> None:
        """Open the existing files.

        Args:
            safe_until_ms: after a stop that may have lost writes, the checkpoint's index time: files that end later
                are dropped, and all files after them. None if nothing was lost. safe_record: the last record known to
                be durably indexed, if the checkpoint says so: files that end after it are dropped, too. Many records
                may share a millisecond.
            was_killed: the process ended in the middle of something, but everything it wrote is there.

        Raises:
            CorruptFile: a file that is not an index file of this configuration; nothing was changed.
        """
        names = self._files.names(self._directory)
        for name in names:
            if len(name) != _NAME_DIGITS or not name.isdecimal():
                path = f"{self._directory}/{name}"
                raise CorruptFile(path, "not a name of an index file", "Move it elsewhere.")
        for position, name in enumerate(names):
            index_file = self._open(
                f"{self._directory}/{name}", safe_until_ms, safe_record, was_killed
            )
            if index_file is None:
                self._remove_named(names[position:], reason="unclean-stop")
                break
            self._row.append(index_file)
        # A file created in advance, while the one before it lost its last entries.
        while len(self._row) > 1 and self._row[-1].is_empty and self._row[-2].room > 0:
            self._drop_from(len(self._row) - 1, reason="not-needed-yet")
        self._resume()

    def truncate(self, log_end: int) -> None:
        """Drop files that reach beyond the end of the log, which lost its tail in a crash.

        Their newest entries would point to records yet to be written, which would then be considered indexed.
        """
        keep = 0
        while keep < len(self._row) and self._row[keep].end_offset < max(log_end, 1):
            keep += 1
        if keep < len(self._row):
            self._drop_from(keep, reason="past-log-end")
        self._resume()

    @property
    def end_offset(self) -> int:
        """Physical offset of the last indexed record; -1 if there is none. Records before it are never added."""
        newest = self._newest()
        return newest.end_offset if newest else -1

    @property
    def checkpoint_offset(self) -> int:
        """The last indexed record for the checkpoint: an index that ends before it is completed at a start."""
        return EVERYTHING if self._is_lost else self.end_offset

    @property
    def ends_full(self) -> bool:
        """Whether the last file has no room left: a crash may have lost the next one, with keys of the last record."""
        self._enter_pending()
        return bool(self._row) and self._row[-1].room <= 0

    @property
    def last_update_ms(self) -> int:
        newest = self._newest()
        return newest.end_ms if newest else 0

    @property
    def last_update_offset(self) -> int:
        return max(self.end_offset, 0)

    @property
    def file_count(self) -> int:
        self._enter_pending()
        return len(self._row)

    def reserve(self, key_count: int) -> None:
        """Make sure that ``add`` with this many keys cannot fail. Cheap unless a file has to be created or written.

        Raises:
            DiskFull: this cannot be guaranteed; nothing was added.
        """
        if len(self._pending_keys) + self._hashed_count >= GROUP_KEYS:
            self.write_out()
        while self._room < key_count and not self._is_lost:
            self.write_out()
            spare = self._create()
            self._spare.append(spare)
            self._room += spare.room

    def add(self, prefix: int, keys: list[str], physical_offset: int, store_timestamp: int) -> None:
        """Add a record under its keys. What is already there (from a replayed log) is skipped.

        Args:
            prefix: ``key_prefix`` of the topic.

        Raises:
            DiskFull: nothing of the record was added; the call may be repeated.
        """
        count = len(keys)
        if count:
            self.add_rows(
                [prefix] * count, keys, [physical_offset] * count, [store_timestamp] * count
            )

    def add_batch(
        self,
        prefixes: list[int],
        keys: list[str],
        physical_offsets: list[int],
        store_timestamps: Iterable[int],
    ) -> None:
        """``add`` by columns, one row per key, for records after all those added before; room was reserved."""
        if self._is_lost:
            return
        assert not physical_offsets or physical_offsets[0] >= self._resume_offset, self
        self._pending_keys += keys
        self._pending_prefixes += prefixes
        self._pending_offsets += physical_offsets
        self._pending_times += store_timestamps
        self._room -= len(keys)

    def add_hashed(
        self, hashes: array[int], physical_offsets: array[int], store_timestamp: int
    ) -> None:
        """``add_batch`` of keys that are hashed already, see ``_hashes``, with one time for all; entered at once."""
        if self._is_lost or not hashes:
            return
        assert physical_offsets[0] >= self._resume_offset, self
        self._enter_pending()
        self._room -= len(hashes)
        self._hashed_count += len(hashes)
        while not self._is_lost and hashes:
            room = self._row[-1].room if self._row else 0
            if room:
                self._add_hashed_to_last(hashes[:room], physical_offsets[:room], store_timestamp)
                hashes, physical_offsets = hashes[room:], physical_offsets[room:]
            if hashes and not self._is_lost:
                self._row.append(self._spare.pop(0))

    def _add_hashed_to_last(
        self, hashes: array[int], physical_offsets: array[int], store_timestamp: int
    ) -> None:
        try:
            self._row[-1].add_hashed(hashes, physical_offsets, store_timestamp)
        except (CorruptFile, OSError) as error:
            self._lose_from(self._row[-1], error)

    def add_rows(
        self,
        prefixes: list[int],
        keys: list[str],
        physical_offsets: list[int],
        store_timestamps: list[int],
    ) -> None:
        """``add`` of records in the order of the log by columns, one row per key.

        Raises:
            DiskFull: nothing was added; the call may be repeated.
        """
        if physical_offsets[0] <= self._resume_offset:
            # From a replayed log: some of it is there already.
            first = bisect_left(physical_offsets, self._resume_offset)
            known = min(
                first + self._resume_keys, bisect_right(physical_offsets, self._resume_offset)
            )
            prefixes, keys = prefixes[known:], keys[known:]
            physical_offsets = physical_offsets[known:]
            store_timestamps = store_timestamps[known:]
        if not keys or self._is_lost:
            return
        self.reserve(len(keys))
        self.add_batch(prefixes, keys, physical_offsets, store_timestamps)

    def query(self, topic: str, key: str, max_count: int, begin_ms: int, end_ms: int) -> list[int]:
        """Physical offsets of records that may have the key, newest first.

        Only "may", because an entry holds a hash and a second: the caller compares the record.
        """
        self._enter_pending()
        (key_hash,) = self._hashes([key_prefix(topic)], [key])
        found: list[int] = []
        for index_file in reversed(self._row):
            if len(found) >= max_count:
                break
            if index_file.has_time(begin_ms, end_ms):
                try:
                    found += index_file.find(key_hash, max_count - len(found), begin_ms, end_ms)
                except CorruptFile as error:
                    self._lose_from(index_file, error)
        # Keys of one record may repeat, and may be split over two files.
        return list(dict.fromkeys(found))

    def write_out(self, *, everything: bool = False) -> None:
        """Write waiting entries to their files, and full files completely. Raises DiskFull, and then keeps the rest.

        Args:
            everything: also write slots and headers of files that are still growing. Without it, what is missing after
                a kill is rebuilt from the log.
        """
        self._enter_pending()
        self._hashed_count = 0
        if everything:
            self._lose_truncated()
        for index_file in list(self._row):
            if index_file.is_written:
                continue
            try:
                if everything or index_file.room <= 0:
                    index_file.write_all()
                else:
                    index_file.write_part()
            except CorruptFile as error:
                self._lose_from(index_file, error)
                return
            with self._unsynced_lock:
                if index_file not in self._unsynced:
                    self._unsynced.append(index_file)

    def sync(self) -> None:
        """Make durable what was written. Any thread."""
        with self._unsynced_lock:
            batch, self._unsynced = self._unsynced, []
        # Determined before the sync: a file may fill up and be written during the sync.
        full = [one.end_ms for one in batch if one.room <= 0 and one.is_written]
        try:
            for index_file in batch:
                index_file.sync()
            if batch:
                # The name of a new file must survive as well.
                self._files.sync_directory(self._directory)
        except BaseException:
            with self._unsynced_lock:
                self._unsynced = [*batch, *self._unsynced]
            raise
        self.safe_until_ms = max([self.safe_until_ms, *full])

    def flush(self) -> None:
        self.write_out(everything=True)
        self.sync()

    def delete_before(self, min_physical: int) -> int:
        """Remove files whose records are all below ``min_physical``, except the last. Returns their number."""
        removed = 0
        while len(self._row) > 1 and self._row[0].end_offset < min_physical:
            index_file = self._row.pop(0)
            with self._unsynced_lock:
                if index_file in self._unsynced:
                    self._unsynced.remove(index_file)
            index_file.close()
            self._files.remove(index_file.path)
            removed += 1
        return removed

    def close(self) -> None:
        """Write and sync everything and close the files; they are closed even if that fails."""
        try:
            self.flush()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the files without writing what is waiting."""
        for index_file in (*self._row, *self._spare):
            index_file.close()
        self._row = []
        self._spare = []
        self._forget_pending()
        self._room = 0

    def _lose_truncated(self) -> None:
        """Remove files that somebody has truncated: a start would refuse them."""
        for index_file in self._row:
            try:
                index_file.check_whole()
            except CorruptFile as error:
                self._lose_from(index_file, error)
                return

    def _lose_from(self, index_file: IndexFile, error: CorruptFile | OSError) -> None:
        """Remove a truncated or unreadable file and all later ones; the index accepts no more entries.

        Rebuilding it takes a scan of the log, which the next start does.
        """
        logger.error("index lost from=%s error=%s", index_file.path, error)
        self._is_lost = True
        self._forget_pending()
        with self._unsynced_lock:
            self._unsynced = []
        for spare in self._spare:
            spare.close()
            self._files.remove(spare.path)
        self._spare = []
        self._drop_from(self._row.index(index_file), reason="lost")
        self._room = 0

    def _newest(self) -> IndexFile | None:
        self._enter_pending()
        for index_file in reversed(self._row):
            if not index_file.is_empty:
                return index_file
        return None

    def _resume(self) -> None:
        """Remember where the index ends: the last record, and how many of its keys are in (the last may be missing)."""
        self._room = (self._row[-1].room if self._row else 0) + sum(one.room for one in self._spare)
        self._resume_offset = self.end_offset
        self._resume_keys = 0
        for index_file in reversed(self._row):
            keys = index_file.keys_of_record(self._resume_offset)
            self._resume_keys += keys
            if keys < index_file.count - 1:
                break
        full = [one.end_ms for one in self._row if one.room <= 0]
        self.safe_until_ms = max(full, default=0)

    def _enter_pending(self) -> None:
        """Turn pending keys into entries. In memory only, so it cannot fail: ``reserve`` has created the files."""
        if not self._pending_keys or self._is_lost:
            return
        hashes = self._hashes(self._pending_prefixes, self._pending_keys)
        entries: list[NewEntry] = list(
            zip(hashes, self._pending_offsets, self._pending_times, strict=True)
        )
        self._forget_pending()
        while not self._row or self._row[-1].room < len(entries):
            # Java also splits the keys of a record over two files.
            if self._row:
                room = self._row[-1].room
                self._add_to_last(entries[:room])
                del entries[:room]
            if self._is_lost:
                return
            self._row.append(self._spare.pop(0))
        self._add_to_last(entries)

    def _add_to_last(self, entries: list[NewEntry]) -> None:
        try:
            self._row[-1].add(entries)
        except (CorruptFile, OSError) as error:
            self._lose_from(self._row[-1], error)

    def _forget_pending(self) -> None:
        self._pending_keys = []
        self._pending_prefixes = []
        self._pending_offsets = []
        self._pending_times = []

    def _hashes(self, prefixes: list[int], keys: list[str]) -> list[int]:
        """The hashes of ``topic#key``: Java's ``Math.abs(hashCode)``, 0 for the value without an absolute value."""
        # The hash of the whole is computed from the hashes of its parts.
        parts = zip(prefixes, keys, unsigned_hashes(keys), strict=True)
        if len(max(keys, key=len)) < _POWERS_READY and "".join(keys).isascii():
            powers = self._powers
            whole = [(prefix * powers[len(key)] + bits) & 0xFFFFFFFF for prefix, key, bits in parts]
        else:
            whole = [
                (prefix * power_of_31(utf16_length(key)) + bits) & 0xFFFFFFFF
                for prefix, key, bits in parts
            ]
        return [bits if bits < 0x80000000 else -bits & 0x7FFFFFFF for bits in whole]

    def _create(self) -> IndexFile:
        self._files.make_directory(self._directory)
        moment = datetime.datetime.fromtimestamp(self._clock.wall_ms() / 1000, tz=datetime.UTC)
        name = moment.astimezone().strftime("%Y%m%d%H%M%S") + f"{moment.microsecond // 1000:03d}"
        # Files are ordered by name, and local time may stand still or go back.
        if existing := [*self._row, *self._spare]:
            last = existing[-1].path.rpartition("/")[2]
            name = max(name, f"{int(last) + 1:0{_NAME_DIGITS}d}")
        path = f"{self._directory}/{name}"
        return IndexFile.create(self._files, path, self._slot_count, self._entry_count)

    def _drop_from(self, position: int, *, reason: str) -> None:
        dropped = self._row[position:]
        del self._row[position:]
        for index_file in dropped:
            index_file.close()
        names = [one.path.rpartition("/")[2] for one in dropped]
        self._remove_named(names, reason=reason)

    def _remove_named(self, names: Sequence[str], *, reason: str) -> None:
        # The newest first, so that a crash in between leaves no gap.
        for name in reversed(names):
            self._files.remove(f"{self._directory}/{name}")
        # Their names may be reused, and must not refer to the old files after a power loss.
        self._files.sync_directory(self._directory)
        logger.info("index files dropped count=%d first=%s reason=%s", len(names), names[0], reason)

    def _open(
        self, path: str, safe_until_ms: int | None, safe_record: int | None, was_killed: bool
    ) -> IndexFile | None:
        """The file, or None if it cannot be trusted after an unclean stop."""
        index_file: IndexFile | None = None
        try:
            index_file = IndexFile.open(self._files, path, self._slot_count, self._entry_count)
            if was_killed:
                index_file.repair()
        except CorruptFile:
            if index_file is not None:
                index_file.close()
            # A crash may leave a file without its length or with half a header. A complete file with a wrong length
            # is something else: another configuration, or a foreign file.
            size_bytes = self._files.size(path)
            is_whole = size_bytes == file_bytes(self._slot_count, self._entry_count)
            is_unclean = was_killed or safe_until_ms is not None
            if size_bytes == 0 or (is_unclean and is_whole):
                return None
            raise
        if safe_until_ms is None:
            return index_file
        # The checkpoint covers full files. One with room left may have started in the same millisecond in which the
        # last full one ended, and has been written to since.
        if (
            index_file.room > 0
            or index_file.end_ms > safe_until_ms
            or (safe_record is not None and index_file.end_offset > safe_record)
        ):
            index_file.close()
            return None
        return index_file
