from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cometmq.model.names import SCHEDULE_TOPIC, TIMER_TOPIC
from cometmq.store.log.new_messages import NewMessage
from cometmq.store.message_store import MessageStore
from cometmq.store.read import hidden
from cometmq.store.read.bulk_reader import BulkLimits
from cometmq.store.read.hidden import HiddenGroup
from cometmq.store.read.read_results import GetStatus

Lab = Any
Make = Callable[..., NewMessage]
LIMITS = BulkLimits(max_bytes=1 << 20, max_count=100, scan_max=100)


class Listener:
    def __init__(self, store: MessageStore) -> None:
        self.told: list[tuple[str, int]] = []
        store.arrivals.append(self)

    def is_waiting_for(self, topics: list[str], queue_ids: list[int]) -> bool:
        return True

    def arrived(self, topic: str, queue_id: int, max_offset: int, *_: object) -> None:
        self.told.append((topic, max_offset))


@pytest.fixture
def store(lab: Lab) -> MessageStore:
    opened: MessageStore = lab.open()
    return opened


def seen(store: MessageStore, offset: int = 0) -> tuple[GetStatus, int, int]:
    """What a reader of all messages learns: status, count, where the queue ends."""
    found = store.get("T", 0, offset, 32)
    return found.status, found.count, found.max_offset


def test_what_is_hidden_is_in_no_answer_and_not_announced(
    lab: Lab, store: MessageStore, message: Make
) -> None:
    listener = Listener(store)
    store.put(message("shown", tags_code=5))
    store.hidden.is_on = True
    lab.clock.ms += 1000
    store.put(message("hidden", tags_code=5))
    assert listener.told == [("T", 1)]
    assert store.max_offset("T", 0) == 1
    assert seen(store) == (GetStatus.FOUND, 1, 1)
    assert store.get("T", 0, 0, 32, tags=lambda code: code == 5).count == 1
    assert seen(store, 1) == (GetStatus.OFFSET_OVERFLOW_ONE, 0, 1)
    assert store.get_bulk("T", 0, 0, 100, LIMITS).count == 1
    assert store.get_bulk("T", 0, 1, 100, LIMITS).status is GetStatus.OFFSET_OVERFLOW_ONE
    assert store.offset_by_time("T", 0, lab.clock.ms) == 1

    store.hidden.show_first()
    assert listener.told == [("T", 1), ("T", 2)]
    assert seen(store) == (GetStatus.FOUND, 2, 2)
    assert store.get_bulk("T", 0, 0, 100, LIMITS).count == 2
    assert store.hidden.first is None


def test_a_queue_of_which_all_is_hidden_waits_for_its_first(
    store: MessageStore, message: Make
) -> None:
    store.hidden.is_on = True
    store.put(message("hidden"))
    assert store.max_offset("T", 0) == 0
    assert seen(store) == (GetStatus.OFFSET_OVERFLOW_ONE, 0, 0)


def test_who_has_read_a_hidden_message_elsewhere_is_not_sent_back(
    store: MessageStore, message: Make
) -> None:
    store.hidden.is_on = True
    for _ in range(3):
        store.put(message("hidden"))
    found = store.get("T", 0, 2, 32)
    assert (found.status, found.next_offset) == (GetStatus.OFFSET_OVERFLOW_ONE, 2)
    assert store.get("T", 0, 4, 32).status is GetStatus.OFFSET_OVERFLOW_BADLY


def test_groups_are_shown_in_the_order_of_the_log(store: MessageStore, message: Make) -> None:
    store.hidden.is_on = True
    ends: list[int] = []
    store.hidden.on_hide = lambda group: ends.append(group.end_offset)
    first = store.put_all([message("1"), message("2", topic="U"), message("3")])
    second = store.put_all([message("4"), message("5", topic="V")])
    assert ends == [first[-1].end_offset, second[-1].end_offset]
    store.hidden.show_first()
    assert [store.max_offset(topic, 0) for topic in "TUV"] == [2, 1, 0]
    assert seen(store) == (GetStatus.FOUND, 2, 2)
    store.hidden.show_first()
    assert [store.max_offset(topic, 0) for topic in "TUV"] == [3, 1, 1]
    assert len(store.hidden) == 0


def test_what_the_broker_reads_itself_is_never_hidden(store: MessageStore, message: Make) -> None:
    listener = Listener(store)
    store.hidden.is_on = True
    store.put_all([message(topic=SCHEDULE_TOPIC), message(), message(topic=TIMER_TOPIC)])
    assert listener.told == [(SCHEDULE_TOPIC, 1), (TIMER_TOPIC, 1)]
    assert store.get(SCHEDULE_TOPIC, 0, 0, 32).count == 1
    assert store.max_offset("T", 0) == 0
    store.hidden.show_all()
    assert listener.told[2:] == [("T", 1)]


def test_of_too_many_only_the_places_are_kept(
    store: MessageStore, message: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hidden, "ANNOUNCED_MAX", 2)
    listener = Listener(store)
    store.hidden.is_on = True
    groups: list[HiddenGroup] = []
    store.hidden.on_hide = groups.append
    stored = [store.put(message(str(number))) for number in range(5)]
    assert groups[1] is groups[4]
    assert groups[4].end_offset == stored[4].end_offset
    store.hidden.show_first()
    assert store.max_offset("T", 0) == 1
    store.hidden.show_first()
    assert store.max_offset("T", 0) == 5
    assert listener.told == [("T", 1), ("T", 2)]
    assert store.hidden.first is None


def test_all_that_a_start_finds_is_shown(lab: Lab, store: MessageStore, message: Make) -> None:
    store.hidden.is_on = True
    store.put(message("hidden"))
    assert lab.crash().open().max_offset("T", 0) == 1


def test_after_a_cut_everything_left_is_shown(store: MessageStore, message: Make) -> None:
    store.hidden.is_on = True
    stored = [store.put(message("hidden")) for _ in range(2)]
    store.follow()
    store.cut_tail(stored[1].physical_offset)
    assert store.hidden.first is None
    assert store.max_offset("T", 0) == 1
    store.lead()
    store.put(message("hidden"))
    assert store.max_offset("T", 0) == 1


def test_who_leads_again_shows_what_it_hid_before_and_has_it_on_disk(
    store: MessageStore, message: Make
) -> None:
    store.hidden.is_on = True
    stored = store.put(message("hidden"))
    store.follow()
    assert store.max_offset("T", 0) == 0
    store.lead()
    assert store.max_offset("T", 0) == 1
    assert store.watermarks.flushed.value == stored.end_offset


def test_a_topic_may_be_deleted_while_its_messages_are_hidden(
    store: MessageStore, message: Make
) -> None:
    store.hidden.is_on = True
    store.put(message("old"))
    store.delete_topic("T")
    store.put(message("new"))
    store.hidden.show_first()
    assert store.max_offset("T", 0) == 0
    store.hidden.show_first()
    assert store.max_offset("T", 0) == 1
