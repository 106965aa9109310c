"""The timer index: whatever is added comes out in order, once, from memory or from its files."""

from __future__ import annotations

from random import Random

import pytest

from cometmq.store.timer.bucket_files import SEGMENT_ENTRIES, BucketFiles
from cometmq.store.timer.entry import ENTRY_BYTES, Position, sort_key, wake_of
from cometmq.store.timer.waiting import BUCKET_MS, LEAD_MS, RECALL_KEEP_MS, Waiting
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles

NOW = 1_700_000_100_000
DIRECTORY = "/store/timer"


@pytest.fixture
def files() -> FaultyFiles:
    found = FaultyFiles(FakeClock(NOW))
    found.make_directory(DIRECTORY)
    return found


@pytest.fixture
def buckets(files: FaultyFiles) -> BucketFiles:
    return BucketFiles(DIRECTORY, files)


def take(waiting: Waiting, now_ms: int) -> list[Position]:
    """All that is due."""
    while waiting.approach(now_ms):
        pass
    found = []
    while (entry := waiting.due(now_ms)) is not None:
        waiting.finish(entry)
        found.append(entry)
    return found


def save(waiting: Waiting, buckets: BucketFiles) -> dict[int, int]:
    counts = waiting.counts()
    changes = waiting.changes()
    for change in changes:
        buckets.write(*change)
    buckets.sync()
    waiting.written(changes)
    return counts


def message(wake_ms: int, place: int) -> Position:
    return sort_key(wake_ms, is_recall=False), place


def test_entries_come_at_their_time_and_in_order(buckets: BucketFiles) -> None:
    waiting = Waiting(buckets)
    waiting.add(NOW + 5, 1)
    waiting.add(NOW + 2, 2)
    waiting.add(NOW + 5, 3)
    waiting.add(NOW + 1, 4)
    assert take(waiting, NOW) == []
    assert waiting.next_wake_ms() == NOW + 1
    assert take(waiting, NOW + 1) == [message(NOW + 1, 4)]
    assert take(waiting, NOW + 4) == [message(NOW + 2, 2)]
    assert take(waiting, NOW + 9) == [message(NOW + 5, 1), message(NOW + 5, 3)]
    assert waiting.count == 0
    assert waiting.done == message(NOW + 5, 3)


def test_a_recall_comes_before_what_it_takes_back(buckets: BucketFiles) -> None:
    waiting = Waiting(buckets)
    waiting.add(NOW + 5, 1)
    waiting.add(NOW + 5, 2, is_recall=True)
    assert [place for _, place in take(waiting, NOW + 5)] == [2, 1]


def test_far_entries_are_in_files_only(buckets: BucketFiles) -> None:
    waiting = Waiting(buckets)
    for number in range(5000):
        waiting.add(NOW + 10 * BUCKET_MS + number, number)
    assert take(waiting, NOW) == []
    save(waiting, buckets)
    assert "0 near" in repr(waiting)
    assert waiting.changes() == []
    found = take(waiting, NOW + 11 * BUCKET_MS)
    assert [place for _, place in found] == list(range(5000))


