from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from cometmq.base.errors import DiskFull, RecordTooLarge, StoreClosed, StoreError, UsageError
from cometmq.model.address import pack_host
from cometmq.model.messages.record import Record, decode_record, decode_records
from cometmq.model.messages.record_layout import BLANK_BYTES, MAGIC_BLANK
from cometmq.store.log.new_messages import NewMessage, NewMessages, Stored, StoredMessages
from cometmq.store.message_store import MessageStore
from cometmq.store.read.read_results import GetResult, GetStatus
from cometmq.store.store_config import (
    CommitLogConfig,
    ConsumeQueueConfig,
    IndexConfig,
    StoreConfig,
)
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles

Lab = Any
Make = Callable[..., NewMessage]
ALL_TIME = (0, 1 << 62)


def records(result: GetResult) -> list[Record]:
    return [record for part in result.parts for record in decode_records(part)]


def bodies(store: MessageStore, topic: str = "T", queue_id: int = 0) -> list[bytes]:
    """All of a queue, read as a consumer does."""
    found: list[bytes] = []
    offset = store.min_offset(topic, queue_id)
    while offset < store.max_offset(topic, queue_id):
        result = store.get(topic, queue_id, offset, 32)
        assert result.status is GetStatus.FOUND, result
        found += [record.body for record in records(result)]
        offset = result.next_offset
    return found


def test_a_record_has_the_bytes_java_would_have_written(lab: Lab) -> None:
    lab.clock.ms = 1_700_000_000_001
    store = lab.open()
    stored = store.put(
        NewMessage(
            topic="TopicTest",
            queue_id=0,
            body=b"Hello RocketMQ",
            properties=b"TAGS\x01TagA\x02",
            born_timestamp=1_700_000_000_000,
            born_host=pack_host("127.0.0.1", 54321),
        )
    )
    record = store.record_at(stored.physical_offset)
    assert record is not None
    assert hashlib.md5(record).hexdigest() == "c88a725a99829c2a87c4d41fa62ae504"
    assert stored == Stored(0, 124, 0, 1_700_000_000_001)
    assert stored.end_offset == 124


def test_hosts_of_the_other_family_set_their_bits(lab: Lab, message: Make) -> None:
    store = lab.open()
    stored = store.put(message("v6", born_host=pack_host("::1", 9), sys_flag=1))
    raw = store.record_at(stored.physical_offset)
    assert raw is not None
    record = decode_record(raw)
    assert (record.sys_flag, record.born_address) == (17, "[::1]:9")
    assert store.store_time("T", 0, 0) == lab.clock.ms


def test_what_does_not_fit_leaves_a_blank_record_and_goes_to_the_next_file(
    lab: Lab, message: Make
) -> None:
    store = lab.open()
    sizes = [store.put(message(b"x" * 1500)).size_bytes for _ in range(2)]
    third = store.put(message(b"y" * 1500))
    assert third.physical_offset == 4096
    raw = (lab.root / "commitlog" / f"{0:020d}").read_bytes()
    blank_at = sum(sizes)
    assert int.from_bytes(raw[blank_at : blank_at + 4], "big") == 4096 - blank_at
    assert int.from_bytes(raw[blank_at + 4 : blank_at + 8], "big") == MAGIC_BLANK
    assert raw[blank_at + BLANK_BYTES :].strip(b"\0") == b""
    assert bodies(store) == [b"x" * 1500] * 2 + [b"y" * 1500]


def test_a_record_may_leave_exactly_the_room_of_a_blank_one(lab: Lab, message: Make) -> None:
    store = lab.open()
    first = store.put(message(b"x" * 2000))
    left = 4096 - first.size_bytes - BLANK_BYTES
    overhead = first.size_bytes - 2000
    second = store.put(message(b"x" * (left - overhead)))
    assert second.end_offset == 4096 - BLANK_BYTES
    assert store.put(message()).physical_offset == 4096


class Listening:
    """Wants to know of all messages, or of those of one queue."""

    def __init__(self, tell: Callable[..., None], queue_id: int | None = None) -> None:
        self._queue_id = queue_id
        self.arrived = tell

    def is_waiting_for(self, topics: list[str], queue_ids: list[int]) -> bool:
        return self._queue_id is None or self._queue_id in queue_ids


