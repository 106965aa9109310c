"""Appends messages to the store: to the log first, then to their queues and the index.

There is one append: a group of messages by columns, all or none. A single message is a group of one, a batch is a
group for one queue. Independent messages are tried as a group, and one by one if that fails: then each has its own
outcome.

Everything that can fail happens before the first byte is written: room in the log, room for waiting queue entries,
room in the index. Once the records are in the log, only memory is touched, so a record in the log is also in its
queue.

Thread rule: the owner of the store.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import chain, compress, repeat
from operator import not_
from typing import NamedTuple, Protocol

from cometmq.base.errors import CometError, StoreClosed, UsageError
from cometmq.base.ports import Clock
from cometmq.model.flags import TRANSACTION_MASK
from cometmq.model.names import SCHEDULE_TOPIC, is_brokers_own, stored_topic_fault
from cometmq.store.index.index_files import IndexFiles
from cometmq.store.log.commit_log import CommitLog
from cometmq.store.log.new_messages import NewMessages, StoredMessages
from cometmq.store.log.plain_messages import PlainMessages, told
from cometmq.store.log.record_writer import lay_out, record_sizes
from cometmq.store.queues.consume_queue import ConsumeQueue
from cometmq.store.queues.consume_queues import ROUND_PART, ConsumeQueues, Written
from cometmq.store.queues.delay_levels import DelayLevels
from cometmq.store.read.hidden import Hidden
from cometmq.store.recovery.log_follower import has_queue_entry, is_indexed
from cometmq.store.upkeep.flush import LogFlusher
from cometmq.store.watermarks import Watermarks


class Listener(Protocol):
    """Is notified of messages that became readable."""

    def is_waiting_for(self, topics: list[str], queue_ids: list[int]) -> bool:
        """Whether to notify of messages that go to these queues. Called for each append; mostly nobody is waiting."""
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
        """A message can be read; ``max_offset`` is the queue's end after it. Perhaps nobody is waiting for this one."""
        ...


