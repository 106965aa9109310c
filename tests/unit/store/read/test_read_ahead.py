"""A read done ahead is the read that would have been done, or it is not given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cometmq.model.messages.record import decode_records
from cometmq.store.log.new_messages import NewMessage
from cometmq.store.message_store import MessageStore
from cometmq.store.queues.consume_queue import ConsumeQueue
from cometmq.store.read.read_ahead import Asked, ReadAhead
from cometmq.store.read.read_results import GetResult, GetStatus

Lab = Any
Make = Callable[..., NewMessage]


def bodies(found: GetResult) -> list[bytes]:
    return [record.body for part in found.parts for record in decode_records(part)]


class Ahead:
    """A store whose reads of the log are counted."""

    def __init__(self, store: MessageStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store = store
        self.views = 0
        view = store._log.view

        def counted(offset: int, size_bytes: int) -> memoryview | None:
            self.views += 1
            return view(offset, size_bytes)

        monkeypatch.setattr(store._log, "view", counted)

    def get(self, offset: int, *, is_ahead: bool) -> GetResult:
        before = self.views
        found = self.store.get("T", 0, offset, 4)
        assert (self.views == before) is is_ahead
        return found


@pytest.fixture
def ahead(lab: Lab, message: Make, monkeypatch: pytest.MonkeyPatch) -> Ahead:
    """Ten messages, with others between them."""
    store = lab.open()
    for number in range(10):
        store.put(message(f"{number}"))
        store.put(message("other", queue_id=1))
    return Ahead(store, monkeypatch)


def test_what_follows_is_read_ahead_and_given_once(ahead: Ahead) -> None:
    first = ahead.get(0, is_ahead=False)
    assert (first.next_offset, bodies(first)) == (4, [b"0", b"1", b"2", b"3"])
    ahead.store.read_ahead()
    second = ahead.get(4, is_ahead=True)
    assert bodies(second) == [b"4", b"5", b"6", b"7"]
    assert (second.status, second.count, second.next_offset) == (GetStatus.FOUND, 4, 8)
    assert second.size_bytes == sum(map(len, second.parts))
    assert bodies(ahead.get(4, is_ahead=False)) == bodies(second)


def test_the_bounds_are_those_of_the_moment_it_is_given(ahead: Ahead, message: Make) -> None:
    ahead.get(0, is_ahead=False)
    ahead.store.read_ahead()
    ahead.store.put(message("10"))
    assert ahead.get(4, is_ahead=True).max_offset == 11


def test_another_read_does_not_get_it(ahead: Ahead) -> None:
    ahead.get(0, is_ahead=False)
    ahead.store.read_ahead()
    assert bodies(ahead.get(5, is_ahead=False)) == [b"5", b"6", b"7", b"8"]
    assert bodies(ahead.store.get("T", 0, 4, 3)) == [b"4", b"5", b"6"]
    assert bodies(ahead.store.get("T", 1, 4, 4)) == [b"other"] * 4
    assert bodies(ahead.get(4, is_ahead=True)) == [b"4", b"5", b"6", b"7"]


def test_an_end_that_may_grow_is_not_read_ahead(ahead: Ahead) -> None:
    ahead.get(4, is_ahead=False)
    ahead.store.read_ahead()
    assert bodies(ahead.get(8, is_ahead=False)) == [b"8", b"9"]


def test_nothing_of_a_deleted_topic_is_left(ahead: Ahead, message: Make) -> None:
    ahead.get(0, is_ahead=False)
    ahead.store.read_ahead()
    ahead.store.delete_topic("T")
    assert ahead.store.get("T", 0, 4, 4).status is GetStatus.NO_MATCHED_LOGIC_QUEUE
    for number in range(8):
        ahead.store.put(message(f"new {number}"))
    assert bodies(ahead.get(4, is_ahead=False)) == [b"new 4", b"new 5", b"new 6", b"new 7"]


def test_a_read_that_was_expected_of_a_deleted_topic_is_not_done(ahead: Ahead) -> None:
    ahead.store.flush()  # so that the entries are in a file, and the file goes with the topic
    ahead.get(0, is_ahead=False)
    ahead.store.delete_topic("T")
    ahead.store.read_ahead()
    assert ahead.store.get("T", 0, 4, 4).status is GetStatus.NO_MATCHED_LOGIC_QUEUE


def test_other_limits_make_it_void(ahead: Ahead) -> None:
    ahead.get(0, is_ahead=False)
    ahead.store.read_ahead()
    ahead.store.apply(ahead.store.config)
    ahead.get(4, is_ahead=False)


def test_what_takes_more_care_is_not_kept() -> None:
    asked: Asked = (ConsumeQueue("T", 0, "/queue", 20), 4, 4, 1000)
    seen: list[Asked] = []
    ahead = ReadAhead(seen.append)
    ahead.run()
    ahead.expect(asked)
    ahead.run()
    ahead.run()
    assert seen == [asked]
    assert ahead.take(asked) is None