def test_a_batch_stays_together_in_one_file_with_consecutive_offsets(
    lab: Lab, message: Make
) -> None:
    store = lab.open()
    store.put(message(b"x" * 2000))
    stored = store.put_all([message(b"%d" % n + b"." * 800) for n in range(3)])
    assert [one.queue_offset for one in stored] == [1, 2, 3]
    assert stored[0].physical_offset == 4096
    assert stored[1].physical_offset == stored[0].end_offset
    assert [body[:1] for body in bodies(store)] == [b"x", b"0", b"1", b"2"]


def test_no_messages_are_refused(lab: Lab) -> None:
    store = lab.open()
    with pytest.raises(UsageError, match="found none"):
        store.put_all([])
    assert store.max_physical == 0


def test_messages_of_several_queues_are_put_together_or_not_at_all(lab: Lab, message: Make) -> None:
    store = lab.open()
    store.put(message(b"x" * 2000))
    first, second = store.put_all([message(b"a" * 1500, queue_id=1), message(b"b" * 700)])
    assert (first.physical_offset, second.physical_offset) == (4096, first.end_offset)
    assert (first.queue_offset, second.queue_offset) == (0, 1)
    assert store.last_record == second.physical_offset
    assert store.max_physical == second.end_offset
    assert bodies(store, queue_id=1) == [b"a" * 1500]
    assert bodies(store) == [b"x" * 2000, b"b" * 700]
    with pytest.raises(RecordTooLarge):
        store.put_all([message(b"a" * 1900, queue_id=n) for n in range(3)])
    assert store.max_physical == second.end_offset


def test_too_large_is_refused_and_nothing_is_written(lab: Lab, message: Make) -> None:
    store = lab.open()
    with pytest.raises(RecordTooLarge, match="body of 2001 bytes"):
        store.put(message(b"x" * 2001))
    with pytest.raises(RecordTooLarge, match="properties of 32768 bytes"):
        store.put(message(properties=b"x" * 32768))
    with pytest.raises(RecordTooLarge, match="log file"):
        store.put_all([message(b"x" * 1900) for _ in range(3)])
    with pytest.raises(RecordTooLarge, match="body of 2001 bytes"):
        store.put_all([message(b"x" * size) for size in (10, 2001)])
    assert store.max_physical == 0
    assert store.put(message()).queue_offset == 0


@pytest.mark.parametrize("topic", ["../x", "a/b", "", ".", "x" * 128])
def test_a_name_that_is_no_topic_never_becomes_a_path(lab: Lab, message: Make, topic: str) -> None:
    store = lab.open()
    with pytest.raises(UsageError):
        store.put(message(topic=topic))


def test_store_times_never_go_back(lab: Lab, message: Make) -> None:
    store = lab.open()
    first = store.put(message())
    lab.clock.ms -= 5000
    assert store.put(message()).store_timestamp == first.store_timestamp


def test_half_and_rolled_back_messages_are_in_the_log_only(lab: Lab, message: Make) -> None:
    store = lab.open()
    for sys_flag in (4, 12):
        stored = store.put(message("hidden", sys_flag=sys_flag))
        assert stored.queue_offset == 0
        assert store.record_at(stored.physical_offset) is not None
    assert store.put(message("shown", sys_flag=8)).queue_offset == 0
    assert bodies(store) == [b"shown"]


def test_arrivals_are_told_when_the_message_can_be_read(lab: Lab, message: Make) -> None:
    store = lab.open()
    told: list[tuple[object, ...]] = []

    def arrival(*news: object) -> None:
        told.append((*news, store.get("T", 3, 0, 1).count))

    store.arrivals.append(Listening(arrival, queue_id=3))
    store.put(message(queue_id=3, tags_code=42, properties=b"a\x01b\x02"))
    store.put(message(queue_id=2))
    assert told == [("T", 3, 1, 42, lab.clock.ms, b"a\x01b\x02", 1)]


def test_arrivals_are_told_of_each_message_of_a_batch(lab: Lab, message: Make) -> None:
    store = lab.open()
    told: list[tuple[object, ...]] = []
    store.arrivals.append(Listening(lambda *news: told.append(news), queue_id=3))
    batch = [message(queue_id=3, tags_code=n, properties=b"n\x01%d" % n) for n in range(2)]
    store.put_all(batch)
    store.put_all([message(queue_id=2)] * 2)
    now = lab.clock.ms
    assert told == [("T", 3, 1, 0, now, b"n\x010"), ("T", 3, 2, 1, now, b"n\x011")]