class _Arrived(NamedTuple):
    """What listeners are told of messages, by columns."""

    topics: list[str]
    queue_ids: list[int]
    queue_offsets: list[int]
    tags_codes: list[int]
    texts: list[bytes]

    def only(self, chosen: list[bool]) -> _Arrived:
        return _Arrived(
            [*compress(self.topics, chosen)],
            [*compress(self.queue_ids, chosen)],
            [*compress(self.queue_offsets, chosen)],
            [*compress(self.tags_codes, chosen)],
            [*compress(self.texts, chosen)],
        )


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
        hidden: Hidden,
    ) -> None:
        self.arrivals: list[Listener] = []
        self.refusal: CometError | None = StoreClosed("the store is not loaded")
        """Why messages are currently refused. The flusher also sets it, when a sync has failed."""
        self.recheck: Callable[[], None] = _nothing
        """Called before a message is refused, to check whether the reason still holds."""
        self.body_bytes_max = 0
        self._log = log
        self._queues = queues
        self._index = index
        self._delay_levels = delay_levels
        self._watermarks = watermarks
        self._flusher = flusher
        self._clock = clock
        self._store_host = store_host
        self._hidden = hidden
        self._last_timestamp = 0
        self._last_record = 0

    @property
    def last_record(self) -> int:
        return self._last_record

    def resume(self, last_timestamp: int, last_record: int) -> None:
        """Continue after recovery: store times never go back, whatever the clock does."""
        self._last_timestamp = self._flusher.store_timestamp = last_timestamp
        self._last_record = last_record

    def append(self, new: NewMessages) -> StoredMessages:
        """Append messages, all or none, contiguously in one file."""
        if self.refusal is not None:
            self._refuse()
        return self._append(new, *self._prepare(new))

    def append_each(self, new: NewMessages) -> list[StoredMessages | Exception]:
        """Append independent messages, with one write if possible.

        Returns:
            One outcome for all of them together, or, if they could not be appended together, one for each.
        """
        count = len(new.topics)
        if self.refusal is None:
            try:
                queues, topic_fields, sizes = self._prepare(new)
                # Each goes into the current file if it fits, whatever follows.
                if count == 1 or self._log.has_room(sum(sizes)):
                    return [self._append(new, queues, topic_fields, sizes)]
            except CometError as error:
                if count == 1:
                    return [error]
        # One by one, to find the one that fails.
        return [self._tried(new.slice(at, at + 1)) for at in range(count)]

    def append_plain(self, new: PlainMessages) -> int | None:
        """Append plain messages with one write.

        Returns:
            Where their records end; None if something stands in the way: nothing was appended, and the same messages
            as ``NewMessages`` will tell what it is.
        """
        if self.refusal is not None:
            return None
        index, log = self._index, self._log
        try:
            new.measure(self._queues.table, self._new_queue, self._store_host)
            if not log.has_room(new.size_bytes):
                return None
            self._make_room(new.count, new.key_count)
        except CometError:
            return None
        place, timestamp = log.reserve(new.size_bytes), self._now()
        log.write(new.lay_out(place, timestamp, self._store_host), is_group=new.count > 1)
        self._flusher.store_timestamp = timestamp
        self._last_record = new.last_place
        # Entries before keys: the index may have to read from the disk first.
        self._queues.append_batches(new.entries())
        if index is not None:
            index.add_hashed(*new.keys(), timestamp)
        self._watermarks.put(log.end)
        destinations = new.destinations()
        if self._hidden.is_on:
            # May take long: what is announced then must not keep the frames with the bodies.
            ends = new.ends()
            announce = partial(self._tell_plain, *destinations, ends, new.notices(), timestamp)
            self._hidden.hide_ends(log.end, ends, new.count, announce)
        elif self.is_awaited(*destinations):
            self._tell_plain(*destinations, new.ends(), new.notices(), timestamp)
        return log.end

    def _tell_plain(
        self,
        topics: list[str],
        queue_ids: list[int],
        ends: list[tuple[ConsumeQueue, int, int]],
        notices: list[bytes],
        timestamp: int,
    ) -> None:
        """``tell`` by queues: where the messages of each begin and end in it, and what is told of them."""
        for listener in self.arrivals:
            if not listener.is_waiting_for(topics, queue_ids):
                continue
            for topic, queue_id, (_, start, _), messages in zip(
                topics, queue_ids, ends, notices, strict=True
            ):
                if listener.is_waiting_for([topic], [queue_id]):
                    for end, (tags_code, text) in enumerate(told(messages), start + 1):
                        listener.arrived(topic, queue_id, end, tags_code, timestamp, text)

    def _make_room(self, entry_count: int, key_count: int) -> None:
        """For queue entries and keys. Raises DiskFull."""
        if self._queues.is_write_due:
            # At least as many as get an entry; otherwise the waiting entries would grow without bound.
            self.write_part(max(ROUND_PART, entry_count))
        if self._index is not None:
            self._index.reserve(key_count)

    def _tried(self, new: NewMessages) -> StoredMessages | Exception:
        try:
            return self.append(new)
        except Exception as error:  # noqa: BLE001 - the caller answers each message on its own
            return error

    def _prepare(self, new: NewMessages) -> tuple[list[ConsumeQueue], list[bytes], list[int]]:
        """Queue, topic field and record size of each message. Raises UsageError, RecordTooLarge."""
        topics, queue_ids = new.topics, new.queue_ids
        count, topic, queue_id = len(topics), topics[0], queue_ids[0]
        if topics.count(topic) == count == queue_ids.count(queue_id):
            queue = self._queues.get(topic, queue_id) or self._new_queue(topic, queue_id)
            queues, topic_fields = [queue] * count, [queue.topic_field] * count
        else:
            table = self._queues.table
            try:
                queues = [
                    table[topic][queue_id]
                    for topic, queue_id in zip(topics, queue_ids, strict=True)
                ]
            except KeyError:
                queues = [*map(self._new_queue, topics, queue_ids)]
            topic_fields = [queue.topic_field for queue in queues]
        sizes = record_sizes(new, topic_fields, self._store_host, self.body_bytes_max)
        return queues, topic_fields, sizes

    def _append(
        self,
        new: NewMessages,
        queues: list[ConsumeQueue],
        topic_fields: list[bytes],
        sizes: list[int],
    ) -> StoredMessages:
        index, log = self._index, self._log
        self._make_room(len(queues), len(new.keys))
        places = _places(log.reserve(sum(sizes)), sizes)
        timestamp = self._now()
        # Half and rolled-back messages are not in a queue.
        has_entry = None
        if any(map(TRANSACTION_MASK.__and__, new.sys_flags)):
            has_entry = [*map(has_queue_entry, new.sys_flags)]
        queue_offsets = _next_offsets(queues, has_entry)
        # One write: a crash in the middle of it leaves at most the first of them, and none was acknowledged.
        log.write(
            lay_out(new, sizes, topic_fields, queue_offsets, places, timestamp, self._store_host),
            is_group=len(sizes) > 1,
        )
        self._flusher.store_timestamp = timestamp
        self._last_record = places[-1]
        if index is not None and new.keys:
            _enter_keys(index, new, has_entry is None, queues, places, timestamp)
        self._enqueue(new, queues, has_entry, queue_offsets, places, sizes, timestamp)
        return StoredMessages(places, sizes, queue_offsets, timestamp)

    def _enqueue(
        self,
        new: NewMessages,
        queues: list[ConsumeQueue],
        has_entry: list[bool] | None,
        queue_offsets: list[int],
        places: list[int],
        sizes: list[int],
        timestamp: int,
    ) -> None:
        topics, queue_ids = new.topics, new.queue_ids
        texts, tags_codes = new.properties, new.tags_codes
        if SCHEDULE_TOPIC in topics:
            tags_codes = [
                self._delay_levels.tags_code(topic, text.decode(errors="replace"), timestamp)
                if topic == SCHEDULE_TOPIC
                else tags_code
                for topic, text, tags_code in zip(topics, texts, tags_codes, strict=True)
            ]
        if has_entry is not None:
            queues = [*compress(queues, has_entry)]
            topics, queue_ids = [*compress(topics, has_entry)], [*compress(queue_ids, has_entry)]
            queue_offsets = [*compress(queue_offsets, has_entry)]
            places, sizes = [*compress(places, has_entry)], [*compress(sizes, has_entry)]
            texts, tags_codes = [*compress(texts, has_entry)], [*compress(tags_codes, has_entry)]
        self._queues.append_all(queues, places, sizes, tags_codes)
        self._watermarks.put(self._log.end)
        if self._hidden.is_on:
            arrived = _Arrived(topics, queue_ids, queue_offsets, tags_codes, texts)
            self._hide(queues, arrived, timestamp)
        else:
            self.tell(topics, queue_ids, queue_offsets, tags_codes, texts, timestamp)

    def _hide(self, queues: list[ConsumeQueue], arrived: _Arrived, timestamp: int) -> None:
        """Tell later what can be read later."""
        is_own = [*map(is_brokers_own, arrived.topics)]
        if True in is_own:
            # What the broker reads itself it copies to places further behind in the log, which loses its end first.
            self.tell(*arrived.only(is_own), timestamp)
            is_hidden = [*map(not_, is_own)]
            queues, arrived = [*compress(queues, is_hidden)], arrived.only(is_hidden)
        if queues:
            announce = partial(self.tell, *arrived, timestamp)
            self._hidden.hide(self._log.end, queues, arrived.queue_offsets, announce)

    def tell(
        self,
        topics: list[str],
        queue_ids: list[int],
        queue_offsets: list[int],
        tags_codes: list[int],
        texts: list[bytes],
        timestamp: int,
    ) -> None:
        """Tell those who wait that messages can be read."""
        for listener in self.arrivals:
            if not listener.is_waiting_for(topics, queue_ids):
                continue
            for topic, queue_id, offset, tags_code, text in zip(
                topics, queue_ids, queue_offsets, tags_codes, texts, strict=True
            ):
                listener.arrived(topic, queue_id, offset + 1, tags_code, timestamp, text)

    def is_awaited(self, topics: list[str], queue_ids: list[int]) -> bool:
        """Whether somebody waits for messages of these queues."""
        return any(listener.is_waiting_for(topics, queue_ids) for listener in self.arrivals)

    def write_out(self) -> None:
        """Write waiting index and queue entries to their files. Raises DiskFull, and then keeps them."""
        self._queues.write_out(self._reached(everything=True))

    def write_part(self, count: int | None = None) -> None:
        """The same for the entries of a few queues at a time."""
        if not self._queues.is_round_under_way:
            self._queues.begin_round(self._reached())
        self._queues.write_part(count)

    def _reached(self, *, everything: bool = False) -> Written:
        # The index first: what the queues record as written applies to both.
        indexed_record = -1
        if self._index is not None:
            self._index.write_out(everything=everything)
            indexed_record = self._index.checkpoint_offset
        # Of a master that is the end of the log; a slave may still have records to dispatch.
        offset = self._watermarks.dispatched.value
        return Written(offset, self._last_timestamp, self._last_record, indexed_record)

    def _now(self) -> int:
        timestamp = self._clock.wall_ms()
        if timestamp < self._last_timestamp:
            return self._last_timestamp
        self._last_timestamp = timestamp
        return timestamp

    def _new_queue(self, topic: str, queue_id: int) -> ConsumeQueue:
        """The only place where an external name becomes a path."""
        fault = stored_topic_fault(topic)
        if fault is not None or queue_id < 0:
            raise UsageError(fault or f"queue id {queue_id} is negative")
        return self._queues.get_or_create(topic, queue_id)

    def _refuse(self) -> None:
        self.recheck()
        if self.refusal is not None:
            # A new one each time: an exception accumulates tracebacks when it is raised.
            raise type(self.refusal)(*self.refusal.args)


