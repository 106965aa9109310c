"""Reading everything goes by stretches of the log; it must give what looking at every entry gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cometmq.store.log.new_messages import NewMessage
from cometmq.store.message_store import MessageStore
from cometmq.store.read.bulk_reader import BulkLimits, BulkResult

Lab = Any
Make = Callable[..., NewMessage]


def read(store: MessageStore, offset: int, max_bytes: int, *, one_by_one: bool) -> BulkResult:
    limits = BulkLimits(max_bytes=max_bytes, max_count=50, scan_max=50)
    look = (lambda view: True) if one_by_one else None
    return store.get_bulk("T", 0, offset, 1000, limits, record=look)


def what(result: BulkResult) -> tuple[Any, ...]:
    content = b"".join(result.parts)
    return result.status, result.next_offset, result.count, result.size_bytes, result.sizes, content


@pytest.fixture
def store(lab: Lab, message: Make) -> MessageStore:
    """Stretches of several records and of one, over more than one file."""
    opened: MessageStore = lab.open()
    for number in range(60):
        opened.put(message(body=b"%03d" % number * (1 + number % 7), queue_id=number // 5 % 2))
        if number % 3 == 0:
            opened.put(message(body=b"x", topic="Other"))
    return opened


@pytest.mark.parametrize("max_bytes", [1, 300, 1000, 3000, 100_000])
def test_all_of_a_queue_is_what_its_entries_say(store: MessageStore, max_bytes: int) -> None:
    count = 0
    for offset in range(store.max_offset("T", 0)):
        found = read(store, offset, max_bytes, one_by_one=False)
        assert what(found) == what(read(store, offset, max_bytes, one_by_one=True))
        assert found.size_bytes <= max_bytes or found.count == 1
        count += found.count
    assert count >= store.max_offset("T", 0) > 20


def test_neighbours_in_the_log_are_one_part(lab: Lab, message: Make) -> None:
    store = lab.open()
    for _ in range(4):
        store.put(message())
    assert len(read(store, 0, 10_000, one_by_one=False).parts) == 1
    store.put(message(topic="Other"))
    store.put(message())
    assert len(read(store, 0, 10_000, one_by_one=False).parts) == 2


@pytest.mark.parametrize("max_bytes", [100_000, 150_000, 1 << 20])
def test_sizes_are_added_up_over_many_entries(lab: Lab, message: Make, max_bytes: int) -> None:
    """More than are looked at in one step."""
    lab.change(queues={"file_bytes": 100_000}, log={"file_bytes": 1 << 20})
    store = lab.open()
    for number in range(2500):
        store.put(message(body=b"x" * (number % 3)))
    limits = BulkLimits(max_bytes=max_bytes, max_count=10_000, scan_max=10_000)
    found = store.get_bulk("T", 0, 0, 10_000, limits)
    look = store.get_bulk("T", 0, 0, 10_000, limits, record=lambda view: True)
    assert what(found) == what(look)
    assert found.count == 2500 or found.size_bytes > max_bytes - 200
