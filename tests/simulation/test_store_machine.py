"""The store against a plain list, on a disk that crashes at any call.

The promise of the whole project in one machine: after a process kill everything acknowledged is there, in order, once
per queue, byte for byte; after a power loss everything below the flushed watermark is. Files are tiny, so that every
few messages one fills up, and messages are cut to end right at, before or behind the end of a file.

``COMETMQ_SIMULATION_EXAMPLES`` makes it run longer. A failure prints its steps, seeds included; it can be replayed
with the printed ``@reproduce_failure`` line.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cometmq.base.errors import DiskFull, StoreClosed, StoreError
from cometmq.model.java_hash import java_hash
from cometmq.model.properties import render_properties
from cometmq.model.record import decode_record, encode_record
from cometmq.store.config import (
    CommitLogConfig,
    ConsumeQueueConfig,
    IndexConfig,
    RetentionConfig,
    StoreConfig,
)
from cometmq.store.get import GetStatus
from cometmq.store.message_store import MessageStore
from cometmq.store.put import NewMessage, Stored
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import Crashed, FaultyFiles, Moment, Outage

STORE_HOST = bytes([127, 0, 0, 1, 0, 0, 0x2A, 0x9F])
BORN_HOSTS = [bytes([10, 0, 0, 1, 0, 0, 1, 2]), bytes(range(16)) + bytes([0, 0, 1, 2])]
LOG_FILE_BYTES = 2048
BLANK_BYTES = 8
PREPARED, ROLLBACK = 4, 12
SYS_FLAGS = [0, 0, 8, 0, 0, PREPARED, 0, 0, ROLLBACK, 0, 0]
TOPICS = ["A", "Topic-B"]
KEYS = ["k1", "k2", "schlüssel"]
TAGS = ["", "red", "polygenelubricants"]
EVERY_HOUR = ";".join(f"{hour:02d}" for hour in range(24))
CONFIG = StoreConfig(
    root="/store",
    log=CommitLogConfig(file_bytes=LOG_FILE_BYTES, message_bytes_max=LOG_FILE_BYTES),
    queues=ConsumeQueueConfig(file_bytes=100, open_files_max=8),
    index=IndexConfig(slot_count=5, entry_count=8, query_count_max=10_000),
    retention=RetentionConfig(delete_when=EVERY_HOUR, reserved_hours=72),
)


@dataclass(frozen=True, slots=True, repr=False)
class Kept:
    """A message of the model, with the very bytes its record must have."""

    message: NewMessage
    stored: Stored
    raw: bytes

    def __repr__(self) -> str:
        return f"<Kept {self.message.topic}/{self.message.queue_id} {self.stored}>"

    @property
    def end(self) -> int:
        return self.stored.physical_offset + len(self.raw)

    @property
    def has_entry(self) -> bool:
        return self.message.sys_flag not in (PREPARED, ROLLBACK)

    @property
    def is_indexed(self) -> bool:
        return self.message.sys_flag != ROLLBACK


def raw_record(message: NewMessage, stored: Stored) -> bytes:
    """What the record must look like, from the shared layout and not from the store's own encoder."""
    v6_bit = 16 if len(message.born_host) == 20 else 0
    return encode_record(
        topic=message.topic.encode(),
        queue_id=message.queue_id,
        queue_offset=stored.queue_offset,
        physical_offset=stored.physical_offset,
        flag=message.flag,
        sys_flag=message.sys_flag | v6_bit,
        born_timestamp=message.born_timestamp,
        born_host=message.born_host,
        store_timestamp=stored.store_timestamp,
        store_host=STORE_HOST,
        reconsume_times=message.reconsume_times,
        prepared_transaction_offset=message.prepared_transaction_offset,
        body=message.body,
        properties=message.properties,
    )


def record_bytes(message: NewMessage) -> int:
    return len(raw_record(message, Stored(0, 0, 0, 0)))


