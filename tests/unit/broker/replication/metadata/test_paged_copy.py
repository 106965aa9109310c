"""Reading a table page by page: unchanged, in one piece, in several, and while it changes."""

from __future__ import annotations

import pytest

from cometmq.base.errors import RemoteProtocolError
from cometmq.broker.replication.metadata.paged_copy import (
    BEHIND_ALL,
    ENTRIES_MAX,
    RESTARTS_MAX,
    Page,
    PagedCopy,
    PageQuestion,
)
from cometmq.model.topic import DataVersion


def state(copy: PagedCopy[int]) -> tuple[PageQuestion | None, bool]:
    return copy.question, copy.is_unchanged


OLD, NEW, NEWER = (DataVersion(counter=number, timestamp=5) for number in (1, 2, 3))


def test_a_table_of_the_same_version_and_size_is_not_read() -> None:
    copy = PagedCopy[int](OLD, 3)
    assert copy.question == PageQuestion(BEHIND_ALL, OLD)
    copy.came(Page(OLD, {}, 3))
    assert state(copy) == (None, True)


def test_a_master_that_sends_all_at_once_may_send_what_the_slave_has() -> None:
    copy = PagedCopy[int](OLD, 2)
    copy.came(Page(OLD, {"a": 1, "b": 2}, None))
    assert state(copy) == (None, True)


def test_a_new_version_comes_at_once_or_in_pages() -> None:
    whole = PagedCopy[int](OLD, 9)
    whole.came(Page(NEW, {"a": 1, "b": 2}, None))
    assert (whole.question, whole.version, whole.entries) == (None, NEW, {"a": 1, "b": 2})
    paged = PagedCopy[int](OLD, 9)
    paged.came(Page(NEW, {"a": 1, "b": 2}, 3))
    assert paged.question == PageQuestion(2, NEW)
    paged.came(Page(NEW, {"c": 3}, 3))
    assert state(paged) == (None, False)
    assert paged.entries == {"a": 1, "b": 2, "c": 3}


def test_a_table_that_became_empty_is_a_change() -> None:
    copy = PagedCopy[int](OLD, 1)
    copy.came(Page(NEW, {}, 0))
    assert state(copy) == (None, False)
    assert copy.entries == {}


def test_the_same_version_with_another_number_of_entries_is_read() -> None:
    copy = PagedCopy[int](OLD, 1)
    copy.came(Page(OLD, {}, 2))
    assert copy.question == PageQuestion(0, OLD)
    copy.came(Page(OLD, {"a": 1, "b": 2}, 2))
    assert state(copy) == (None, False)
    assert len(copy.entries) == 2


def test_a_change_on_the_way_starts_anew_and_drops_what_was_read() -> None:
    copy = PagedCopy[int](OLD, 0)
    copy.came(Page(NEW, {"a": 1, "b": 2}, 4))
    copy.came(Page(NEWER, {"b": 2, "c": 3}, 3))
    assert copy.question == PageQuestion(2, NEWER)
    copy.came(Page(NEWER, {"d": 4}, 3))
    assert (copy.version, copy.entries) == (NEWER, {"b": 2, "c": 3, "d": 4})


def test_a_table_that_changes_all_the_time_waits_for_the_next_round() -> None:
    copy = PagedCopy[int](OLD, 0)
    for number in range(RESTARTS_MAX):
        copy.came(Page(DataVersion(counter=10 + number), {"a": 1}, 2))
    with pytest.raises(RemoteProtocolError, match="changed 6 times"):
        copy.came(Page(NEWER, {"a": 1}, 2))


@pytest.mark.parametrize("total", [-1, ENTRIES_MAX + 1])
def test_a_table_of_an_impossible_size_is_refused(total: int) -> None:
    with pytest.raises(RemoteProtocolError, match=str(total)):
        PagedCopy[int](OLD, 0).came(Page(NEW, {"a": 1}, total))


def test_a_table_that_ends_early_is_refused() -> None:
    copy = PagedCopy[int](OLD, 0)
    copy.came(Page(NEW, {"a": 1}, 2))
    with pytest.raises(RemoteProtocolError, match="2 entries ends after 1"):
        copy.came(Page(NEW, {}, 2))
