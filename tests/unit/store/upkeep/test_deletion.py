from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from cometmq.store.log.new_messages import NewMessage
from cometmq.store.message_store import MessageStore
from cometmq.store.read.read_results import GetStatus

Lab = Any
Make = Callable[..., NewMessage]
DAY_MS = 86_400_000


def fill(lab: Lab, message: Make) -> MessageStore:
    """A queue over 6 log files, an old one that has only expired messages, and all of it four days old."""
    store: MessageStore = lab.open()
    store.put(message(topic="Old"))
    for number in range(40):
        key = f"k{number}"
        properties = f"KEYS\x01{key}\x02".encode()
        store.put(message(b"x" * 500, properties=properties, keys=[key, f"{key}-2", f"{key}-3"]))
    store.flush()
    four_days_ago = (lab.clock.ms - 4 * DAY_MS) / 1000
    for path in (lab.root / "commitlog").iterdir():
        os.utime(path, (four_days_ago, four_days_ago))
    return store


def test_expired_files_go_on_request_and_what_pointed_to_them_follows(
    lab: Lab, message: Make
) -> None:
    lab.change(retention={"delete_when": ""})
    store = fill(lab, message)
    files = len(list((lab.root / "commitlog").iterdir()))
    store.maintain()
    assert store.min_physical == 0
    store.delete_expired_files()
    store.maintain()
    assert [path.name for path in (lab.root / "commitlog").iterdir()] == [
        f"{(files - 1) * 4096:020d}"
    ]
    first = store.min_offset("T", 0)
    assert 0 < first < 40
    assert store.get("T", 0, 0, 1).status is GetStatus.OFFSET_TOO_SMALL
    assert store.get("T", 0, first, 32).count > 0
    queue_files = sorted((lab.root / "consumequeue" / "T" / "0").iterdir())
    assert int(queue_files[0].name) // 20 <= first < int(queue_files[0].name) // 20 + 10
    assert store.query("T", "k0", 32, 0, 1 << 62).parts == []
    assert len(store.query("T", "k39", 32, 0, 1 << 62).parts) == 1
    assert store.record_at(0) is None
    store.clean_expired_queues()
    assert store.topics() == ["T"]
    store.close()
    again = lab.open()
    assert (again.min_offset("T", 0), again.max_offset("T", 0)) == (first, 40)


def test_files_that_are_not_flushed_stay(lab: Lab, message: Make) -> None:
    lab.change(retention={"delete_when": ""})
    store = lab.open()
    for _ in range(20):
        store.put(message(b"x" * 1000))
    four_days_ago = (lab.clock.ms - 4 * DAY_MS) / 1000
    for path in (lab.root / "commitlog").iterdir():
        os.utime(path, (four_days_ago, four_days_ago))
    store.delete_expired_files()
    store.maintain()
    assert store.min_physical == 0
    store.flush()
    store.maintain()
    assert store.min_physical > 0


def test_a_reader_of_a_deleted_file_is_told_where_to_go_on(lab: Lab, message: Make) -> None:
    """Entries are read before the files go: their records are then missing, not the entries."""
    lab.change(retention={"delete_when": ""})
    store = fill(lab, message)
    held = store.get("T", 0, 0, 2)
    store.delete_expired_files()
    store.maintain()
    # A view that is on its way to a consumer stays valid although its file is gone.
    assert bytes(held.parts[0]).count(b"x" * 500) == 2


def test_files_go_in_the_background_of_a_started_store(lab: Lab, message: Make) -> None:
    lab.change(retention={"delete_when": "", "delete_interval_ms": 0})
    store = fill(lab, message)
    store.start()
    store.delete_expired_files()
    store.maintain()
    assert store.min_physical > 0
    store.close()
    assert len(list((lab.root / "commitlog").iterdir())) == 1
