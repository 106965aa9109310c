"""All consume queues of a store: the table, the entries waiting to be written, and their files.

Entries of a put wait in memory and are written in rounds: all queues that have some when the round starts, a few at a
time, so that nobody waits for ten thousand of them. When a round is finished, everything below the offset at which it
started is in the files, which is one number. Nothing here fails after a record is in the log: a full disk leaves the
entries waiting, and the store accepts no further message until they are written.

Thread rule: the owner of the store, except ``sync``, which the flusher calls.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from cometmq.base.descriptors import DescriptorShares
from cometmq.base.errors import CorruptFile
from cometmq.base.ports import Files
from cometmq.model.names import stored_topic_fault
from cometmq.store.files.file_names import check_size, queue_id_of, starts_of
from cometmq.store.files.queue_entry import ENTRY, ENTRY_BYTES
from cometmq.store.open_files import OpenFiles
from cometmq.store.queues.consume_queue import ConsumeQueue
from cometmq.store.store_config import ConsumeQueueConfig

logger = logging.getLogger("cometmq.store")

WAITING_MIN: Final = 1024
"""Entries kept in memory, for all queues together, before a round starts."""

WAITING_PER_QUEUE: Final = 32
"""A write costs the same for one entry as for many, so with many queues a round waits for this many each."""

WAITING_MAX: Final = 524_288
"""But it never waits for more than this in total, about 64 MB."""

ROUND_PART: Final = 32
"""Queues written at a time, about 0.2 ms."""

ASKED_AHEAD: Final = 256
"""Queues whose pages are prefetched before it is their turn: the disk reads many at once as fast as one."""

NEW_QUEUES_MAX: Final = 32
"""Maximum number of queues without a file among them: creating a file takes 200 us or more and blocks everything."""

SYNCED_SINGLY_MAX: Final = 32
"""Above this many files, one sync of the whole partition is faster than one per file (3 ms each on ext4)."""

SETTING: Final = "mappedFileSizeConsumeQueue"


class Written(NamedTuple):
    """How far queue and index entries are in their files."""

    offset: int
    """The entries of every record below this are written."""
    store_timestamp: int
    last_record: int
    """Time and start of the last of these records."""
    indexed_record: int
    """The last record in the index; -1 if there is none."""


class ConsumeQueues:
    def __init__(self, directory: str, config: ConsumeQueueConfig, files: Files) -> None:
        self.directory = directory
        self.file_bytes = config.real_file_bytes
        shares = DescriptorShares(files.open_max())
        self.open_files = OpenFiles(
            files, min(config.open_files_max, shares.queue_files_max), shares.queue_files_below
        )
        self.table: dict[str, dict[int, ConsumeQueue]] = {}
        self.waiting_count = 0
        self._new_count = 0
        # Deleted directories cannot be synced one by one.
        self._has_deleted = False
        self.written = Written(0, 0, 0, -1)
        self._files = files
        # Queues with entries to write: those of the current round, and those that got some since.
        self._round: list[ConsumeQueue] = []
        # How many at its end have their pages prefetched.
        self._asked = 0
        self._round_reached = self.written
        self._waiting: list[ConsumeQueue] = []
        # What the flusher has to sync. The two ends of a deque may be used from different threads.
        self._dirty: deque[str] = deque()
        self._changed_directories: deque[str] = deque()
        self._epoch = 0
        self._unsynced_bytes = 0

    def load(self, *, is_clean: bool) -> list[tuple[ConsumeQueue, int]]:
        """Build the table from the directories: every queue, and where its last file starts (-1: it has none).

        Args:
            is_clean: after an unclean stop, a file may have lost its length: it and the later ones were never synced,
                and recovery rebuilds them.

        Raises:
            CorruptFile: a foreign name, a gap or a wrong length; nothing was changed.
        """
        loaded: list[tuple[ConsumeQueue, int]] = []
        for topic in self._names(self.directory):
            topic_directory = f"{self.directory}/{topic}"
            if stored_topic_fault(topic):
                raise CorruptFile(topic_directory, "not the name of a topic", "Move it elsewhere.")
            for name in self._names(topic_directory):
                queue_id = queue_id_of(name)
                if queue_id is None:
                    path = f"{topic_directory}/{name}"
                    raise CorruptFile(path, "not the number of a queue", "Move it elsewhere.")
                loaded.append(self._load_queue(topic, queue_id, is_clean))
        return loaded

    def get(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        queues = self.table.get(topic)
        return queues.get(queue_id) if queues is not None else None

    def get_or_create(self, topic: str, queue_id: int) -> ConsumeQueue:
        queues = self.table.setdefault(topic, {})
        queue = queues.get(queue_id)
        if queue is None:
            directory = f"{self.directory}/{topic}/{queue_id}"
            queue = queues[queue_id] = ConsumeQueue(topic, queue_id, directory, self.file_bytes)
        return queue

    def all(self) -> Iterator[ConsumeQueue]:
        for queues in self.table.values():
            yield from queues.values()

    def append(
        self, queue: ConsumeQueue, physical_offset: int, size_bytes: int, tags_code: int
    ) -> None:
        """Add the next entry of a queue. It is readable at once, and in its file after ``write_out``."""
        if (waiting := queue.waiting) is None:
            queue.waiting = bytearray(ENTRY.pack(physical_offset, size_bytes, tags_code))
            self._waiting.append(queue)
            if queue.first_start < 0:
                self._new_count += 1
        else:
            waiting += ENTRY.pack(physical_offset, size_bytes, tags_code)
        queue.next_offset += 1
        self.waiting_count += 1

    def append_batch(self, queue: ConsumeQueue, entries: bytes) -> None:
        """Add several entries at once."""
        self.append_batches([(queue, bytearray(entries))])

    def append_batches(self, batches: list[tuple[ConsumeQueue, bytearray]]) -> None:
        """Add several entries to each of several queues, in one call: there may be one for each of many queues. The
        bytes are kept, not copied."""
        for queue, entries in batches:
            count = len(entries) // ENTRY_BYTES
            if queue.waiting is None:
                queue.waiting = entries
                self._waiting.append(queue)
                if queue.first_start < 0:
                    self._new_count += 1
            else:
                queue.waiting += entries
            queue.next_offset += count
            self.waiting_count += count

    def append_all(
        self,
        queues: list[ConsumeQueue],
        physical_offsets: list[int],
        sizes: list[int],
        tags_codes: list[int],
    ) -> None:
        """Add an entry to each of the queues, which may repeat."""
        count = len(queues)
        if count > 1 and queues.count(queues[0]) == count:
            entries = b"".join(map(ENTRY.pack, physical_offsets, sizes, tags_codes))
            self.append_batch(queues[0], entries)
            return
        for queue, place, size_bytes, tags_code in zip(
            queues, physical_offsets, sizes, tags_codes, strict=True
        ):
            self.append(queue, place, size_bytes, tags_code)

    @property
    def is_write_due(self) -> bool:
        """Whether enough is waiting for a round to start, or one is in progress."""
        waiting = self.waiting_count
        if waiting < WAITING_MIN and not self._round and self._new_count < NEW_QUEUES_MAX:
            return False
        return (
            bool(self._round)
            or self._new_count >= NEW_QUEUES_MAX
            or waiting >= WAITING_PER_QUEUE * len(self._waiting)
            or waiting >= WAITING_MAX
        )

    @property
    def is_round_under_way(self) -> bool:
        return bool(self._round)

    def begin_round(self, reached: Written) -> None:
        """
        Args:
            reached: how far the log has been dispatched; recorded as written when the round is finished.
        """
        assert not self._round, self
        self._round, self._waiting = self._waiting, self._round
        self._round_reached = reached

    def write_part(self, count: int | None = None) -> None:
        """Write the entries of this many queues of the round (by default a few) to their files.

        Raises:
            DiskFull: entries still wait, in order; call it again later.
        """
        queues = self._round
        count = min(ROUND_PART if count is None else count, len(queues))
        asked = min(count + ASKED_AHEAD, len(queues))
        for at in range(self._asked + 1, asked + 1):
            queue = queues[-at]
            # What was written since the last sync is in memory.
            if queue.dirty_epoch != self._epoch:
                queue.prefetch(self.open_files)
        self._asked = max(asked, self._asked)
        for _ in range(count):
            self._write(queues[-1])
            queues.pop()
            self._asked -= 1
        if not queues:
            self._asked = 0
            self.written = self._round_reached
            if not self._waiting:
                self._new_count = 0

    def write_out(self, reached: Written) -> None:
        """Write all waiting entries to their files. Raises DiskFull like ``write_part``."""
        self.write_part(len(self._round))
        self.begin_round(reached)
        self.write_part(len(self._round))

    def _write(self, queue: ConsumeQueue) -> None:
        assert queue.waiting is not None
        is_new = queue.first_start < 0
        entry_bytes = len(queue.waiting)
        for start in queue.write_waiting(self.open_files):
            if queue.dirty_epoch != self._epoch or queue.dirty_start != start:
                self._mark_dirty(queue, start, is_new)
        self._unsynced_bytes += entry_bytes
        self.waiting_count -= entry_bytes // ENTRY_BYTES
        if is_new:
            self._new_count -= 1

    @property
    def unsynced_bytes_per_file(self) -> int:
        """For the files written since the last sync: one that gains only a few entries is not worth its page."""
        return self._unsynced_bytes // max(len(self._dirty), 1)

    def sync(self) -> Written:
        """Make durable what was written. Called by the flusher; returns what the checkpoint may then guarantee.

        Raises:
            OSError: not everything is on disk, and it is unknown what is.
        """
        promise = self.written
        self._unsynced_bytes = 0
        paths = {self._dirty.popleft() for _ in range(len(self._dirty))}
        directories = {
            self._changed_directories.popleft() for _ in range(len(self._changed_directories))
        }
        # From here on, a write marks its file again, so that a write too late for this sync is covered by the next.
        self._epoch += 1
        has_deleted, self._has_deleted = self._has_deleted, False
        if has_deleted or len(paths) > SYNCED_SINGLY_MAX:
            self._files.sync_partition(self.directory)
        else:
            self._sync_singly(paths, directories)
        return promise

    def _sync_singly(self, paths: set[str], directories: set[str]) -> None:
        for path in sorted(paths):
            try:
                file = self._files.open(path, mapped=False)
            except FileNotFoundError:
                continue  # Its topic was deleted, or it expired.
            try:
                file.sync()
            finally:
                file.close()
        for directory in sorted(directories):
            try:
                self._files.sync_directory(directory)
            except FileNotFoundError:
                continue

    def settled(self) -> Collection[ConsumeQueue]:
        """Recovery has found the ends of all queues. Returns queues that cannot continue: deleted, to be rebuilt."""
        return ()

    def truncate(self, queue: ConsumeQueue, offset: int, last_start: int) -> None:
        """Make ``offset`` the next entry of a queue; later ones are wiped, so that they never look valid."""
        assert queue.waiting is None, queue
        queue.next_offset = offset
        queue.forget_min()
        if queue.first_start < 0:
            return
        position = offset * ENTRY_BYTES
        for start in range(last_start, queue.first_start - 1, -self.file_bytes):
            if start >= position:
                self.open_files.remove(queue.path(start))
                # Until the directory is synced, the file may reappear, with entries of records that no longer exist.
                self._changed_directories.append(queue.directory)
            elif start + self.file_bytes > position:
                self.open_files.get(queue.path(start)).zero_from(position - start)
                self._mark_dirty(queue, start, False)
        if position <= queue.first_start:
            queue.first_start = -1

    def rewrite(self, queue: ConsumeQueue, offset: int, entry: bytes) -> None:
        """Replace an entry that is in its file. Raises DiskFull."""
        assert offset < queue.written_offset, (queue, offset)
        position = offset * ENTRY_BYTES
        start = position - position % self.file_bytes
        self.open_files.get(queue.path(start)).write_at(position - start, entry)
        self._mark_dirty(queue, start, False)
        queue.forget_min()

    def trust_what_comes(self) -> None:
        """Loading is finished: later entries are known to be right, because this process writes them."""
        for queue in self.all():
            queue.trusted_from = queue.next_offset

    def delete_topic(self, topic: str) -> int:
        """Delete a topic and its files. Returns how many queues it had."""
        queues = self.table.pop(topic, {})
        for queue in queues.values():
            self._drop_files(queue)
        self._remove_tree(f"{self.directory}/{topic}")
        return len(queues)

    def delete_queue(self, queue: ConsumeQueue) -> None:
        queues = self.table[queue.topic]
        del queues[queue.queue_id]
        if not queues:
            del self.table[queue.topic]
        self._drop_files(queue)
        self._remove_tree(queue.directory)

    def expired_files(self, queue: ConsumeQueue, log_start: int) -> list[str]:
        """Drop files whose records are all gone from a queue, except the last. The caller removes them, in order."""
        expired: list[str] = []
        last_start = queue.last_start
        while 0 <= queue.first_start < last_start:
            last_entry = (queue.first_start + self.file_bytes) // ENTRY_BYTES - 1
            entry = queue.entry(last_entry, self.open_files)
            if entry is None or entry[0] >= log_start:
                break
            path = queue.path(queue.first_start)
            self.open_files.drop(path)
            expired.append(path)
            queue.first_start += self.file_bytes
        return expired

    def restore_lengths(self) -> bool:
        """Restore the length of files that somebody has truncated. Returns whether there were any."""
        was_truncated = False
        for queue in self.all():
            if queue.first_start < 0:
                continue
            for start in range(queue.first_start, queue.last_start + 1, self.file_bytes):
                was_truncated |= self._restore_length(queue.path(start))
        return was_truncated

    def _restore_length(self, path: str) -> bool:
        try:
            if self._files.size(path) >= self.file_bytes:
                return False
        except FileNotFoundError:
            self.open_files.drop(path)
            self.open_files.create(path, self.file_bytes)
        logger.error("queue file truncated or removed by others path=%s", path)
        self.open_files.get(path).lengthen(self.file_bytes)
        return True

    def close(self) -> None:
        self.open_files.close()
        self.table.clear()

    def _names(self, directory: str) -> list[str]:
        try:
            return list(self._files.names(directory))
        except NotADirectoryError:
            raise CorruptFile(
                directory, "a foreign file among the queues' directories", "Move it elsewhere."
            ) from None

    def _load_queue(self, topic: str, queue_id: int, is_clean: bool) -> tuple[ConsumeQueue, int]:
        queue = self.get_or_create(topic, queue_id)
        names = self._names(queue.directory)
        starts = starts_of(names, queue.directory, self.file_bytes, SETTING)
        sizes = [self._files.size(queue.path(start)) for start in starts]
        if not is_clean and 0 in sizes:
            kept = sizes.index(0)
            for start in reversed(starts[kept:]):
                self._files.remove(queue.path(start))
            self._changed_directories.append(queue.directory)
            del starts[kept:], sizes[kept:]
        for start, size_bytes in zip(starts, sizes, strict=True):
            check_size(queue.path(start), size_bytes, self.file_bytes, SETTING)
        queue.first_start = starts[0] if starts else -1
        return queue, starts[-1] if starts else -1

    def _mark_dirty(self, queue: ConsumeQueue, start: int, is_new: bool) -> None:
        if queue.dirty_epoch != self._epoch or queue.dirty_start != start:
            if is_new:
                topic_directory = queue.directory.rpartition("/")[0]
                self._changed_directories.extend((self.directory, topic_directory))
            if is_new or queue.dirty_start != start:
                self._changed_directories.append(queue.directory)
            queue.dirty_epoch = self._epoch
            queue.dirty_start = start
            self._dirty.append(queue.path(start))

    def _remove_tree(self, directory: str) -> None:
        if self._files.exists(directory):
            self._files.remove_tree(directory)
            self._has_deleted = True

    def _drop_files(self, queue: ConsumeQueue) -> None:
        if queue.waiting is not None:
            self.waiting_count -= len(queue.waiting) // ENTRY_BYTES
            queue.waiting = None
            (self._waiting if queue in self._waiting else self._round).remove(queue)
            if queue.first_start < 0:
                self._new_count -= 1
        for start in range(max(queue.first_start, 0), queue.last_start + 1, self.file_bytes):
            self.open_files.drop(queue.path(start))

    def __repr__(self) -> str:
        return (
            f"<ConsumeQueues {self.directory} topics={len(self.table)} waiting={self.waiting_count} "
            f"open={len(self.open_files)}>"
        )
