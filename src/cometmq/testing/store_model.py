"""What a message store must hold and return, as a plain list of messages: the oracle of store tests.

Nothing here knows files, queues or an index. ``StoreModel`` keeps every message with the exact bytes of its record,
and compares what a store returns with what follows from the list. Some things are left open: after a power loss,
messages that retention had deleted may reappear with a log file, without their queue entries and keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from cometmq.model.flags import SysFlag
from cometmq.model.messages.record import encode_record
from cometmq.store.log.new_messages import NewMessage, Stored
from cometmq.store.message_store import MessageStore
from cometmq.store.queues.extended_queue import Unit
from cometmq.store.read.read_results import GetStatus

Queue = tuple[str, int]
ALWAYS: Final = (0, 1 << 62)
PREPARED: Final = int(SysFlag.TRANSACTION_PREPARED)
ROLLBACK: Final = int(SysFlag.TRANSACTION_ROLLBACK)


@dataclass(frozen=True, slots=True, repr=False)
class Kept:
    message: NewMessage
    stored: Stored
    raw: bytes

    @property
    def queue(self) -> Queue:
        return self.message.topic, self.message.queue_id

    @property
    def end(self) -> int:
        return self.stored.physical_offset + len(self.raw)

    @property
    def has_entry(self) -> bool:
        return self.message.sys_flag not in (PREPARED, ROLLBACK)

    @property
    def is_indexed(self) -> bool:
        return self.message.sys_flag != ROLLBACK

    def __repr__(self) -> str:
        return f"<Kept {self.message.topic}/{self.message.queue_id} {self.stored}>"


def raw_record(message: NewMessage, stored: Stored, store_host: bytes) -> bytes:
    """The expected record, built from the shared layout and not with the store's own encoder."""
    return encode_record(
        topic=message.topic.encode(),
        queue_id=message.queue_id,
        queue_offset=stored.queue_offset,
        physical_offset=stored.physical_offset,
        flag=message.flag,
        sys_flag=message.sys_flag | (16 if len(message.born_host) == 20 else 0),
        born_timestamp=message.born_timestamp,
        born_host=message.born_host,
        store_timestamp=stored.store_timestamp,
        store_host=store_host,
        reconsume_times=message.reconsume_times,
        prepared_transaction_offset=message.prepared_transaction_offset,
        body=message.body,
        properties=message.properties,
    )


