"""Commits made at a slave, until its master has them."""

from __future__ import annotations

import pytest

from cometmq.broker.replication.metadata import stray_commits
from cometmq.broker.replication.metadata.stray_commits import Commit, Place, StrayCommits
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles


@pytest.fixture
def files() -> FaultyFiles:
    return FaultyFiles(FakeClock(), seed=0)


def loaded(files: FaultyFiles) -> StrayCommits:
    strays = StrayCommits("/config", files)
    strays.load()
    return strays


def save(strays: StrayCommits) -> None:
    write = strays.unsaved()
    assert write is not None
    write()


def everything(strays: StrayCommits) -> list[Commit]:
    return [commit for portion in strays.portions(2) for commit in portion]


def test_only_what_is_ahead_of_the_master_is_left(files: FaultyFiles) -> None:
    strays = loaded(files)
    for group, queue_id, offset in (
        ("behind", 0, 4),
        ("same", 0, 5),
        ("ahead", 0, 6),
        ("new", 1, 0),
    ):
        strays.note(group, "T", queue_id, offset)
    table = {f"T@{group}": {0: 5} for group in ("behind", "same", "ahead", "new")}
    ahead = strays.settle(everything(strays), table)
    assert ahead == [Commit(Place("ahead", "T", 0), 6), Commit(Place("new", "T", 1), 0)]
    assert everything(strays) == ahead


def test_a_commit_that_came_while_the_last_was_handed_over_stays(files: FaultyFiles) -> None:
    strays = loaded(files)
    strays.note("G", "T", 0, 5)
    (sent,) = strays.settle(everything(strays), {})
    strays.note("G", "T", 0, 6)
    strays.done(sent)
    assert everything(strays) == [Commit(Place("G", "T", 0), 6)]
    strays.done(everything(strays)[0])
    assert len(strays) == 0


def test_a_portion_is_as_of_now_and_not_of_when_the_first_was_asked_for(
    files: FaultyFiles,
) -> None:
    strays = loaded(files)
    for number in range(5):
        strays.note("G", "T", number, 1)
    portions = strays.portions(2)
    assert next(portions) == [Commit(Place("G", "T", number), 1) for number in (0, 1)]
    strays.note("G", "T", 2, 9)
    strays.done(Commit(Place("G", "T", 3), 1))
    strays.note("G", "T", 7, 1)
    assert next(portions) == [Commit(Place("G", "T", 2), 9)]
    assert list(portions) == [[Commit(Place("G", "T", 4), 1)]]


def test_a_commit_during_a_save_in_a_worker_is_saved_with_the_next(files: FaultyFiles) -> None:
    strays = loaded(files)
    strays.note("G", "T", 0, 5)
    write = strays.unsaved()
    assert write is not None
    strays.note("G", "T", 0, 6)
    write()
    assert everything(loaded(files)) == [Commit(Place("G", "T", 0), 5)]
    save(strays)
    assert everything(loaded(files)) == [Commit(Place("G", "T", 0), 6)]


def test_they_survive_a_restart(files: FaultyFiles) -> None:
    strays = loaded(files)
    strays.note("G", "T", 3, 7)
    save(strays)
    assert strays.unsaved() is None
    again = loaded(files)
    assert everything(again) == [Commit(Place("G", "T", 3), 7)]
    again.forget_all()
    save(again)
    assert len(loaded(files)) == 0


def test_there_are_only_so_many(
    files: FaultyFiles, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stray_commits, "COMMITS_MAX", 2)
    strays = loaded(files)
    for number in range(5):
        strays.note(f"G{number}", "T", 0, 1)
    strays.note("G0", "T", 0, 2)
    assert [commit.offset for commit in everything(strays)] == [2, 1]
    assert caplog.text.count("are not kept") == 1