def test_an_entry_of_the_schedule_topic_holds_its_time_of_delivery(lab: Lab, message: Make) -> None:
    store = lab.open()
    topic = "SCHEDULE_TOPIC_XXXX"
    store.put(message(topic=topic, queue_id=2, properties=b"DELAY\x013\x02", tags_code=5))
    assert store.entries(topic, 2, 0, 1)[0][2] == lab.clock.ms + 10_000


def test_statuses_of_a_read(lab: Lab, message: Make) -> None:
    store = lab.open()
    missing = store.get("T", 0, 7, 1)
    assert (missing.status, missing.next_offset) == (GetStatus.NO_MATCHED_LOGIC_QUEUE, 0)
    store.put(message(sys_flag=4))
    empty = store.get("T", 0, 7, 1)
    assert (empty.status, empty.next_offset) == (GetStatus.NO_MESSAGE_IN_QUEUE, 0)
    store.put(message())
    at_end = store.get("T", 0, 1, 1)
    assert (at_end.status, at_end.next_offset) == (GetStatus.OFFSET_OVERFLOW_ONE, 1)
    beyond = store.get("T", 0, 9, 1)
    assert (beyond.status, beyond.next_offset) == (GetStatus.OFFSET_OVERFLOW_BADLY, 1)
    below = store.get("T", 0, -1, 1)
    assert (below.status, below.next_offset) == (GetStatus.OFFSET_TOO_SMALL, 0)
    found = store.get("T", 0, 0, 1)
    assert (found.status, found.next_offset, found.count) == (GetStatus.FOUND, 1, 1)
    assert (found.min_offset, found.max_offset) == (0, 1)


def test_adjacent_records_are_one_part(lab: Lab, message: Make) -> None:
    # Smaller ones may be joined although they are apart.
    lab.change(log={"file_bytes": 1 << 20, "message_bytes_max": 10_000})
    store = lab.open()
    for queue_id in (0, 0, 0, 1, 0):
        store.put(message("x" * 5000, queue_id=queue_id))
    adjacent = store.get("T", 0, 0, 3)
    assert (adjacent.count, len(adjacent.parts)) == (3, 1)
    for everything in (None, lambda tags_code: True):
        result = store.get("T", 0, 0, 32, tags=everything)
        assert result.count == 4
        assert result.size_bytes == sum(len(part) for part in result.parts)
        assert [record.queue_offset for record in records(result)] == [0, 1, 2, 3]
    assert len(result.parts) == 2


def test_the_limits_of_a_read(lab: Lab, message: Make) -> None:
    lab.change(read={"memory_count_max": 4, "memory_bytes_max": 1000})
    store = lab.open()
    for _ in range(6):
        store.put(message(b"x" * 100))
    size = store.entries("T", 0, 0, 1)[0][1]
    assert store.get("T", 0, 0, 3).count == 3
    assert store.get("T", 0, 0, 32).count == 4
    assert store.get("T", 0, 0, 32, max_bytes=2 * size).count == 2
    assert store.get("T", 0, 0, 32, max_bytes=1).count == 1
    lab.change(read={"memory_percent": 0, "disk_count_max": 2})
    store.apply(lab.config)
    from_disk = store.get("T", 0, 0, 32)
    assert (from_disk.count, from_disk.suggest_slave) == (2, True)
    assert not store.is_in_memory(0)


def test_filters_see_tags_first_and_then_records(lab: Lab, message: Make) -> None:
    store = lab.open()
    for number in range(6):
        store.put(message(b"%d" % number, tags_code=number % 2))
    odd = store.get("T", 0, 0, 32, tags=lambda code: code == 1)
    assert [record.body for record in records(odd)] == [b"1", b"3", b"5"]
    assert odd.next_offset == 6
    asked: list[int] = []

    def record(view: memoryview) -> bool:
        asked.append(len(view))
        return decode_record(view).body == b"3"

    one = store.get("T", 0, 0, 32, tags=lambda code: code == 1, record=record)
    assert [found.body for found in records(one)] == [b"3"]
    assert len(asked) == 3
    none = store.get("T", 0, 0, 32, tags=lambda code: code == 9)
    assert (none.status, none.next_offset) == (GetStatus.NO_MATCHED_MESSAGE, 6)


