"""What a read would have to wait for, on a disk that says what is not in memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

import pytest

from cometmq.model.address import pack_host
from cometmq.model.java_hash import java_hash
from cometmq.store.log.new_messages import NewMessage
from cometmq.store.message_store import MessageStore
from cometmq.store.queues.extended_queues import TagFilter
from cometmq.store.read import cold
from cometmq.store.read.bulk_reader import BulkLimits
from cometmq.store.read.cold import ColdReads, NotInMemory
from cometmq.store.read.loading import Stretch
from cometmq.store.store_config import (
    CommitLogConfig,
    ConsumeQueueConfig,
    IndexConfig,
    ReadConfig,
    StoreConfig,
)
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles

LOG_FILE = 1 << 16
QUEUE_FILE = 200 * 20
COUNT = 300
BODY = b"x" * 900

MakeMessage = Callable[..., NewMessage]


def is_three(tags_code: int) -> bool:
    return tags_code == java_hash("3")


class Lab:
    """300 messages of about 1 KB in one queue, each second one of its log."""

    def __init__(self, message: MakeMessage) -> None:
        self.clock = FakeClock()
        self.files = FaultyFiles(self.clock)
        self.config = StoreConfig(
            root="/store",
            log=CommitLogConfig(file_bytes=LOG_FILE),
            queues=ConsumeQueueConfig(file_bytes=QUEUE_FILE),
            index=IndexConfig(slot_count=50, entry_count=1000),
        )
        self.store = self._open()
        for number in range(COUNT):
            tag = str(number % 10)
            fields = {"properties": f"TAGS\x01{tag}".encode(), "tags_code": java_hash(tag)}
            self.store.put_all([message(BODY, **fields), message(BODY, topic="Other", **fields)])
        self.places = [place for place, _, _ in self.store.entries("T", 0, 0, COUNT)]

    def _open(self) -> MessageStore:
        store = MessageStore(
            self.config,
            store_host=pack_host("127.0.0.1", 10911),
            files=self.files,
            clock=self.clock,
        )
        store.load()
        return store

    def restart(self, **read: int) -> None:
        """On a machine that has nothing in memory."""
        self.store.close()
        self.config = dataclasses.replace(self.config, read=ReadConfig(**read))  # type: ignore[arg-type]
        self.store = self._open()
        self.files.evict()

    def missing(
        self, offset: int, count: int, *, max_bytes: int = 1 << 20, tags: TagFilter | None = None
    ) -> Sequence[Stretch]:
        """What a pull of the queue is told."""
        try:
            self.store.get("T", 0, offset, count, max_bytes=max_bytes, tags=tags, may_wait=False)
        except NotInMemory as cold:
            return cold.missing
        return ()

    def missing_in_bulk(
        self, offset: int, end_offset: int, limits: BulkLimits
    ) -> Sequence[Stretch]:
        try:
            self.store.get_bulk("T", 0, offset, end_offset, limits, may_wait=False)
        except NotInMemory as cold:
            return cold.missing
        return ()

    def load(self, stretches: Sequence[Stretch]) -> None:
        done = self.store.loader.load(stretches)
        assert done is not None
        done.result(10)


@pytest.fixture
def lab(message: MakeMessage) -> Iterator[Lab]:
    lab = Lab(message)
    yield lab
    lab.store.close()


def test_what_was_just_written_is_in_memory_and_nobody_is_asked(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.files.evict()
    lab.store.flush()
    lab.files.evict()
    # The queue's entries are looked at once.
    lab.load(lab.missing(0, 32))
    assert lab.missing(0, 32) == ()

    def never(cold: ColdReads, *asked: object) -> NoReturn:
        raise AssertionError(asked)

    monkeypatch.setattr(ColdReads, "missing", never)
    assert lab.missing(100, 32) == ()


def test_first_the_entries_then_the_records_then_nothing(lab: Lab) -> None:
    lab.restart()
    (entries,) = lab.missing(10, 16)
    assert entries.path.endswith("consumequeue/T/0/00000000000000000000")
    assert entries[1:3] == (200, 320)
    assert entries.ahead_bytes == QUEUE_FILE - 520, "up to the end of the file"
    lab.load([entries])
    (records,) = lab.missing(10, 16)
    assert records.path.endswith("commitlog/00000000000000000000")
    assert records.position == lab.places[10]
    assert lab.places[25] < records.position + records.size_bytes < lab.places[26]
    assert records.ahead_bytes == LOG_FILE - records.position - records.size_bytes
    lab.load([records])
    assert lab.missing(10, 16) == ()
    assert lab.store.get("T", 0, 10, 16).count == 16


def test_files_that_follow_are_loaded_as_far_as_they_are_read(lab: Lab) -> None:
    lab.restart()
    entries = lab.missing(190, 32)
    assert [(one.position, one.size_bytes) for one in entries] == [(190 * 20, 200), (0, 22 * 20)]
    first = next(n for n in range(COUNT) if lab.places[n] > LOG_FILE - 8000)
    lab.load(lab.missing(first, 32))
    records = lab.missing(first, 32)
    assert [int(one.path[-20:]) for one in records] == [0, LOG_FILE]
    assert records[0].position + records[0].size_bytes == LOG_FILE
    assert records[0].ahead_bytes == 0
    lab.load(records)
    assert lab.missing(first, 32) == ()


@pytest.mark.parametrize("offset", [-1, COUNT, COUNT + 5])
def test_nothing_is_loaded_for_a_place_outside_of_the_queue(lab: Lab, offset: int) -> None:
    lab.restart()
    assert lab.missing(offset, 32) == ()


def test_no_more_than_a_reply_holds(lab: Lab) -> None:
    lab.restart()
    lab.load(lab.missing(0, 32))
    (few,) = lab.missing(0, 32, max_bytes=4000)
    assert few.size_bytes < lab.places[5]
    (one,) = lab.missing(0, 1)
    assert one.size_bytes < lab.places[1]


def test_a_filter_looks_at_more(lab: Lab) -> None:
    lab.restart()
    lab.load(lab.missing(0, 32, tags=is_three))
    found = lab.missing(0, 32, tags=is_three)
    assert len(found) == lab.store.max_physical // LOG_FILE + 1


def test_far_from_each_other_only_what_is_wanted(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold, "DENSE_PART", 1)
    lab.restart()
    lab.load(lab.missing(0, 32, tags=is_three))
    found = lab.missing(0, 32, tags=is_three)
    start = int(found[0].path[-20:])
    assert [start + found[0].position, found[0].ahead_bytes] == [lab.places[3], 0]
    assert len(found) == COUNT // 10
    monkeypatch.setattr(cold, "SPARSE_COUNT_MAX", 25)
    assert len(lab.missing(0, 32, tags=is_three)) == 3
    monkeypatch.setattr(cold, "LOAD_BYTES_MAX", 1500)
    assert len(lab.missing(0, 32, tags=is_three)) == 1


def test_one_load_is_bounded(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold, "LOAD_BYTES_MAX", 5000)
    lab.restart()
    lab.load(lab.missing(0, 32))
    (records,) = lab.missing(0, 32)
    assert records.size_bytes == 5000


def test_a_bulk_pull_looks_at_what_fits(lab: Lab) -> None:
    lab.restart()
    limits = BulkLimits(max_bytes=8000, max_count=100, scan_max=100)
    (entries,) = lab.missing_in_bulk(0, 90, limits)
    assert entries.size_bytes == 90 * 20
    lab.load([entries])
    (records,) = lab.missing_in_bulk(0, 90, limits)
    assert records.size_bytes < lab.places[9]
    lab.load([records])
    assert lab.missing_in_bulk(0, 90, limits) == ()


def test_what_was_written_long_ago_is_asked_about(lab: Lab) -> None:
    lab.store.close()
    lab.config = dataclasses.replace(lab.config, read=ReadConfig(unchecked_bytes=0))
    lab.store = lab._open()
    lab.store.flush()
    lab.files.evict()
    assert lab.missing(0, 32) != ()


def test_gaps_and_lost_files_are_for_the_read_to_find(lab: Lab) -> None:
    lab.restart()
    lab.load(lab.missing(0, 32))
    path = "/store/consumequeue/T/0/00000000000000000000"
    lab.files.open(path, mapped=False).write_at(0, bytes(20))
    assert lab.missing(0, 32) == ()
    lab.files.remove(path)
    lab.store._queues.open_files.drop(path)
    assert lab.missing(0, 32) == ()
