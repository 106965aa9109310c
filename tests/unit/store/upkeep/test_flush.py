"""The threads of the store: they sync what they promise, wake up for whoever waits, and end with it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar, cast

import pytest
from tests.eventually import wait_until

from cometmq.base.disk import SystemFiles
from cometmq.base.errors import DiskFull
from cometmq.base.ports import File
from cometmq.store.log.commit_log import CommitLog
from cometmq.store.log.new_messages import NewMessage
from cometmq.store.log.next_file import NextFile
from cometmq.store.message_store import MessageStore
from cometmq.store.recovery.checkpoint import decode_marks
from cometmq.store.store_config import ASYNC_FLUSH, SYNC_FLUSH, FlushConfig
from cometmq.store.upkeep.flush import LogFlusher
from cometmq.store.watermarks import Watermarks
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles

Lab = Any
Make = Callable[..., NewMessage]


def test_a_waiting_send_is_released_by_a_sync_long_before_the_interval(
    lab: Lab, message: Make
) -> None:
    lab.change(flush={"disk_type": SYNC_FLUSH, "log_interval_ms": 3_600_000})
    store = lab.open()
    store.start()
    released = threading.Event()
    stored = store.put(message())
    store.watermarks.flushed.when(stored.end_offset, lambda _: released.set())
    assert released.wait(10)
    assert store.watermarks.flushed.value >= stored.end_offset


def test_one_sync_releases_everything_appended_before_it(lab: Lab, message: Make) -> None:
    store = lab.open()
    answers: list[bool] = []
    for _ in range(5):
        stored = store.put(message())
        store.watermarks.flushed.when(stored.end_offset, answers.append)
    assert answers == []
    store.flush()
    assert answers == [True] * 5
    assert store.flush_behind_bytes == store.dispatch_behind_bytes == 0


def test_the_flusher_sleeps_while_those_it_served_are_not_released_yet() -> None:
    synced = threading.Event()

    class Log:
        def sync_range(self, start: int, end: int) -> None:
            synced.set()

    class Wake(threading.Event):
        rests: ClassVar[list[float | None]] = []

        def wait(self, timeout: float | None = None) -> bool:
            if synced.is_set():
                self.rests.append(timeout)
            return super().wait(timeout)

    to_release: list[Callable[[], None]] = []
    marks = Watermarks(to_release.append)
    flusher = LogFlusher(
        cast(CommitLog, Log()), marks, FlushConfig(disk_type=SYNC_FLUSH), FakeClock(), pytest.fail
    )
    flusher._wake = Wake()
    marks.flushed.on_wait(flusher.wake)
    flusher.start()
    try:
        marks.appended.advance(100)
        marks.flushed.when(100, lambda _: None)
        assert wait_until(lambda: Wake.rests)[0]
    finally:
        flusher.stop()
    assert len(to_release) == 1


def test_what_is_appended_during_a_sync_is_not_promised_by_it(
    lab: Lab, message: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = lab.open()
    first = store.put(message())
    log = store._log
    sync_range = log.sync_range

    def append_meanwhile(start: int, end: int) -> None:
        sync_range(start, end)
        store.put(message())

    monkeypatch.setattr(log, "sync_range", append_meanwhile)
    store.flush()
    assert store.watermarks.flushed.value == first.end_offset < store.max_physical


def test_close_ends_every_thread(lab: Lab, message: Make) -> None:
    before = set(threading.enumerate())
    store = lab.open()
    store.start()
    for _ in range(20):
        store.put(message(b"x" * 1000))
    store.close()
    assert set(threading.enumerate()) == before


def test_a_clean_stop_leaves_no_file_that_was_made_ahead(lab: Lab, message: Make) -> None:
    store = lab.open()
    store.start()
    for _ in range(3):
        store.put(message(b"x" * 1000))
    store.close()
    assert [path.name for path in (lab.root / "commitlog").iterdir()] == [f"{0:020d}"]


def test_the_checkpoint_follows_what_was_synced(lab: Lab, message: Make) -> None:
    store = lab.open()
    store.put(message())
    lab.clock.ms += 7
    stored = store.put(message())
    assert store._checkpoint.marks.flushed_offset == 0
    store.flush()
    marks = store._checkpoint.marks
    assert marks.flushed_offset == marks.dispatched_offset == stored.end_offset
    assert marks.physical_ms == marks.logical_ms == lab.clock.ms
    assert marks.last_dispatched_record == stored.physical_offset


class SlowFiles(SystemFiles):
    """Makes files only when let go."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def create(self, path: str, size_bytes: int, **how: Any) -> File:
        assert self.go.wait(10)
        return super().create(path, size_bytes, **how)