def test_a_filtered_read_looks_at_so_much_and_no_more(lab: Lab, message: Make) -> None:
    lab.change(queues={"file_bytes": 20 * 300}, log={"file_bytes": 1 << 20})
    store = lab.open()
    store.put_all([message(b"") for _ in range(900)])
    result = store.get("T", 0, 0, 8, tags=lambda _: False)
    assert (result.status, result.next_offset) == (GetStatus.NO_MATCHED_MESSAGE, 800)


def test_the_offset_of_a_time_is_exact_to_the_millisecond(lab: Lab, message: Make) -> None:
    store = lab.open()
    start = lab.clock.ms
    for step in (0, 0, 1, 5, 5, 9):
        lab.clock.ms = start + step
        store.put(message())
    at = [store.offset_by_time("T", 0, start + step) for step in (-1, 0, 1, 2, 5, 6, 9, 10)]
    assert at == [0, 0, 2, 3, 3, 5, 5, 6]
    up = [
        store.offset_by_time("T", 0, start + step, upper=True) for step in (-1, 0, 1, 2, 5, 6, 99)
    ]
    assert up == [0, 1, 2, 2, 4, 4, 5]
    assert store.offset_by_time("T", 7, start) == 0
    assert store.store_time("T", 0, 3) == start + 5
    assert store.store_time("T", 0, 6) == store.store_time("T", 7, 0) == -1
    assert store.earliest_store_time() == start


def test_a_query_finds_by_key_and_unique_key_and_checks_the_record(lab: Lab, message: Make) -> None:
    store = lab.open()
    # "Aa" and "BB" have the same hash in Java.
    for number, key in enumerate(("Aa", "BB", "Aa")):
        properties = f"UNIQ_KEY\x01U{number}\x02KEYS\x01{key} x\x02".encode()
        store.put(message(b"%d" % number, properties=properties, keys=[f"U{number}", key, "x"]))
        lab.clock.ms += 2000

    def query(key: str, *times: int) -> list[bytes]:
        result = store.query("T", key, 32, *(times or ALL_TIME))
        return [decode_record(part).body for part in result.parts]

    assert query("Aa") == [b"2", b"0"]
    assert query("U1") == [b"1"]
    assert query("x") == [b"2", b"1", b"0"]
    assert query("nothing") == []
    assert query("x", lab.clock.ms - 2000, lab.clock.ms) == [b"2"]
    assert store.query("Other", "x", 32, *ALL_TIME).parts == []


def test_a_deleted_topic_starts_anew(lab: Lab, message: Make) -> None:
    store = lab.open()
    store.put(message("old"))
    store.put(message("other", topic="O"))
    store.delete_topic("T")
    assert store.topics() == ["O"]
    assert store.max_offset("T", 0) == 0
    assert store.put(message("new")).queue_offset == 0
    assert bodies(store) == [b"new"]
    assert store.clean_unused({"T"}) == 1
    assert store.topics() == ["T"]


def test_a_closed_store_refuses(lab: Lab, message: Make) -> None:
    store = MessageStore(lab.config, store_host=b"8 bytes.", files=lab.files, clock=lab.clock)
    with pytest.raises(StoreClosed):
        store.put(message())
    store.load()
    store.put(message())
    store.close()
    store.close()
    with pytest.raises(StoreClosed):
        store.put(message())
    assert not (lab.root / "abort").exists()


def test_two_processes_cannot_have_the_same_directory(message: Make) -> None:
    lab_clock = FakeClock()
    files = FaultyFiles(lab_clock)
    first = faulty_store(files, lab_clock)
    with pytest.raises(StoreError, match="held by another process"):
        faulty_store(files, lab_clock)
    first.close()
    faulty_store(files, lab_clock).close()


