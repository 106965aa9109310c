"""The way of a message into the store: into the log first, then into its queue and the index.

Everything that can fail comes before the first byte is written: room in the log, room for waiting queue entries, room
in the index. Once the record is in the log only memory is touched, so a record that is in the log is in its queue.

Thread rule: the owner of the store.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, chain, repeat
from typing import Protocol

from cometmq.base.errors import CometError, StoreClosed, UsageError
from cometmq.base.ports import Clock
from cometmq.model.flags import TRANSACTION_MASK
from cometmq.model.names import SCHEDULE_TOPIC, stored_topic_fault
from cometmq.store.commit_log import CommitLog
from cometmq.store.consume_queue import ENTRY, ConsumeQueue
from cometmq.store.consume_queues import ROUND_PART, ConsumeQueues, Written
from cometmq.store.delay_levels import DelayLevels
from cometmq.store.dispatch import has_queue_entry, is_indexed
from cometmq.store.encode import (
    batch_record_bytes,
    encode,
    encode_batch,
    encode_parts,
    record_bytes,
)
from cometmq.store.flush import LogFlusher
from cometmq.store.index_files import IndexFiles
from cometmq.store.put import NewBatch, NewMessage, Stored, StoredBatch
from cometmq.store.watermarks import Watermarks


class Listener(Protocol):
    """Whoever wants to know of messages that became readable."""

    def is_waiting_for(self, topic: str, queue_id: int) -> bool:
        """Whether to be told. Asked for each message, of which most are waited for by nobody."""
        ...

    def arrived(
        self,
        topic: str,
        queue_id: int,
        max_offset: int,
        tags_code: int,
        store_timestamp: int,
        properties: bytes,
    ) -> None:
        """A message can be read; ``max_offset`` is the queue's end after it."""
        ...


