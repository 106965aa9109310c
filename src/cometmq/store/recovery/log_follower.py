"""The log follower: reads records forward and feeds consume queues and index.

A put feeds both directly, because it knows what it wrote. The follower creates the same entries from the records
alone: after a crash, and on a replica, whose log arrives as bytes. Existing entries are left alone.
"""

from __future__ import annotations

import logging
from typing import Final

from cometmq.model.flags import TRANSACTION_MASK, SysFlag
from cometmq.model.messages.properties import KEYS, UNIQ_KEY, property_of, split_keys
from cometmq.store.files.queue_entry import FILLER_SIZE
from cometmq.store.files.record_scan import Scanned
from cometmq.store.index.index_files import IndexFiles, key_prefix
from cometmq.store.log.commit_log import CommitLog
from cometmq.store.log.log_scan import LogWalk
from cometmq.store.queues.consume_queue import ConsumeQueue
from cometmq.store.queues.consume_queues import ConsumeQueues, Written
from cometmq.store.queues.delay_levels import DelayLevels

logger = logging.getLogger("cometmq.store")

QUEUE_GAP_MAX: Final = 1_000_000
"""Maximum number of missing entries to fill; a larger gap means a damaged offset, which no checksum protects."""


def index_keys(properties: str) -> list[str]:
    """The index keys of a record: its unique key, then each part of KEYS."""
    unique_key = property_of(properties, UNIQ_KEY)
    keys = split_keys(property_of(properties, KEYS))
    return [unique_key, *keys] if unique_key else keys


def has_queue_entry(sys_flag: int) -> bool:
    """Half and rolled-back messages are only in the log."""
    return sys_flag & TRANSACTION_MASK in (0, SysFlag.TRANSACTION_COMMIT)


def is_indexed(sys_flag: int) -> bool:
    return sys_flag & TRANSACTION_MASK != SysFlag.TRANSACTION_ROLLBACK


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
        for record in walk:
            self.enter(record)
            reached = Written(
                record.physical_offset + record.size_bytes,
                record.store_timestamp,
                record.physical_offset,
                -1,
            )
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

    def enter(self, record: Scanned) -> tuple[ConsumeQueue, int] | None:
        """Dispatch one record. The queue that got an entry and its tags code; None when none did."""
        entered = None
        if self._deleted and record.physical_offset < self._deleted.get(record.topic, 0):
            return entered
        known = self._topics.get(record.topic)
        if known is None:
            name = record.topic.decode(errors="replace")
            known = self._topics[record.topic] = name, key_prefix(name)
        topic, prefix = known
        properties = record.properties.decode(errors="replace")
        if has_queue_entry(record.sys_flag):
            queue = self._queues.get_or_create(topic, record.queue_id)
            if self._is_next(queue, record):
                tags_code = self._delay_levels.tags_code(topic, properties, record.store_timestamp)
                self._queues.append(queue, record.physical_offset, record.size_bytes, tags_code)
                entered = queue, tags_code
        if self._index is not None and is_indexed(record.sys_flag):
            keys = index_keys(properties)
            self._index.add(prefix, keys, record.physical_offset, record.store_timestamp)
        return entered

    def _is_next(self, queue: ConsumeQueue, record: Scanned) -> bool:
        """Whether to append the record's entry now, after filling a gap before it."""
        gap = record.queue_offset - queue.next_offset
        if gap <= 0:
            return gap == 0
        if queue.first_start < 0 and queue.waiting is None:
            # The log starts in the middle of this queue, and so does the queue.
            queue.next_offset = record.queue_offset
            return True
        logger.error(
            "queue entries missing topic=%s queue=%d from=%d to=%d physical_offset=%d",
            queue.topic,
            queue.queue_id,
            queue.next_offset,
            record.queue_offset,
            record.physical_offset,
        )
        if gap > QUEUE_GAP_MAX:
            return False
        for _ in range(gap):
            self._queues.append(queue, 0, FILLER_SIZE, 0)
        return True