def test_a_file_made_ahead_is_taken_over(tmp_path: Any) -> None:
    files = SlowFiles()
    following = NextFile(files, 4096, FakeClock())
    path = str(tmp_path / "next")
    following.ahead(path)
    following.ahead(path)
    files.go.set()
    taken = following.take(path)
    assert taken.path == path
    taken.close()
    following.discard()
    assert files.exists(path)


def test_a_file_nobody_takes_is_removed(tmp_path: Any) -> None:
    files = SystemFiles()
    following = NextFile(files, 4096, FakeClock())
    path = str(tmp_path / "next")
    following.ahead(path)
    following.discard()
    assert not files.exists(path)


def test_a_full_disk_is_tried_again_after_a_pause() -> None:
    clock = FakeClock()
    files = FaultyFiles(clock, total_bytes=1 << 20)
    files.set_free(0)
    following = NextFile(files, 8192, clock)
    with pytest.raises(DiskFull):
        following.take("/next")
    files.set_free(1 << 20)
    with pytest.raises(DiskFull):
        following.take("/next")
    clock.advance(1.0)
    assert following.take("/next").size_bytes == 8192


class TestWhenQueuesAreSynced:
    @pytest.fixture
    def store(self, lab: Lab) -> MessageStore:
        lab.change(queues={"file_bytes": 20 * 1000})
        opened: MessageStore = lab.open()
        opened.flush()
        return opened

    def is_due(self, store: MessageStore) -> bool:
        store._appender.write_out()
        return store._queue_flusher.is_due

    def test_two_pages_of_entries_are_worth_it(self, store: MessageStore, message: Make) -> None:
        for _ in range(409):
            store.put(message())
        assert not self.is_due(store)
        store.put(message())
        assert self.is_due(store)
        store.flush()
        assert not self.is_due(store)

    def test_as_many_in_a_hundred_queues_are_not(self, store: MessageStore, message: Make) -> None:
        for number in range(1000):
            store.put(message(queue_id=number % 100))
        assert not self.is_due(store)

    def test_but_not_for_ever(self, store: MessageStore, message: Make, lab: Lab) -> None:
        store.put(message())
        assert not self.is_due(store)
        lab.clock.ms += 60_000
        assert self.is_due(store)

    def test_and_recovery_must_not_take_too_long(
        self, store: MessageStore, message: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("cometmq.store.upkeep.flush.REDISPATCHED_BYTES_MAX", 1000)
        store.put(message())
        assert not self.is_due(store)
        store.put(message(b"x" * 1000))
        assert self.is_due(store)


@pytest.mark.parametrize("disk_type", [SYNC_FLUSH, ASYNC_FLUSH])
def test_the_checkpoint_soon_knows_what_was_acknowledged(
    lab: Lab, message: Make, disk_type: str
) -> None:
    """Too little for the queues to be flushed, but in SYNC_FLUSH each of these sends was answered."""
    lab.change(flush={"disk_type": disk_type})
    store = lab.open()
    for _ in range(3):
        stored = store.put(message())
    store._log_flusher.flush()
    assert not store._queue_flusher.is_due
    assert store._queue_flusher._round()
    marks = decode_marks((lab.root / "checkpoint").read_bytes())
    assert marks.flushed_offset == (stored.end_offset if disk_type == SYNC_FLUSH else 0)
    assert marks.dispatched_offset == 0