class Appender:
    def __init__(
        self,
        log: CommitLog,
        queues: ConsumeQueues,
        index: IndexFiles | None,
        delay_levels: DelayLevels,
        watermarks: Watermarks,
        flusher: LogFlusher,
        clock: Clock,
        store_host: bytes,
    ) -> None:
        self.arrivals: list[Listener] = []
        self.refusal: CometError | None = StoreClosed("the store is not loaded")
        """Why no message is taken at present. The flusher sets it, too, when a sync has failed."""
        self.recheck: Callable[[], None] = _nothing
        """Called before a message is refused, to see whether the reason still holds."""
        self.body_bytes_max = 0
        self._log = log
        self._queues = queues
        self._index = index
        self._delay_levels = delay_levels
        self._watermarks = watermarks
        self._flusher = flusher
        self._clock = clock
        self._store_host = store_host
        self._last_timestamp = 0
        self._last_record = 0

    @property
    def last_record(self) -> int:
        return self._last_record

    def resume(self, last_timestamp: int, last_record: int) -> None:
        """Go on after recovery: store times never go back, whatever the clock does."""
        self._last_timestamp = self._flusher.store_timestamp = last_timestamp
        self._last_record = last_record

    def put(self, message: NewMessage) -> Stored:
        """One message. Written out in full: every call that is not made here saves a hundredth of a send."""
        if self.refusal is not None:
            self._refuse()
        topic, queue_id, sys_flag = message.topic, message.queue_id, message.sys_flag
        queues, index, log = self._queues, self._index, self._log
        queue = queues.get(topic, queue_id)
        if queue is None:
            queue = self._new_queue(topic, queue_id)
        size_bytes = record_bytes(message, queue.topic_field, self._store_host, self.body_bytes_max)
        if queues.is_write_due:
            self.write_part()
        if index is not None:
            index.reserve(len(message.keys))
        physical_offset = log.reserve(size_bytes)
        timestamp = self._clock.wall_ms()
        if timestamp < self._last_timestamp:
            timestamp = self._last_timestamp
        # Half and rolled-back messages have no place in a queue.
        has_entry = not sys_flag & TRANSACTION_MASK or has_queue_entry(sys_flag)
        queue_offset = queue.next_offset if has_entry else 0
        log.write(
            encode(
                message,
                size_bytes,
                queue.topic_field,
                queue_offset,
                physical_offset,
                timestamp,
                self._store_host,
            )
        )
        self._last_timestamp = self._flusher.store_timestamp = timestamp
        self._last_record = physical_offset
        if index is not None and (not sys_flag & TRANSACTION_MASK or is_indexed(sys_flag)):
            index.add(queue.key_prefix, message.keys, physical_offset, timestamp)
        if has_entry:
            self._enqueue(message, queue, physical_offset, size_bytes, timestamp)
        self._watermarks.put(log.end)
        return Stored(physical_offset, size_bytes, queue_offset, timestamp)

    def put_each(self, messages: list[NewMessage]) -> list[Stored | Exception]:
        """Messages that have nothing to do with each other, in one write: a failure is that of its message alone."""
        if len(messages) > 1 and self.refusal is None:
            try:
                stored = self._put_group(messages)
            except CometError:
                stored = None  # One by one, to see whose fault it is.
            if stored is not None:
                return stored
        return [self._tried(message) for message in messages]

    def _tried(self, message: NewMessage) -> Stored | Exception:
        try:
            return self.put(message)
        except Exception as error:  # noqa: BLE001 - the caller answers each message on its own
            return error

    def _put_group(self, messages: list[NewMessage]) -> list[Stored | Exception] | None:
        """None when they do not go into the same file, or when one of them has no place in a queue."""
        queues, index, log, host = self._queues, self._index, self._log, self._store_host
        body_bytes_max = self.body_bytes_max
        get = queues.get
        at: list[tuple[NewMessage, ConsumeQueue, int]] = []
        total_bytes = key_count = 0
        for message in messages:
            if message.sys_flag & TRANSACTION_MASK:
                return None
            topic, queue_id = message.topic, message.queue_id
            queue = get(topic, queue_id) or self._new_queue(topic, queue_id)
            size_bytes = record_bytes(message, queue.topic_field, host, body_bytes_max)
            total_bytes += size_bytes
            key_count += len(message.keys)
            at.append((message, queue, size_bytes))
        if not log.has_room(total_bytes):
            return None
        if queues.is_write_due:
            # As much as these messages would have written one by one, or what waits would grow without a bound.
            self.write_part(ROUND_PART * len(messages))
        if index is not None:
            index.reserve(key_count)
        timestamp = self._now()
        physical_offset = log.end
        next_offsets: dict[ConsumeQueue, int] = {}
        parts: list[bytes] = []
        stored: list[Stored | Exception] = []
        for message, queue, size_bytes in at:
            queue_offset = next_offsets.get(queue, -1)
            if queue_offset < 0:
                queue_offset = queue.next_offset
            next_offsets[queue] = queue_offset + 1
            parts += encode_parts(
                message,
                size_bytes,
                queue.topic_field,
                queue_offset,
                physical_offset,
                timestamp,
                host,
            )
            stored.append(Stored(physical_offset, size_bytes, queue_offset, timestamp))
            physical_offset += size_bytes
        log.write(b"".join(parts))
        enqueue = self._enqueue
        physical_offset -= total_bytes
        for message, queue, size_bytes in at:
            if index is not None:
                index.add(queue.key_prefix, message.keys, physical_offset, timestamp)
            enqueue(message, queue, physical_offset, size_bytes, timestamp)
            physical_offset += size_bytes
        self._last_record = physical_offset - size_bytes
        self._flusher.store_timestamp = timestamp
        self._watermarks.put(log.end)
        return stored

    def put_batch(self, messages: list[NewMessage]) -> list[Stored]:
        if self.refusal is not None:
            self._refuse()
        if len({(message.topic, message.queue_id) for message in messages}) != 1:
            raise UsageError("a batch needs messages, all of one topic and queue")
        topic, queue_id = messages[0].topic, messages[0].queue_id
        queue = self._queues.get(topic, queue_id) or self._new_queue(topic, queue_id)
        host = self._store_host
        sizes = [
            record_bytes(message, queue.topic_field, host, self.body_bytes_max)
            for message in messages
        ]
        key_count = sum(len(message.keys) for message in messages)
        physical_offset = self._reserve(sum(sizes), key_count)
        timestamp = self._now()
        queue_offset = queue.next_offset
        records: list[bytes] = []
        stored: list[Stored] = []
        for message, size_bytes in zip(messages, sizes, strict=True):
            has_entry = has_queue_entry(message.sys_flag)
            place = queue_offset if has_entry else 0
            stored.append(Stored(physical_offset, size_bytes, place, timestamp))
            records.append(
                encode(
                    message, size_bytes, queue.topic_field, place, physical_offset, timestamp, host
                )
            )
            physical_offset += size_bytes
            queue_offset += has_entry
        self._log.write(b"".join(records))
        for message, one in zip(messages, stored, strict=True):
            if self._index is not None and is_indexed(message.sys_flag):
                self._index.add(queue.key_prefix, message.keys, one.physical_offset, timestamp)
            if has_queue_entry(message.sys_flag):
                self._enqueue(message, queue, one.physical_offset, one.size_bytes, timestamp)
        self._last_record = stored[-1].physical_offset
        self._flusher.store_timestamp = timestamp
        self._watermarks.put(self._log.end)
        return stored

    def put_columns(self, batch: NewBatch) -> StoredBatch:
        if self.refusal is not None:
            self._refuse()
        topic, queue_id, host = batch.topic, batch.queue_id, self._store_host
        if not batch.bodies or topic == SCHEDULE_TOPIC or batch.sys_flag & TRANSACTION_MASK:
            raise UsageError("a batch needs messages, none of a transaction and none delayed")
        queue = self._queues.get(topic, queue_id) or self._new_queue(topic, queue_id)
        sizes = batch_record_bytes(batch, queue.topic_field, host, self.body_bytes_max)
        total_bytes = sum(sizes)
        first = self._reserve(total_bytes, len(batch.keys))
        timestamp = self._now()
        queue_offset = queue.next_offset
        places = list(accumulate(sizes[:-1], initial=first))
        # One write: a crash in the middle of it leaves the first records of the batch at most, and
        # those were never acknowledged.
        self._log.write(
            encode_batch(batch, sizes, queue.topic_field, queue_offset, places, timestamp, host)
        )
        self._last_record = places[-1]
        self._flusher.store_timestamp = timestamp
        if self._index is not None:
            counts = batch.key_counts
            key_places = places if counts is None else [*chain(*map(repeat, places, counts))]
            self._index.add_batch(queue.key_prefix, batch.keys, key_places, timestamp)
        entries = b"".join(map(ENTRY.pack, places, sizes, batch.tags_codes))
        self._queues.append_batch(queue, entries)
        for listener in self.arrivals:
            if listener.is_waiting_for(topic, queue_id):
                for number, arrived in enumerate(
                    zip(batch.tags_codes, repeat(timestamp), batch.properties), queue_offset + 1
                ):
                    listener.arrived(topic, queue_id, number, *arrived)
        self._watermarks.put(self._log.end)
        return StoredBatch(places, total_bytes, queue_offset, timestamp)

    def put_together(self, messages: list[NewMessage]) -> list[Stored]:
        if self.refusal is not None:
            self._refuse()
        host = self._store_host
        queues = [
            self._queues.get(message.topic, message.queue_id)
            or self._new_queue(message.topic, message.queue_id)
            for message in messages
        ]
        if len(set(queues)) != len(messages) or not messages:
            raise UsageError("messages put together must belong to different queues")
        sizes = [
            record_bytes(message, queue.topic_field, host, self.body_bytes_max)
            for message, queue in zip(messages, queues, strict=True)
        ]
        key_count = sum(len(message.keys) for message in messages)
        physical_offset = self._reserve(sum(sizes), key_count)
        timestamp = self._now()
        records: list[bytes] = []
        stored: list[Stored] = []
        for message, queue, size_bytes in zip(messages, queues, sizes, strict=True):
            assert has_queue_entry(message.sys_flag), message
            place = Stored(physical_offset, size_bytes, queue.next_offset, timestamp)
            records.append(
                encode(
                    message,
                    size_bytes,
                    queue.topic_field,
                    place.queue_offset,
                    physical_offset,
                    timestamp,
                    host,
                )
            )
            stored.append(place)
            physical_offset += size_bytes
        self._log.write(b"".join(records))
        for message, queue, place in zip(messages, queues, stored, strict=True):
            if self._index is not None:
                self._index.add(queue.key_prefix, message.keys, place.physical_offset, timestamp)
            self._enqueue(message, queue, place.physical_offset, place.size_bytes, timestamp)
        self._last_record = stored[-1].physical_offset
        self._flusher.store_timestamp = timestamp
        self._watermarks.put(self._log.end)
        return stored

    def write_out(self) -> None:
        """Put waiting index and queue entries into their files. Raises DiskFull, and then keeps them."""
        self._queues.write_out(self._reached(everything=True))

    def write_part(self, count: int | None = None) -> None:
        """The same for the entries of a few queues at a time."""
        if not self._queues.is_round_under_way:
            self._queues.begin_round(self._reached())
        self._queues.write_part(count)

    def _reached(self, *, everything: bool = False) -> Written:
        # The index first: what the queues note as written holds for both.
        indexed_record = -1
        if self._index is not None:
            self._index.write_out(everything=everything)
            indexed_record = self._index.checkpoint_offset
        return Written(self._log.end, self._last_timestamp, self._last_record, indexed_record)

    def _reserve(self, size_bytes: int, key_count: int) -> int:
        if self._queues.is_write_due:
            self.write_part()
        if self._index is not None:
            self._index.reserve(key_count)
        return self._log.reserve(size_bytes)

    def _now(self) -> int:
        timestamp = self._clock.wall_ms()
        if timestamp < self._last_timestamp:
            return self._last_timestamp
        self._last_timestamp = timestamp
        return timestamp

    def _enqueue(
        self,
        message: NewMessage,
        queue: ConsumeQueue,
        physical_offset: int,
        size_bytes: int,
        timestamp: int,
    ) -> None:
        topic, tags_code = message.topic, message.tags_code
        if topic == SCHEDULE_TOPIC:
            text = message.properties.decode(errors="replace")
            tags_code = self._delay_levels.tags_code(topic, text, timestamp)
        self._queues.append(queue, physical_offset, size_bytes, tags_code)
        queue_id = message.queue_id
        for listener in self.arrivals:
            if listener.is_waiting_for(topic, queue_id):
                listener.arrived(
                    topic, queue_id, queue.next_offset, tags_code, timestamp, message.properties
                )

    def _new_queue(self, topic: str, queue_id: int) -> ConsumeQueue:
        """The only place where a name from outside becomes a path."""
        fault = stored_topic_fault(topic)
        if fault is not None or queue_id < 0:
            raise UsageError(fault or f"queue id {queue_id} is negative")
        return self._queues.get_or_create(topic, queue_id)

    def _refuse(self) -> None:
        self.recheck()
        if self.refusal is not None:
            # A fresh one each time: a raised exception collects the traceback of its raiser.
            raise type(self.refusal)(*self.refusal.args)


def _nothing() -> None:
    return None
