"""The log follower: reads records forward and feeds consume queues and index.

A put feeds both directly, because it knows what it wrote. The follower creates the same entries from the records
alone: after a crash, and on a replica, whose log arrives as bytes. Existing entries are left alone.

Every message of a slave goes through here, a group of them at a time: first the keys of all are added to the index,
which may fail, then the entries of each queue.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from cometmq.model.flags import TRANSACTION_MASK, SysFlag
from cometmq.model.java_hash import java_hash
from cometmq.model.messages.properties import (
    KEYS,
    NAME_SEPARATOR,
    PAIR_SEPARATOR,
    TAGS,
    UNIQ_KEY,
    split_keys,
)
from cometmq.model.names import SCHEDULE_TOPIC
from cometmq.native.choice import twin
from cometmq.store.files.queue_entry import ENTRY, FILLER
from cometmq.store.files.record_scan import Scanned
from cometmq.store.index.index_files import IndexFiles, key_prefix
from cometmq.store.log.commit_log import CommitLog
from cometmq.store.log.log_scan import LogWalk
from cometmq.store.queues.consume_queue import ConsumeQueue
from cometmq.store.queues.consume_queues import ConsumeQueues, Written
from cometmq.store.queues.delay_levels import DelayLevels

logger = logging.getLogger("cometmq.store")

_twin = twin("follow")

QUEUE_GAP_MAX: Final = 1_000_000
"""Maximum number of missing entries to fill; a larger gap means a damaged offset, which no checksum protects."""


GROUP: Final = 256
"""Number of records that a recovery enters together."""

_ROLLED_BACK: Final = int(SysFlag.TRANSACTION_ROLLBACK)
_CACHED_TAG_LENGTH_MAX: Final = 128
_cached_hash = lru_cache(maxsize=8192)(java_hash)


def index_keys(properties: str) -> list[str]:
    """The index keys of a record: its unique key, then each part of KEYS."""
    unique_key, keys, _ = _names(properties)
    return [unique_key, *split_keys(keys)] if unique_key else split_keys(keys)


def _names(properties: str) -> tuple[str, str, str]:
    """Unique key, KEYS and tag; empty if there is none. Which pairs count is the same as in ``model.properties``."""
    unique_key = keys = tag = ""
    for pair in properties.split(PAIR_SEPARATOR):
        name, _, value = pair.partition(NAME_SEPARATOR)
        if name == UNIQ_KEY:
            if value and NAME_SEPARATOR not in value:
                unique_key = value
        elif name == TAGS:
            if value and NAME_SEPARATOR not in value:
                tag = value
        elif name == KEYS and value and NAME_SEPARATOR not in value:
            keys = value
    return unique_key, keys, tag


def has_queue_entry(sys_flag: int) -> bool:
    """Half and rolled-back messages are only in the log."""
    return sys_flag & TRANSACTION_MASK in (0, SysFlag.TRANSACTION_COMMIT)


def is_indexed(sys_flag: int) -> bool:
    return sys_flag & TRANSACTION_MASK != _ROLLED_BACK


class Entered(NamedTuple):
    """Records that got an entry in their queue, by columns."""

    topics: list[str]
    queue_ids: list[int]
    queue_offsets: list[int]
    tags_codes: list[int]
    texts: list[bytes]


class Reached(NamedTuple):
    """How far the usual records were entered."""

    end: int
    last_place: int
    last_time: int
    topics: list[str]
    """Of the queues that got entries, as the next."""
    queue_ids: list[int]


class _Group:
    """New entries of one queue."""

    __slots__ = ("entries", "next_offset", "queue")

    def __init__(self, queue: ConsumeQueue) -> None:
        self.queue = queue
        self.next_offset = queue.next_offset
        self.entries: list[bytes] = []

    def skip_to(self, record: Scanned) -> bool:
        """Whether the record's entry is next, after a gap before it was filled."""
        queue, gap = self.queue, record.queue_offset - self.next_offset
        if gap <= 0:
            return gap == 0
        if queue.first_start < 0 and queue.waiting is None and not self.entries:
            # The log starts in the middle of this queue, and so does the queue.
            self.next_offset = record.queue_offset
            return True
        logger.error(
            "queue entries missing topic=%s queue=%d from=%d to=%d physical_offset=%d",
            queue.topic,
            queue.queue_id,
            self.next_offset,
            record.queue_offset,
            record.physical_offset,
        )
        if gap > QUEUE_GAP_MAX:
            return False
        self.entries += [FILLER] * gap
        self.next_offset = record.queue_offset
        return True

    def append_to(self, queues: ConsumeQueues) -> None:
        if self.entries:
            self.queue.next_offset = self.next_offset - len(self.entries)
            queues.append_batch(self.queue, b"".join(self.entries))


