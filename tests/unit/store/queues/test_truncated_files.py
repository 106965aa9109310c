"""Others can truncate the store's files while it runs: the process lives, answers what it can and mends the rest."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cometmq.model.messages.record import decode_records
from cometmq.store.log.new_messages import NewMessage
from cometmq.store.message_store import MessageStore

Lab = Any
Make = Callable[..., NewMessage]
ALL_TIME = (0, 1 << 62)

# In a process of its own: what must not happen is that it is killed.
UNDER_A_STORE = """
import os, sys
from pathlib import Path
from cometmq.base.clock import SystemClock
from cometmq.base.disk import SystemFiles
from cometmq.store.store_config import CommitLogConfig, StoreConfig
from cometmq.model.messages.record import decode_records
from cometmq.store.message_store import MessageStore
from cometmq.store.log.new_messages import NewMessage

def message(number):
    return NewMessage(topic="T", queue_id=0, body=b"x", properties=b"", keys=[f"k{number}"])

root = sys.argv[1]
config = StoreConfig(root=root, log=CommitLogConfig(file_bytes=1 << 20))
store = MessageStore(config, store_host=bytes(8), files=SystemFiles(), clock=SystemClock())
store.load()
for number in range(2000):
    store.put(message(number))
store.flush()
for path in Path(root, sys.argv[2]).rglob("*"):
    if path.is_file():
        os.truncate(path, int(sys.argv[3]))
store.query("T", "k7", 32, 0, 1 << 62)
store.get("T", 0, 5, 32)
store.min_offset("T", 0)
store.offset_by_time("T", 0, 1)
for number in range(2000, 4000):
    store.put(message(number))
store.query("T", "k3000", 32, 0, 1 << 62)
store.get("T", 0, 3000, 32)
store.close()
print("alive")
"""


@pytest.mark.parametrize("directory", ["index", "consumequeue"])
@pytest.mark.parametrize("length", [0, 10, 5000])
def test_a_store_whose_files_are_truncated_lives(
    tmp_path: Path, directory: str, length: int
) -> None:
    command = [sys.executable, "-c", UNDER_A_STORE, str(tmp_path), directory, str(length)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


def put(store: MessageStore, message: Make, numbers: range) -> None:
    for number in numbers:
        store.put(
            message(f"{number}", keys=[f"k{number}"], properties=f"KEYS\x01k{number}\x02".encode())
        )


def bodies(store: MessageStore) -> list[bytes]:
    """All of the queue, read as a consumer does."""
    gathered: list[bytes] = []
    offset = store.min_offset("T", 0)
    while offset < store.max_offset("T", 0):
        result = store.get("T", 0, offset, 32)
        assert result.next_offset > offset, result
        gathered += [record.body for part in result.parts for record in decode_records(part)]
        offset = result.next_offset
    return gathered


@pytest.mark.parametrize("length", [0, 30, 150])
@pytest.mark.parametrize("is_read", [False, True])
@pytest.mark.parametrize("ends_by_kill", [False, True])
def test_queues_that_were_truncated_lose_no_message(
    lab: Lab, message: Make, length: int, is_read: bool, ends_by_kill: bool
) -> None:
    store = lab.open()
    put(store, message, range(100))
    store.flush()
    paths = sorted(Path(lab.root, "consumequeue", "T", "0").iterdir())
    # The last but one and the last: whole files of 10 entries, and what the store writes to.
    for path in (paths[3], paths[-2], paths[-1]):
        with path.open("r+b") as file:
            file.truncate(length)
    expected = [f"{number}".encode() for number in range(130)]
    if is_read:
        assert bodies(store) == expected[:100]
    put(store, message, range(100, 130))
    if is_read:
        assert bodies(store) == expected
    store.flush()
    if ends_by_kill and is_read:
        lab = lab.crash()
    else:
        store.close()
    again = lab.open()
    assert bodies(again) == expected
    assert again.put(message("next")).queue_offset == 130


@pytest.mark.parametrize("is_read", [False, True])
def test_a_queue_file_that_was_removed_is_made_anew(lab: Lab, message: Make, is_read: bool) -> None:
    lab.change(queues={"open_files_max": 8})
    store = lab.open()
    put(store, message, range(100))
    store.flush()
    expected = bodies(store)
    paths = sorted(Path(lab.root, "consumequeue", "T", "0").iterdir())
    for path in (paths[0], paths[5]):
        path.unlink()
    if is_read:
        assert bodies(store) == expected
    put(store, message, range(100, 120))
    store.close()
    assert len(bodies(lab.open())) == 120


def found(store: MessageStore, number: int) -> bool:
    return len(store.query("T", f"k{number}", 32, *ALL_TIME).parts) == 1


@pytest.mark.parametrize("ends_by_kill", [False, True])
def test_an_index_that_was_truncated_is_made_anew_at_the_next_start(
    lab: Lab, message: Make, ends_by_kill: bool, caplog: pytest.LogCaptureFixture
) -> None:
    store = lab.open()
    put(store, message, range(250))
    store.flush()
    first, second, _ = sorted(Path(lab.root, "index").iterdir())
    with second.open("r+b") as file:
        file.truncate(100)
    assert found(store, 249)
    assert not found(store, 150)
    assert f"index lost from={second}" in caplog.text
    assert sorted(Path(lab.root, "index").iterdir()) == [first]
    put(store, message, range(250, 300))
    assert found(store, 20)
    assert not found(store, 260)
    store.flush()
    if ends_by_kill:
        lab = lab.crash()
    else:
        store.close()
    again = lab.open()
    assert [number for number in range(300) if not found(again, number)] == []


def test_a_truncated_index_that_nobody_asked_is_found_at_the_end(lab: Lab, message: Make) -> None:
    store = lab.open()
    put(store, message, range(250))
    store.flush()
    for path in Path(lab.root, "index").iterdir():
        with path.open("r+b") as file:
            file.truncate(7)
    store.close()
    again = lab.open()
    assert [number for number in range(250) if not found(again, number)] == []
