"""The list of deleted topics: durable before anything is deleted, and never more than was."""

from __future__ import annotations

import pytest

from cometmq.base.errors import CorruptFile, DiskFull
from cometmq.store.queues.deleted_topics import DeletedTopics
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles, Outage

PATH = "/deletedTopics.json"


@pytest.fixture
def files() -> FaultyFiles:
    return FaultyFiles(FakeClock())


def loaded(files: FaultyFiles) -> DeletedTopics:
    deleted = DeletedTopics(PATH, "/", files)
    deleted.load()
    return deleted


def test_what_was_noted_survives_a_power_loss(files: FaultyFiles) -> None:
    loaded(files).note(["A", "B"], 100)
    files.restart(Outage.POWER_LOSS)
    assert loaded(files).by_topic_bytes() == {b"A": 100, b"B": 100}


def test_a_deletion_that_failed_is_not_saved_with_the_next(files: FaultyFiles) -> None:
    deleted = loaded(files)
    files.set_free(0)
    with pytest.raises(DiskFull):
        deleted.note(["alive"], 100)
    files.set_free(1 << 20)
    deleted.note(["gone"], 200)
    assert deleted.by_topic_bytes() == loaded(files).by_topic_bytes() == {b"gone": 200}


def test_what_left_the_log_is_forgotten(files: FaultyFiles) -> None:
    deleted = loaded(files)
    deleted.note(["A"], 100)
    deleted.note(["B"], 200)
    deleted.prune(100, 300)
    assert loaded(files).by_topic_bytes() == {b"B": 200}
    deleted.prune(200, 300)
    assert not files.exists(PATH)
    assert not deleted


def test_a_log_file_is_gone_for_good_before_its_topics_are_forgotten() -> None:
    for seed in range(20):
        files = FaultyFiles(FakeClock(), seed=seed)
        files.create("/00000000000000000000", 100, allocate=True)
        deleted = loaded(files)
        deleted.note(["A"], 100)
        files.remove("/00000000000000000000")
        deleted.prune(100, 200)
        files.restart(Outage.POWER_LOSS)
        assert not files.exists("/00000000000000000000")


def test_a_log_that_lost_its_tail_takes_the_mark_with_it(files: FaultyFiles) -> None:
    deleted = loaded(files)
    deleted.note(["A"], 100)
    deleted.prune(0, 60)
    assert loaded(files).by_topic_bytes() == {b"A": 60}


def test_a_store_may_have_no_log_yet(files: FaultyFiles) -> None:
    deleted = DeletedTopics(PATH, "/commitlog", files)
    deleted.note(["A"], 0)
    deleted.prune(0, 0)
    assert not deleted


def test_a_foreign_file_is_refused(files: FaultyFiles) -> None:
    files.replace(PATH, b"[1]")
    with pytest.raises(CorruptFile, match="deletedTopics"):
        loaded(files)
    assert files.read(PATH) == b"[1]"