class Follower:
    def __init__(
        self,
        log: CommitLog,
        queues: ConsumeQueues,
        index: IndexFiles | None,
        delay_levels: DelayLevels,
        deleted: dict[bytes, int],
    ) -> None:
        """
        Args:
            deleted: topics whose records below an offset do not count; see ``deleted_topics``.
        """
        self._log = log
        self._queues = queues
        self._index = index
        self._delay_levels = delay_levels
        self._deleted = deleted
        # Name and key prefix of each topic, by its bytes in the log.
        self._topics: dict[bytes, tuple[str, int]] = {}
        self._prefixes: dict[bytes, int] = {}

    def feed(self, start: int, end: int, *, passes_damage: bool = False) -> int:
        """Dispatch the records between two offsets; a record must begin at ``start``. Returns the offset reached.

        Args:
            passes_damage: go on behind what is no record.

        Raises:
            DiskFull: entries wait in memory; the next recovery adds what is missing.
        """
        queues = self._queues
        row = self._log.row
        walk = LogWalk(row, start, stop=end, check_crc=False, passes_damage=passes_damage)
        reached = queues.written
        records = iter(walk)
        while group := [*islice(records, GROUP)]:
            self.enter(group)
            last = group[-1]
            end = last.physical_offset + last.size_bytes
            reached = Written(end, last.store_timestamp, last.physical_offset, -1)
            if queues.is_write_due:
                self._write_out(reached)
        self._write_out(reached)
        return walk.position

    def _write_out(self, reached: Written) -> None:
        # The index first: what the queues record as written applies to both.
        if self._index is not None:
            self._index.write_out()
            reached = reached._replace(indexed_record=self._index.checkpoint_offset)
        self._queues.write_out(reached)

    def enter(self, records: Sequence[Scanned]) -> Entered:
        """Dispatch records, in the order of the log. Returns those that got an entry in a queue.

        Raises:
            DiskFull: nothing was entered; the call may be repeated.
        """
        topics, queue_ids, queue_offsets, tags_codes, texts = entered = Entered([], [], [], [], [])
        prefixes: list[int] = []
        keys: list[str] = []
        places: list[int] = []
        times: list[int] = []
        groups: dict[tuple[bytes, int], _Group] = {}
        known, deleted, has_index = self._topics, self._deleted, self._index is not None
        for record in records:
            topic_bytes, queue_id, place = record.topic, record.queue_id, record.physical_offset
            if deleted and place < deleted.get(topic_bytes, 0):
                continue
            topic, prefix = known.get(topic_bytes) or self._learn(topic_bytes)
            unique_key, more_keys, tag = _names(record.properties.decode(errors="replace"))
            transaction = record.sys_flag & TRANSACTION_MASK
            if has_index and transaction != _ROLLED_BACK:
                count = len(keys)
                if unique_key:
                    keys.append(unique_key)
                if more_keys:
                    keys += split_keys(more_keys)
                count = len(keys) - count
                prefixes += [prefix] * count
                places += [place] * count
                times += [record.store_timestamp] * count
            if transaction and not has_queue_entry(transaction):
                continue
            group = groups.get((topic_bytes, queue_id))
            if group is None:
                queue = self._queues.get_or_create(topic, queue_id)
                group = groups[topic_bytes, queue_id] = _Group(queue)
            if record.queue_offset != group.next_offset and not group.skip_to(record):
                continue
            code = self._code(topic, tag, record)
            group.entries.append(ENTRY.pack(place, record.size_bytes, code))
            group.next_offset += 1
            topics.append(topic)
            queue_ids.append(queue_id)
            queue_offsets.append(record.queue_offset)
            tags_codes.append(code)
            texts.append(record.properties)
        if self._index is not None and keys:
            self._index.add_rows(prefixes, keys, places, times)
        for group in groups.values():
            group.append_to(self._queues)
        return entered

    def enter_usual(self, view: memoryview, at: int, place: int, count_max: int) -> Reached | None:
        """``enter`` of the records from ``at`` on in a log file, as far as they are the usual ones.

        Which these are says ``native.follow``.

        Args:
            place: where that is in the whole log.

        Returns:
            How far this went; None if nothing was entered.

        Raises:
            DiskFull: nothing was entered; the call may be repeated.
        """
        index = self._index
        if _twin is None or self._deleted or (index is not None and index.end_offset >= place):
            return None
        found = _twin.follow(view, at, place, count_max, self._prefixes, self._prefix)
        queues = self._queues
        groups = [
            (queues.get_or_create(topic.decode(), queue_id), first, entries)
            for topic, queue_id, first, entries in found.groups()
        ]
        if not found.count or any(queue.next_offset != first for queue, first, _ in groups):
            return None
        if index is not None:
            keys = found.keys()
            index.reserve(sum(len(hashes) for hashes, _, _ in keys))
            for hashes, places, time in keys:
                index.add_hashed(hashes, places, time)
        for queue, _, entries in groups:
            queues.append_batch(queue, entries)
        return Reached(
            found.end,
            found.last_place,
            found.last_time,
            [queue.topic for queue, _, _ in groups],
            [queue.queue_id for queue, _, _ in groups],
        )

    def described(self, records: Sequence[Scanned]) -> Entered:
        """What ``enter`` returns of usual records, for those that are entered already."""
        entered = Entered([], [], [], [], [])
        for record in records:
            topic = record.topic.decode()
            *_, tag = _names(record.properties.decode())
            entered.topics.append(topic)
            entered.queue_ids.append(record.queue_id)
            entered.queue_offsets.append(record.queue_offset)
            entered.tags_codes.append(self._code(topic, tag, record))
            entered.texts.append(record.properties)
        return entered

    def _prefix(self, topic_bytes: bytes) -> int | None:
        """For ``native.follow``: remembers what the keys of a topic begin with."""
        try:
            topic = topic_bytes.decode()
        except UnicodeDecodeError:
            return None
        if topic == SCHEDULE_TOPIC:
            return None
        prefix = self._prefixes[topic_bytes] = key_prefix(topic)
        return prefix

    def _learn(self, topic_bytes: bytes) -> tuple[str, int]:
        topic = topic_bytes.decode(errors="replace")
        known = self._topics[topic_bytes] = topic, key_prefix(topic)
        return known

    def _code(self, topic: str, tag: str, record: Scanned) -> int:
        if topic == SCHEDULE_TOPIC:
            text = record.properties.decode(errors="replace")
            return self._delay_levels.tags_code(topic, text, record.store_timestamp)
        if len(tag) > _CACHED_TAG_LENGTH_MAX:
            return java_hash(tag)
        return _cached_hash(tag)