class StoreModel:
    def __init__(self, queues: Sequence[Queue], keys: Sequence[str], store_host: bytes) -> None:
        """
        Args:
            queues: all queues that messages are put into.
            keys: the keys that ``check_everything`` queries.
        """
        self.kept: list[Kept] = []
        self.queues = queues
        self.keys = keys
        self.deleted_below = 0
        """Retention has deleted log files up to this offset."""
        self.topic_ends = {topic: 0 for topic, _ in queues}
        """Messages of a topic below this offset were deleted with it; only the log still has them."""
        self._store_host = store_host
        self.unit_of: Callable[[Kept], Unit] | None = None
        """The expected entry of a message in the extended consume queue, if there is one."""

    def record_bytes(self, message: NewMessage) -> int:
        return len(raw_record(message, Stored(0, 0, 0, 0), self._store_host))

    def keep(self, message: NewMessage, stored: Stored) -> Kept:
        """Record the result of a put, which must follow from the list so far."""
        row = Kept(message, stored, raw_record(message, stored, self._store_host))
        if row.has_entry:
            assert stored.queue_offset == len(self.rows(row.queue)), (row, self.rows(row.queue))
        if self.kept:
            assert stored.store_timestamp >= self.kept[-1].stored.store_timestamp, row
            assert stored.physical_offset >= self.kept[-1].end, row
        assert stored.size_bytes == len(row.raw), row
        self.kept.append(row)
        return row

    def rows(self, queue: Queue) -> list[Kept]:
        """The messages of a queue, by queue offset."""
        topic_end = self.topic_ends[queue[0]]
        return [
            row
            for row in self.kept
            if row.queue == queue and row.has_entry and row.stored.physical_offset >= topic_end
        ]

    def forget_lost(self, store: MessageStore, promised_below: int) -> None:
        """Remove what a recovered store has lost: only from the end, and nothing below the guaranteed offset."""
        there = [self._is_there(store, row) for row in self.kept]
        lost_from = len(self.kept)
        for at, row in enumerate(self.kept):
            if not there[at] and row.stored.physical_offset >= self.deleted_below:
                lost_from = at
                break
        for at, row in enumerate(self.kept[lost_from:], lost_from):
            assert row.end > promised_below, f"lost {row}, promised below {promised_below}"
            assert not there[at], f"{row} survived, but an earlier one did not"
        del self.kept[lost_from:]
        end = store.max_physical
        self.topic_ends = {topic: min(known, end) for topic, known in self.topic_ends.items()}

    def check_everything(self, store: MessageStore) -> None:
        """Check every record by its id, every queue from end to end, and every key."""
        start = store.min_physical
        assert start <= self.deleted_below, (start, self.deleted_below)
        for row in self.kept:
            self.check_find_by_id(store, row)
        for queue in self.queues:
            self.check_queue(store, queue)
        for topic in self.topic_ends:
            for key in self.keys:
                self.check_query(store, topic, key, *ALWAYS)

    def check_lengths(self, store: MessageStore) -> None:
        for queue in self.queues:
            assert store.max_offset(*queue) == len(self.rows(queue)), queue

    def check_queue(self, store: MessageStore, queue: Queue) -> None:
        rows = self.rows(queue)
        first = store.min_offset(*queue)
        assert all(row.stored.physical_offset < self.deleted_below for row in rows[:first]), queue
        assert store.max_offset(*queue) == len(rows), queue
        offset = first
        while offset < len(rows):
            found = store.get(*queue, offset, 32)
            assert found.status is GetStatus.FOUND, (found, queue, offset)
            expected = rows[offset : found.next_offset]
            assert b"".join(found.parts) == b"".join(row.raw for row in expected), (queue, offset)
            offset = found.next_offset
        entries = store.entries(*queue, first, len(rows) - first)
        assert entries == [
            (row.stored.physical_offset, len(row.raw), row.message.tags_code)
            for row in rows[first:]
        ], queue
        if self.unit_of is not None:
            units = store.units(*queue, first, len(rows) - first)
            assert units == [self.unit_of(row) for row in rows[first:]], queue

    def check_get(
        self, store: MessageStore, queue: Queue, offset: int, tags_code: int | None
    ) -> None:
        rows = self.rows(queue)
        wanted = (lambda code: code == tags_code) if tags_code is not None else None
        found = store.get(*queue, offset, 32, tags=wanted)
        first = store.min_offset(*queue)
        if not rows:
            unknown = (GetStatus.NO_MATCHED_LOGIC_QUEUE, GetStatus.NO_MESSAGE_IN_QUEUE)
            assert found.status in unknown, found
        elif offset < first:
            assert found.status is GetStatus.OFFSET_TOO_SMALL, found
            assert found.next_offset == first, found
        elif offset >= len(rows):
            beyond = (GetStatus.OFFSET_OVERFLOW_ONE, GetStatus.OFFSET_OVERFLOW_BADLY)
            assert found.status in beyond, found
        else:
            expected = [
                row.raw
                for row in rows[offset : found.next_offset]
                if tags_code is None or row.message.tags_code == tags_code
            ]
            assert found.next_offset > offset, found
            assert b"".join(found.parts) == b"".join(expected), (queue, offset)
            assert found.count == len(expected), found

    def check_query(
        self, store: MessageStore, topic: str, key: str, begin_ms: int, end_ms: int
    ) -> None:
        expected = [
            row
            for row in reversed(self.kept)
            if row.is_indexed
            and row.message.topic == topic
            and key in row.message.keys
            and row.stored.physical_offset >= store.min_physical
            and begin_ms <= row.stored.store_timestamp <= end_ms
        ]
        parts = store.query(topic, key, 1 << 20, begin_ms, end_ms).parts
        found = [bytes(part) for part in parts]
        assert found == [row.raw for row in expected if row.raw in found], (topic, key)
        forgotten_below = max(self.deleted_below, self.topic_ends[topic])
        certain = [row for row in expected if row.stored.physical_offset >= forgotten_below]
        assert found[: len(certain)] == [row.raw for row in certain], (topic, key, certain)

    def check_find_by_time(self, store: MessageStore, queue: Queue, moment_ms: int) -> None:
        first = store.min_offset(*queue)
        rows = self.rows(queue)
        later = [at for at, row in enumerate(rows) if row.stored.store_timestamp >= moment_ms]
        expected = max(first, min(later, default=len(rows)))
        assert store.offset_by_time(*queue, moment_ms) == expected, (queue, moment_ms)

    def check_find_by_id(self, store: MessageStore, row: Kept) -> None:
        is_gone = row.stored.physical_offset < store.min_physical
        assert self._is_there(store, row) is not is_gone, row
        assert store.record_at(row.stored.physical_offset + 1) is None, row

    def _is_there(self, store: MessageStore, row: Kept) -> bool:
        found = store.record_at(row.stored.physical_offset)
        return found is not None and bytes(found) == row.raw