def _nothing() -> None:
    return None


def _places(first: int, sizes: list[int]) -> list[int]:
    """Where consecutive records of these sizes start."""
    places: list[int] = []
    for size_bytes in sizes:
        places.append(first)
        first += size_bytes
    return places


def _next_offsets(queues: list[ConsumeQueue], has_entry: list[bool] | None) -> list[int]:
    """The offsets of messages in their queues; 0 for those without an entry."""
    queue = queues[0]
    if has_entry is None and queues.count(queue) == len(queues):
        return [*range(queue.next_offset, queue.next_offset + len(queues))]
    taken: dict[ConsumeQueue, int] = {}
    offsets: list[int] = []
    for queue, has_place in zip(queues, has_entry or repeat(True), strict=False):
        offset = taken.get(queue, queue.next_offset)
        taken[queue] = offset + has_place
        offsets.append(offset if has_place else 0)
    return offsets


def _enter_keys(
    index: IndexFiles,
    new: NewMessages,
    is_plain: bool,
    queues: list[ConsumeQueue],
    places: list[int],
    timestamp: int,
) -> None:
    """Add one row to the index for each key; a message may have several or none."""
    keys, counts = new.keys, new.key_counts
    prefixes = [queue.key_prefix for queue in queues]
    if not is_plain:
        flags, counts = new.sys_flags, counts or [1] * len(places)
        keys = [*compress(keys, chain(*map(repeat, map(is_indexed, flags), counts)))]
        counts = [count * is_indexed(flag) for count, flag in zip(counts, flags, strict=True)]
    if counts is not None and counts.count(1) != len(counts):
        prefixes = [*chain(*map(repeat, prefixes, counts))]
        places = [*chain(*map(repeat, places, counts))]
    index.add_batch(prefixes, keys, places, repeat(timestamp, len(keys)))