def test_a_bucket_is_in_memory_before_its_time(buckets: BucketFiles) -> None:
    waiting = Waiting(buckets)
    wake = (NOW // BUCKET_MS + 3) * BUCKET_MS
    waiting.add(wake, 7)
    save(waiting, buckets)
    take(waiting, wake - LEAD_MS - 1)
    assert waiting.next_wake_ms() is None
    take(waiting, wake - LEAD_MS)
    assert waiting.next_wake_ms() == wake


def test_what_is_not_yet_read_holds_up_what_comes_after_it(buckets: BucketFiles) -> None:
    waiting = Waiting(buckets)
    wake = NOW + 10 * BUCKET_MS
    for number in range(10_000):
        waiting.add(wake + number % 7, number)
    save(waiting, buckets)
    assert waiting.approach(wake + 100), "there is more to read than one part"
    assert waiting.due(wake + 100) is None
    while waiting.approach(wake + 100):
        pass
    assert waiting.due(wake + 100) == message(wake, 0)


def test_the_clock_set_back_loses_nothing(buckets: BucketFiles) -> None:
    waiting = Waiting(buckets)
    waiting.add(NOW + 1000, 1)
    take(waiting, NOW + 1000)
    waiting.add(NOW, 2)
    assert take(waiting, NOW + 1001) == [message(NOW + 1001, 2)]


def test_a_restart_goes_on_behind_what_was_done(buckets: BucketFiles) -> None:
    waiting = Waiting(buckets)
    for number in range(100):
        waiting.add(NOW + number * 20_000, number)
    take(waiting, NOW + 39 * 20_000)
    counts = save(waiting, buckets)
    again = Waiting(buckets, counts, waiting.done)
    found = take(again, NOW + 100 * 20_000)
    assert [place for _, place in found] == list(range(40, 100))
    assert again.count == 0


def test_a_recall_that_was_done_is_seen_again_as_long_as_it_may_concern_somebody(
    buckets: BucketFiles,
) -> None:
    waiting = Waiting(buckets)
    waiting.add(NOW, 1, is_recall=True)
    waiting.add(NOW + RECALL_KEEP_MS, 2)
    waiting.add(NOW + RECALL_KEEP_MS, 3)
    take(waiting, NOW)
    again = Waiting(buckets, save(waiting, buckets), waiting.done)
    assert [place for _, place in take(again, NOW + RECALL_KEEP_MS)] == [1, 2, 3]
    assert wake_of(again.done[0]) == NOW + RECALL_KEEP_MS


def test_buckets_that_are_done_leave_no_files(buckets: BucketFiles, files: FaultyFiles) -> None:
    waiting = Waiting(buckets)
    for number in range(6):
        waiting.add(NOW + number * BUCKET_MS, number)
    save(waiting, buckets)
    assert len(files.names(DIRECTORY)) == 6
    take(waiting, NOW + 4 * BUCKET_MS)
    buckets.remove_all_but(save(waiting, buckets))
    assert len(files.names(DIRECTORY)) == 2


def test_a_bucket_of_several_segments(buckets: BucketFiles, files: FaultyFiles) -> None:
    waiting = Waiting(buckets)
    count = SEGMENT_ENTRIES + 10
    wake = NOW + 2 * BUCKET_MS
    for number in range(count - 20):
        waiting.add(wake, number)
    save(waiting, buckets)
    for number in range(count - 20, count):
        waiting.add(wake, number)
    counts = save(waiting, buckets)
    assert len(files.names(DIRECTORY)) == 2
    again = Waiting(BucketFiles(DIRECTORY, files), counts, waiting.done)
    assert again.oldest() == 0
    assert [place for _, place in take(again, wake)] == list(range(count))
    assert again.oldest() is None


def test_rubbish_behind_the_counts_is_overwritten(buckets: BucketFiles, files: FaultyFiles) -> None:
    bucket = NOW // BUCKET_MS
    buckets.write(bucket, 0, b"\xff" * 5 * ENTRY_BYTES)
    buckets.write(bucket + 1, 0, b"\xff" * ENTRY_BYTES)
    buckets.load({bucket: 0})
    assert files.names(DIRECTORY) == []
    waiting = Waiting(buckets)
    waiting.add(NOW, 1)
    save(waiting, buckets)
    assert take(waiting, NOW) == [message(NOW, 1)]


@pytest.mark.parametrize("seed", range(20))
def test_any_order_of_adds_saves_and_restarts(buckets: BucketFiles, seed: int) -> None:
    chance = Random(seed)
    waiting = Waiting(buckets)
    now = NOW
    added: dict[int, int] = {}
    taken: list[Position] = []
    for place in range(1000):
        wake = now + 1 + chance.choice([0, 5, 700, 50_000, BUCKET_MS, 3 * BUCKET_MS])
        waiting.add(wake, place)
        added[place] = wake
        if chance.random() < 0.1:
            now += chance.choice([1, 1000, 30_000, 2 * BUCKET_MS])
            found = take(waiting, now)
            assert all(wake_of(key) <= now for key, _ in found)
            taken += found
        if chance.random() < 0.05:
            counts = save(waiting, buckets)
            if chance.random() < 0.3:
                buckets.remove_all_but(counts)
                waiting = Waiting(buckets, counts, waiting.done)
    taken += take(waiting, now + 5 * BUCKET_MS)
    assert taken == sorted(taken)
    assert {place: wake_of(key) for key, place in taken} == added
    assert len(taken) == 1000
    assert waiting.count == 0