def make_message(queue: tuple[str, int], variety: int, body_bytes: int) -> NewMessage:
    """A message whose many details follow from one number: fewer draws make more examples."""
    number = variety % 1000
    keys = [key for bit, key in enumerate(KEYS) if variety >> bit & 1]
    tag = TAGS[variety // 8 % len(TAGS)]
    pairs = {} if number % 5 == 0 else {"UNIQ_KEY": f"U{number}"}
    if keys:
        pairs["KEYS"] = " ".join(keys)
    if tag:
        pairs["TAGS"] = tag
    return NewMessage(
        topic=queue[0],
        queue_id=queue[1],
        body=bytes([number % 256]) * body_bytes,
        properties=render_properties(pairs).encode(),
        tags_code=java_hash(tag),
        keys=([pairs["UNIQ_KEY"]] if "UNIQ_KEY" in pairs else []) + keys,
        flag=number,
        sys_flag=SYS_FLAGS[number % len(SYS_FLAGS)],
        born_timestamp=number,
        born_host=BORN_HOSTS[number // 7 % 2],
        reconsume_times=number % 3,
    )


queues = st.sampled_from([(topic, queue_id) for topic in TOPICS for queue_id in (0, 1)])
varieties = st.integers(0, 5000)
body_lengths = st.one_of(st.integers(0, 50), st.integers(0, 900))
messages = st.builds(make_message, queues, varieties, body_lengths)
moments = st.sampled_from(Moment)
outages = st.sampled_from(Outage)
crash_calls = st.one_of(st.integers(1, 12), st.integers(1, 120))


def has_lived(machine: StoreMachine) -> bool:
    """Whether there is something to lose: a machine that crashes all the time tests empty stores."""
    return machine.puts_since_crash >= 8


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.kept: list[Kept] = []
        self.in_flight: list[NewMessage] = []
        self.topic_ends: dict[str, int] = dict.fromkeys(TOPICS, 0)
        """Messages of a topic below this offset were deleted with it; only the log still has them."""
        self.topic_in_flight = ""
        self.outage = Outage.PROCESS_KILL
        self.crashes_in_recovery: list[tuple[int, Moment, Outage]] = []
        self.deleted_below = 0
        self.promised_below = 0
        self.is_space_short = False
        self.puts_since_crash = 0

    @initialize(seed=st.integers(0, 1 << 16))
    def create(self, seed: int) -> None:
        self.files = FaultyFiles(self.clock, seed=seed)
        self.store = self.new_store()
        self.store.load()

    def new_store(self) -> MessageStore:
        return MessageStore(CONFIG, store_host=STORE_HOST, files=self.files, clock=self.clock)

    # What a broker does

    @rule(message=messages)
    def put(self, message: NewMessage) -> None:
        self.append([message])

    @rule(message=messages, delta=st.integers(-2, 2))
    def put_up_to_the_end_of_the_file(self, message: NewMessage, delta: int) -> None:
        room = LOG_FILE_BYTES - self.store.max_physical % LOG_FILE_BYTES - BLANK_BYTES
        body_bytes = room + delta - (record_bytes(message) - len(message.body))
        if body_bytes >= 0:
            message.body = b"e" * body_bytes
            if record_bytes(message) + BLANK_BYTES <= LOG_FILE_BYTES:
                self.append([message])

    @rule(queue=queues, shapes=st.lists(st.tuples(varieties, body_lengths), min_size=1, max_size=6))
    def put_batch(self, queue: tuple[str, int], shapes: list[tuple[int, int]]) -> None:
        batch = [make_message(queue, variety, length) for variety, length in shapes]
        if sum(map(record_bytes, batch)) + BLANK_BYTES <= LOG_FILE_BYTES:
            self.append(batch)

    @rule(queue=queues, first=varieties, count=st.integers(5, 25), body_bytes=st.integers(0, 400))
    def put_many(self, queue: tuple[str, int], first: int, count: int, body_bytes: int) -> None:
        for number in range(count):
            self.append([make_message(queue, first + number, body_bytes + number % 7)])

    @rule()
    def flush(self) -> None:
        self.do(self.store.flush)
        if not self.is_space_short:
            assert self.store.watermarks.flushed.value == self.store.max_physical

    @rule(hours=st.sampled_from([0, 1, 40, 80]))
    def maintain(self, hours: int) -> None:
        self.clock.advance(hours * 3600)
        self.do(self.maintain_store)

    @precondition(has_lived)
    @rule(topic=st.sampled_from(TOPICS))
    def delete_topic(self, topic: str) -> None:
        self.topic_in_flight = topic
        if self.do(lambda: self.store.delete_topic(topic)):
            self.topic_ends[topic] = self.store.max_physical
        self.topic_in_flight = ""

    @rule(milliseconds=st.integers(0, 5000), jump_seconds=st.sampled_from([0, 0, -100, 100]))
    def let_time_pass(self, milliseconds: int, jump_seconds: int) -> None:
        self.clock.advance(milliseconds / 1000)
        self.clock.jump(jump_seconds)

    @rule()
    def stop_and_start(self) -> None:
        if self.do(self.store.close):
            self.in_flight = []
            while not self.try_to_load():
                if self.files.is_down:
                    self.come_back()
                    return
                assert self.is_space_short
                self.make_space()
            self.check_everything()

    # What happens to it

    @precondition(has_lived)
    @rule(outage=outages)
    def crash(self, outage: Outage) -> None:
        self.outage = outage
        self.files.crash_now()
        self.come_back()

    @rule(
        calls=crash_calls,
        moment=moments,
        outage=outages,
        in_recovery=st.lists(st.tuples(crash_calls, moments, outages), max_size=2),
    )
    def prepare_a_crash(
        self,
        calls: int,
        moment: Moment,
        outage: Outage,
        in_recovery: list[tuple[int, Moment, Outage]],
    ) -> None:
        self.files.crash_in(calls, moment)
        self.outage = outage
        self.crashes_in_recovery = in_recovery

    @precondition(has_lived)
    @rule(
        queue=queues,
        shapes=st.lists(st.tuples(varieties, body_lengths), min_size=1, max_size=3),
        calls=st.integers(1, 8),
        moment=moments,
        outage=outages,
    )
    def crash_in_a_put(
        self,
        queue: tuple[str, int],
        shapes: list[tuple[int, int]],
        calls: int,
        moment: Moment,
        outage: Outage,
    ) -> None:
        self.files.crash_in(calls, moment)
        self.outage = outage
        self.put_batch(queue, shapes)

    @rule(free_bytes=st.sampled_from([0, 4096, 3 * 4096]))
    def run_out_of_space(self, free_bytes: int) -> None:
        self.files.set_free(free_bytes)
        self.is_space_short = True

    @precondition(lambda self: self.is_space_short)
    @rule()
    def find_space(self) -> None:
        self.make_space()
        self.do(self.maintain_store)

    @precondition(has_lived)
    @rule(message=messages)
    def fail_a_sync_and_lose_power(self, message: NewMessage) -> None:
        self.append([message])
        self.files.fail_syncs(1)
        flushed = self.store.watermarks.flushed.value
        try:
            self.store.flush()
        except Crashed:
            pass
        except StoreError:
            assert self.store.watermarks.flushed.value == flushed
        self.outage = Outage.POWER_LOSS
        self.files.crash_now()
        self.come_back()

    # What is looked at

    @rule(queue=queues, at=st.integers(0, 100), key=st.sampled_from([*KEYS, "U7", "none"]))
    def look(self, queue: tuple[str, int], at: int, key: str) -> None:
        """Everything a client may ask for, at one place of the list."""
        rows = self.rows(queue)
        tag = TAGS[at % len(TAGS)]
        self.check_get(queue, at % (len(rows) + 4) - 1, tag)
        times = sorted({row.stored.store_timestamp for row in self.kept}) or [1]
        moment = times[at % len(times)]
        self.check_query(queue[0], key, 0, 1 << 62)
        self.check_query(queue[0], key, moment, times[-1])
        self.check_query(queue[0], key, times[0], moment)
        for offset_ms in (-1, 0, 1):
            self.check_find_by_time(queue, moment + offset_ms)
        if self.kept:
            self.check_find_by_id(self.kept[at % len(self.kept)])

    def check_get(self, queue: tuple[str, int], offset: int, tag: str) -> None:
        rows = self.rows(queue)
        tags_code = java_hash(tag)
        wanted = (lambda code: code == tags_code) if tag else None
        found = self.store.get(*queue, offset, 32, tags=wanted)
        first = self.store.min_offset(*queue)
        if not rows:
            assert found.status in (
                GetStatus.NO_MATCHED_LOGIC_QUEUE,
                GetStatus.NO_MESSAGE_IN_QUEUE,
            )
        elif offset < first:
            assert found.status is GetStatus.OFFSET_TOO_SMALL
            assert found.next_offset == first
        elif offset >= len(rows):
            assert found.status in (
                GetStatus.OFFSET_OVERFLOW_ONE,
                GetStatus.OFFSET_OVERFLOW_BADLY,
            )
        else:
            expected = [
                row.raw
                for row in rows[offset : found.next_offset]
                if not tag or row.message.tags_code == tags_code
            ]
            assert found.next_offset > offset
            assert b"".join(found.parts) == b"".join(expected)
            assert found.count == len(expected)

    def check_find_by_time(self, queue: tuple[str, int], moment: int) -> None:
        first = self.store.min_offset(*queue)
        rows = self.rows(queue)
        later = [at for at, row in enumerate(rows) if row.stored.store_timestamp >= moment]
        expected = max(first, min(later, default=len(rows)))
        assert self.store.offset_by_time(*queue, moment) == expected

    def check_find_by_id(self, row: Kept) -> None:
        found = self.store.record_at(row.stored.physical_offset)
        if row.stored.physical_offset >= self.store.min_physical:
            assert found is not None
            assert bytes(found) == row.raw
        else:
            assert found is None
        assert self.store.record_at(row.stored.physical_offset + 1) is None

    @invariant()
    def queues_are_as_long_as_the_list(self) -> None:
        if not self.files.is_down:
            for topic in TOPICS:
                for queue_id in (0, 1):
                    rows = self.rows((topic, queue_id))
                    assert self.store.max_offset(topic, queue_id) == len(rows)

    def teardown(self) -> None:
        if hasattr(self, "files"):
            self.files.cancel_crash()
            self.check_everything()

    # How it is done

    def append(self, batch: list[NewMessage]) -> None:
        self.puts_since_crash += 1
        self.in_flight = batch
        self.end_before = self.store.max_physical
        answers: list[Stored] = []

        def send() -> None:
            if len(batch) == 1:
                answers.append(self.store.put(batch[0]))
            else:
                answers.extend(self.store.put_batch(batch))

        if self.do(send):
            for message, stored in zip(batch, answers, strict=True):
                self.keep(message, stored)
        self.in_flight = []

    def keep(self, message: NewMessage, stored: Stored) -> None:
        row = Kept(message, stored, raw_record(message, stored))
        if row.has_entry:
            assert stored.queue_offset == len(self.rows((message.topic, message.queue_id)))
        assert not self.kept or stored.store_timestamp >= self.kept[-1].stored.store_timestamp
        assert stored.size_bytes == len(row.raw)
        self.kept.append(row)

    def do(self, action: Callable[[], None]) -> bool:
        """Whether it went through; a crash has been recovered from on return."""
        try:
            action()
        except Crashed as crash:
            note(f"crashed {crash}")
            self.come_back()
            return False
        except DiskFull:
            assert self.is_space_short
            return False
        except StoreClosed:
            assert self.is_space_short
            return False
        return True

    def come_back(self) -> None:
        """Restart as planned, then see what is left."""
        self.puts_since_crash = 0
        self.note_promise()
        has_lost_power = self.outage is Outage.POWER_LOSS
        self.files.restart(self.outage)
        for calls, moment, outage in self.crashes_in_recovery:
            self.files.crash_in(calls, moment)
            if self.try_to_load():
                break
            if self.files.is_down:
                has_lost_power |= outage is Outage.POWER_LOSS
                self.files.restart(outage)
        else:
            self.files.cancel_crash()
            if not self.try_to_load():
                self.make_space()
                assert self.try_to_load()
        self.files.cancel_crash()
        self.crashes_in_recovery = []
        self.forget_what_may_be_lost(self.promised_below if has_lost_power else 1 << 62)
        self.adopt_what_was_in_flight()
        topic = self.topic_in_flight
        if topic and not any(self.store.max_offset(topic, queue_id) for queue_id in (0, 1)):
            self.topic_ends[topic] = self.store.max_physical
        self.topic_in_flight = ""
        end = self.store.max_physical
        self.topic_ends = {topic: min(known, end) for topic, known in self.topic_ends.items()}
        self.check_everything()

    def make_space(self) -> None:
        self.files.set_free(1 << 40)
        self.is_space_short = False
        # The store tries a full disk again only after a while.
        self.clock.advance(10)

    def try_to_load(self) -> bool:
        self.note_promise()
        self.store = self.new_store()
        try:
            self.store.load()
        except Crashed as crash:
            note(f"crashed while recovering {crash}")
            return False
        except DiskFull:
            assert self.is_space_short
            return False
        return True

    def note_promise(self) -> None:
        self.promised_below = max(self.promised_below, self.store.watermarks.flushed.value)

    def forget_what_may_be_lost(self, promised_below: int) -> None:
        there = [self.is_there(row) for row in self.kept]
        lost_from = len(self.kept)
        for at, row in enumerate(self.kept):
            if not there[at] and row.stored.physical_offset >= self.deleted_below:
                lost_from = at
                break
        for at, row in enumerate(self.kept[lost_from:], lost_from):
            assert row.end > promised_below, f"lost {row}, flushed up to {promised_below}"
            assert not there[at], f"{row} survived, but an earlier one did not"
        del self.kept[lost_from:]

    def adopt_what_was_in_flight(self) -> None:
        """A put that never returned may be there or not, but only whole, and a batch only from its start."""
        position = getattr(self, "end_before", 0)
        for message in self.in_flight:
            for start in (position, position - position % LOG_FILE_BYTES + LOG_FILE_BYTES):
                found = self.store.record_at(start)
                if found is not None:
                    record = decode_record(found)
                    size = record.size_bytes
                    stored = Stored(start, size, record.queue_offset, record.store_timestamp)
                    self.keep(message, stored)
                    assert bytes(found) == self.kept[-1].raw
                    position = start + size
                    break
            else:
                break
        self.in_flight = []

    def is_there(self, row: Kept) -> bool:
        found = self.store.record_at(row.stored.physical_offset)
        return found is not None and bytes(found) == row.raw

    def maintain_store(self) -> None:
        try:
            self.store.maintain()
        finally:
            self.note_deletion()

    def note_deletion(self) -> None:
        start = self.store.min_physical
        assert start == 0 or start <= max((row.end for row in self.kept), default=0)
        self.deleted_below = max(self.deleted_below, start)

    def rows(self, queue: tuple[str, int]) -> list[Kept]:
        return [
            row
            for row in self.kept
            if row.has_entry
            and (row.message.topic, row.message.queue_id) == queue
            and row.stored.physical_offset >= self.topic_ends[queue[0]]
        ]

    def check_query(self, topic: str, key: str, begin_ms: int, end_ms: int) -> None:
        expected = [
            row
            for row in reversed(self.kept)
            if row.is_indexed
            and row.message.topic == topic
            and key in row.message.keys
            and row.stored.physical_offset >= self.store.min_physical
            and begin_ms <= row.stored.store_timestamp <= end_ms
        ]
        found = [
            bytes(part) for part in self.store.query(topic, key, 10_000, begin_ms, end_ms).parts
        ]
        assert found == [row.raw for row in expected if row.raw in found]
        # A log file that was deleted may come back after a power loss, without its keys.
        forgotten_below = max(self.deleted_below, self.topic_ends[topic])
        certain = [row.raw for row in expected if row.stored.physical_offset >= forgotten_below]
        assert found[: len(certain)] == certain

    def check_everything(self) -> None:
        """Every queue from end to end, every record by its id, every key."""
        start = self.store.min_physical
        assert start <= self.deleted_below
        for row in self.kept:
            if row.stored.physical_offset >= start:
                assert self.is_there(row), row
        for queue in [(topic, queue_id) for topic in TOPICS for queue_id in (0, 1)]:
            self.check_queue(queue)
        for topic in TOPICS:
            for key in KEYS:
                self.check_query(topic, key, 0, 1 << 62)

    def check_queue(self, queue: tuple[str, int]) -> None:
        rows = self.rows(queue)
        first = self.store.min_offset(*queue)
        assert all(row.stored.physical_offset < self.deleted_below for row in rows[:first])
        assert self.store.max_offset(*queue) == len(rows)
        offset = first
        while offset < len(rows):
            found = self.store.get(*queue, offset, 32)
            assert found.status is GetStatus.FOUND, (found, offset)
            expected = rows[offset : found.next_offset]
            assert b"".join(found.parts) == b"".join(row.raw for row in expected)
            offset = found.next_offset
        entries = self.store.entries(*queue, first, len(rows) - first)
        assert entries == [
            (row.stored.physical_offset, len(row.raw), row.message.tags_code)
            for row in rows[first:]
        ]


StoreMachine.TestCase.settings = settings(
    max_examples=int(os.environ.get("COMETMQ_SIMULATION_EXAMPLES", "60")),
    stateful_step_count=50,
    deadline=None,
    print_blob=True,
    report_multiple_bugs=False,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
TestStore = StoreMachine.TestCase