def faulty_store(files: FaultyFiles, clock: FakeClock) -> MessageStore:
    config = StoreConfig(
        root="/store",
        log=CommitLogConfig(file_bytes=8192, message_bytes_max=4000),
        queues=ConsumeQueueConfig(file_bytes=200),
        index=IndexConfig(slot_count=50, entry_count=100),
    )
    store = MessageStore(config, store_host=pack_host("127.0.0.1", 10911), files=files, clock=clock)
    store.load()
    return store


def test_a_full_disk_refuses_and_recovers_by_itself(message: Make) -> None:
    clock = FakeClock()
    files = FaultyFiles(clock, total_bytes=1 << 20)
    store = faulty_store(files, clock)
    files.set_free(20_000)
    stored = 0
    try:
        while stored < 100:
            store.put(message(b"%04d" % stored + b"." * 1000, keys=["k"]))
            stored += 1
    except DiskFull:
        pass
    assert 0 < stored < 100
    with pytest.raises(DiskFull):
        store.put(message(b"." * 1000))
    assert [body[:4] for body in bodies(store)] == [b"%04d" % n for n in range(stored)]
    files.set_free(1 << 20)
    clock.advance(2)
    assert store.put(message("again")).queue_offset == stored
    store.close()
    again = faulty_store(files, clock)
    assert len(bodies(again)) == stored + 1
    again.close()


def test_entries_that_find_no_space_wait_and_lose_nothing(message: Make) -> None:
    clock = FakeClock()
    files = FaultyFiles(clock, total_bytes=1 << 20)
    store = faulty_store(files, clock)
    for number in range(20):
        store.put(message(b"%d" % number))
    files.set_free(0)
    store.maintain()
    with pytest.raises(DiskFull):
        store.flush()
    assert len(bodies(store)) == 20
    files.set_free(1 << 20)
    store.flush()
    assert [int(body) for body in bodies(store)] == list(range(20))
    store.close()


def test_above_the_warning_level_sends_are_refused_until_space_returns(message: Make) -> None:
    clock = FakeClock()
    files = FaultyFiles(clock, total_bytes=1 << 20)
    store = faulty_store(files, clock)
    store.put(message())
    files.set_free(1000)
    store.maintain()
    assert store.is_disk_full
    with pytest.raises(DiskFull, match="percent"):
        store.put(message())
    files.set_free(1 << 20)
    clock.advance(2)
    assert store.put(message()).queue_offset == 1
    assert not store.is_disk_full
    store.close()


def test_a_failed_sync_ends_the_store(message: Make) -> None:
    clock = FakeClock()
    files = FaultyFiles(clock)
    store = faulty_store(files, clock)
    store.put(message("safe"))
    store.flush()
    answers: list[bool] = []
    stored = store.put(message("lost"))
    store.watermarks.flushed.when(stored.end_offset, answers.append)
    files.fail_syncs(1)
    with pytest.raises(StoreError):
        store.flush()
    with pytest.raises(StoreClosed, match="could not be written to disk"):
        store.put(message())
    store.close()
    assert answers == [False]
    assert files.exists("/store/abort")


def test_an_address_in_an_extended_queue_is_no_tag_to_filter_by(lab: Lab, message: Make) -> None:
    store = lab.open()
    for tags_code in (5, -(2**31), -(2**31) - 1, 48 - 2**63):
        store.put(message(b"x", tags_code=tags_code))
    found = store.get("T", 0, 0, 32, tags=lambda code: code == 5)
    # The two addresses are left to the client.
    assert (found.count, found.next_offset) == (3, 4)


def test_a_filtered_read_looks_at_no_more_entries_than_it_may(lab: Lab, message: Make) -> None:
    store = lab.open()
    for _ in range(10):
        store.put(message(b"x"))
    seen: list[int] = []

    def record(view: memoryview) -> bool:
        seen.append(len(view))
        return False

    found = store.get("T", 0, 2, 32, record=record, scan_max=3)
    assert (found.status, found.next_offset, len(seen)) == (GetStatus.NO_MATCHED_MESSAGE, 5, 3)


def put_each(store: MessageStore, messages: list[NewMessage]) -> list[Stored | Exception]:
    """The outcomes of messages that have nothing to do with each other."""
    outcomes: list[Stored | Exception] = []
    for outcome in store.append_each(NewMessages.of(messages)):
        outcomes += outcome.each() if isinstance(outcome, StoredMessages) else [outcome]
    return outcomes


def different(make: Make) -> list[NewMessage]:
    """Of several queues, with and without keys, hosts of both kinds, a long topic."""
    return [
        make("a", keys=["k"], properties=b"KEYS\x01k"),
        make("b", queue_id=3),
        make(
            "c",
            topic="U",
            keys=["x", "y"],
            properties=b"KEYS\x01x y",
            tags_code=7,
            flag=5,
            reconsume_times=2,
        ),
        make("d", born_host=pack_host("::1", 1), born_timestamp=9),
        make("e", topic="L" * 120),
        make("f", queue_id=3),
    ]


def test_messages_put_at_once_lie_as_if_put_one_after_the_other(lab: Lab, message: Make) -> None:
    one_by_one = lab.open()
    expected = [one_by_one.put(each) for each in different(message)]
    other = lab.crash("other")
    shutil.rmtree(other.root)
    together = other.open()
    seen: list[tuple[object, ...]] = []
    together.arrivals.append(Listening(lambda *arrival: seen.append(arrival[:3])))
    assert put_each(together, different(message)) == expected
    for stored in expected:
        assert together.record_at(stored.physical_offset) == one_by_one.record_at(
            stored.physical_offset
        )
    for topic, queue_id in (("T", 0), ("T", 3), ("U", 0), ("L" * 120, 0)):
        count = one_by_one.max_offset(topic, queue_id)
        assert together.entries(topic, queue_id, 0, 9) == one_by_one.entries(topic, queue_id, 0, 9)
        assert together.max_offset(topic, queue_id) == count > 0
    assert [arrival[1:] for arrival in seen if arrival[0] == "T"] == [
        (0, 1),
        (3, 1),
        (0, 2),
        (3, 2),
    ]
    assert len(together.query("U", "y", 9, *ALL_TIME).parts) == 1
    assert together.watermarks.appended.value == together.max_physical
    assert together.last_record == expected[-1].physical_offset


def test_one_bad_message_among_others_fails_alone(lab: Lab, message: Make) -> None:
    store = lab.open()
    outcomes = put_each(
        store, [message("a"), message(b"." * 2001), message("b", topic="../x"), message("c")]
    )
    assert [type(outcome) for outcome in outcomes] == [Stored, RecordTooLarge, UsageError, Stored]
    assert bodies(store) == [b"a", b"c"]


def test_messages_put_at_once_may_need_several_files(lab: Lab, message: Make) -> None:
    store = lab.open()
    outcomes = put_each(store, [message(b"%d" % n + b"." * 1000) for n in range(9)])
    assert [outcome.queue_offset for outcome in outcomes if isinstance(outcome, Stored)] == list(
        range(9)
    )
    assert [body[:1] for body in bodies(store)] == [b"%d" % n for n in range(9)]


def test_what_finds_no_space_among_others_is_refused(message: Make) -> None:
    clock = FakeClock()
    files = FaultyFiles(clock, total_bytes=1 << 20)
    store = faulty_store(files, clock)
    files.set_free(20_000)
    outcomes = put_each(store, [message(b"%03d" % n + b"." * 1000) for n in range(100)])
    stored = sum(isinstance(outcome, Stored) for outcome in outcomes)
    assert 0 < stored < 100
    assert {type(outcome) for outcome in outcomes[stored:]} == {DiskFull}
    assert [body[:3] for body in bodies(store)] == [b"%03d" % n for n in range(stored)]
    store.close()


def test_a_closed_store_refuses_each_of_several_messages(lab: Lab, message: Make) -> None:
    store = lab.open()
    store.close()
    assert {type(one) for one in put_each(store, [message("a"), message("b")])} == {StoreClosed}


def test_groups_write_their_share_of_what_waits(
    lab: Lab, message: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else entries pile up in memory when every message of a group belongs to another queue."""
    monkeypatch.setattr("cometmq.store.queues.consume_queues.WAITING_MIN", 8)
    monkeypatch.setattr("cometmq.store.queues.consume_queues.WAITING_PER_QUEUE", 1)
    lab.change(log={"file_bytes": 1 << 20}, index={"enabled": False})
    store = lab.open()
    for _ in range(20):
        put_each(store, [message(b"", topic=f"T{number}") for number in range(200)])
    assert store._queues.waiting_count <= 2 * 200
