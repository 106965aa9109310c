"""The extended consume queue as a store keeps it: what is written, found again, lost, made anew and deleted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cometmq.base.errors import CorruptFile
from cometmq.model.address import pack_host
from cometmq.model.java_hash import java_hash
from cometmq.model.names import SCHEDULE_TOPIC
from cometmq.store.files.queue_entry import ENTRY
from cometmq.store.log.new_messages import NewMessage
from cometmq.store.message_store import MessageStore
from cometmq.store.queues.extended_queue import Unit, decode_unit, offset_of
from cometmq.store.read.bulk_reader import BulkLimits
from cometmq.store.read.read_results import GetStatus

Lab = Any
RED = "TAGS\x01red\x02"
HOST = pack_host("127.0.0.1", 10911)


class Extended:
    """A store with bits that the test decides on."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        lab.change(queues={"extended": True, "extended_file_bytes": 100})
        self.bits: Callable[[str, str], bytes] = lambda topic, properties: b"\x05\x00"
        self.store = self._open()

    def _open(self) -> MessageStore:
        lab = self.lab
        store = MessageStore(
            lab.config,
            store_host=HOST,
            files=lab.files,
            clock=lab.clock,
            filter_bits=lambda topic, properties: self.bits(topic, properties),
        )
        store.load()
        lab.open_stores.append(store)
        return store

    def reopen(self) -> MessageStore:
        self.store.close()
        self.store = self._open()
        return self.store

    def put(self, count: int, properties: str = RED, topic: str = "T", queue_id: int = 0) -> None:
        for _ in range(count):
            self.store.put(message(properties, topic, queue_id))

    @property
    def root(self) -> Path:
        return Path(self.lab.root)

    def raw_codes(self, topic: str = "T", queue_id: int = 0) -> list[int]:
        """What the files of a queue hold, entry by entry."""
        self.store.flush()
        directory = self.root / "consumequeue" / topic / str(queue_id)
        data = b"".join(path.read_bytes() for path in sorted(directory.iterdir()))
        return [code for _, size, code in ENTRY.iter_unpack(data) if size]

    def unit_files(self, topic: str = "T") -> list[str]:
        directory = self.root / "consumequeue_ext" / topic
        return sorted(str(path.relative_to(directory)) for path in directory.glob("*/*"))


def message(properties: str = RED, topic: str = "T", queue_id: int = 0) -> NewMessage:
    tag = "red" if properties.startswith(RED) else ""
    return NewMessage(
        topic=topic,
        queue_id=queue_id,
        body=b"x" * 100,
        properties=properties.encode(),
        tags_code=java_hash(tag) if tag else 0,
    )


@pytest.fixture
def extended(lab: Lab) -> Extended:
    return Extended(lab)


def test_entries_point_to_units_that_hold_tag_time_and_bits(extended: Extended) -> None:
    extended.put(5)
    codes = extended.raw_codes()
    # 22 bytes each, and 100 take four of them with 4 left free behind.
    assert [offset_of(code) for code in codes] == [0, 22, 44, 66, 100]
    directory = extended.root / "consumequeue_ext" / "T" / "0"
    first = (directory / f"{0:020d}").read_bytes()
    assert len(first) == 100
    now = extended.lab.clock.ms
    assert decode_unit(first, 22) == Unit(java_hash("red"), now, b"\x05\x00")
    assert first[88:] == b"\xff\xff" + bytes(10)
    assert (directory / f"{100:020d}").read_bytes()[22:] == bytes(78)


def test_readers_see_the_tag(extended: Extended) -> None:
    extended.put(3)
    extended.put(2, "a\x011\x02")
    store = extended.store
    for _ in range(2):
        codes = [code for _, _, code in store.entries("T", 0, 0, 10)]
        assert codes == [java_hash("red")] * 3 + [0] * 2
        found = store.get("T", 0, 0, 10, tags=lambda code: code == java_hash("red"))
        assert (found.count, found.next_offset) == (3, 5)
        found = store.get("T", 0, 0, 10, tags=lambda code: code == 0)
        assert found.count == 2
        bulk = store.get_bulk("T", 0, 0, 5, BulkLimits(10_000, 10, 10), tags=lambda code: code == 0)
        assert bulk.count == 2
        store.flush()  # The second time from the files.


def test_a_batch_has_units(extended: Extended) -> None:
    extended.store.put_all([message(), message("")])
    extended.store.put_all([message(), message("", queue_id=1)])
    assert [unit.tags_code for unit in extended.store.units("T", 0, 0, 9) if unit] == [
        java_hash("red"),
        0,
        java_hash("red"),
    ]
    assert len(extended.store.units("T", 1, 0, 9)) == 1


def test_a_unit_rules_a_record_out_before_it_is_looked_at(extended: Extended) -> None:
    extended.bits = lambda topic, properties: b"\x01" if "yes" in properties else b"\x00"
    for word in ("yes", "no", "yes", "no"):
        extended.put(1, f"a\x01{word}\x02")
    looked_at: list[bytes] = []

    def record(view: memoryview) -> bool:
        looked_at.append(bytes(view))
        return True

    def unit(store_timestamp: int, bits: bytes) -> bool:
        assert store_timestamp == extended.lab.clock.ms
        return bits == b"\x01"

    found = extended.store.get("T", 0, 0, 10, record=record, unit=unit)
    assert (found.count, found.next_offset, len(looked_at)) == (2, 4, 2)
    bulk = extended.store.get_bulk(
        "T", 0, 0, 4, BulkLimits(10_000, 10, 10), record=record, unit=unit
    )
    assert (bulk.count, len(looked_at)) == (2, 4)
    none = extended.store.get("T", 0, 1, 10, record=record, unit=lambda time, bits: False)
    assert (none.status, none.next_offset) == (GetStatus.NO_MATCHED_MESSAGE, 4)


def test_a_delayed_message_keeps_its_time(extended: Extended) -> None:
    extended.put(2, "DELAY\x013\x02", SCHEDULE_TOPIC, 2)
    due = extended.lab.clock.ms + 10_000
    assert [code for _, _, code in extended.store.entries(SCHEDULE_TOPIC, 2, 0, 9)] == [due, due]
    # With the setting off again: from the record.
    extended.lab.change(queues={"extended": False})
    extended.reopen()
    assert [code for _, _, code in extended.store.entries(SCHEDULE_TOPIC, 2, 0, 9)] == [due, due]
    assert extended.store.units(SCHEDULE_TOPIC, 2, 0, 9) == [None, None]


def test_half_messages_have_no_unit(extended: Extended) -> None:
    extended.store.put(NewMessage(topic="T", queue_id=0, body=b"", properties=b"", sys_flag=4))
    extended.put(1)
    assert len(extended.raw_codes()) == 1
    assert extended.unit_files() == [f"0/{0:020d}"]


def test_units_go_on_after_a_restart(extended: Extended) -> None:
    extended.put(5)
    extended.reopen()
    extended.put(2)
    assert [offset_of(code) for code in extended.raw_codes()] == [0, 22, 44, 66, 100, 122, 144]
    assert all(extended.store.units("T", 0, 0, 9))


def test_what_is_behind_the_last_unit_is_wiped(extended: Extended) -> None:
    extended.put(5)
    extended.store.close()
    directory = extended.root / "consumequeue_ext" / "T" / "0"
    last = directory / f"{100:020d}"
    last.write_bytes(last.read_bytes()[:22].ljust(60, b"\x7f").ljust(100, b"\0"))
    (directory / f"{200:020d}").write_bytes(bytes(100))
    extended.reopen()
    assert last.read_bytes()[22:] == bytes(78)
    assert len(extended.unit_files()) == 2


@pytest.mark.parametrize("is_clean", [True, False])
def test_lost_units_are_made_again(
    extended: Extended, is_clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    extended.put(12)
    extended.put(3, topic="Other")
    before = extended.store.units("T", 0, 0, 20)
    extended.store.close()
    shutil.rmtree(extended.root / "consumequeue_ext" / "T")
    if not is_clean:
        (extended.root / "abort").write_text("")
    extended.reopen()
    assert extended.store.units("T", 0, 0, 20) == before
    assert extended.store.get("T", 0, 0, 32).count == 12
    assert extended.store.max_offset("Other", 0) == 3
    if is_clean:  # Else all queues are made again anyway: the log is that short.
        assert "units lost topic=T queue=0" in caplog.text
    caplog.clear()
    extended.reopen()
    assert "units lost" not in caplog.text


def test_a_kill_while_lost_units_are_made_again_loses_no_message(
    extended: Extended, monkeypatch: pytest.MonkeyPatch
) -> None:
    extended.put(12)
    # More of the log than a start looks at.
    for _ in range(9):
        extended.put(30, topic="Other")
    extended.store.close()
    shutil.rmtree(extended.root / "consumequeue_ext" / "T")
    with monkeypatch.context() as patch:
        patch.setattr("cometmq.store.recovery.log_follower.Follower.feed", _killed)
        with pytest.raises(KeyboardInterrupt):
            extended.reopen()
    assert not (extended.root / "consumequeue" / "T" / "0").exists()
    extended.store = extended._open()
    assert extended.store.get("T", 0, 0, 32).count == 12
    assert all(extended.store.units("T", 0, 0, 20))


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_lost_unit_in_the_middle_is_made_up_for_by_the_record(extended: Extended) -> None:
    extended.put(12)
    extended.store.flush()
    path = extended.root / "consumequeue_ext" / "T" / "0" / f"{100:020d}"
    path.write_bytes(bytes(100))
    units = extended.store.units("T", 0, 0, 20)
    assert [unit is None for unit in units] == [False] * 4 + [True] * 4 + [False] * 4
    assert {code for _, _, code in extended.store.entries("T", 0, 0, 20)} == {java_hash("red")}
    # To be judged by the record, or by the client.
    found = extended.store.get("T", 0, 0, 32, tags=lambda code: False, unit=lambda *_: False)
    assert found.count == 4


def test_messages_stored_while_it_was_off_have_no_unit(extended: Extended) -> None:
    extended.put(3)
    extended.lab.change(queues={"extended": False})
    extended.reopen()
    extended.put(3)
    found = extended.store.get("T", 0, 0, 32, tags=lambda code: False)
    # The client looks at the tags of those whose unit nobody reads.
    assert found.count == 3
    extended.lab.change(queues={"extended": True})
    extended.reopen()
    extended.put(1)
    units = extended.store.units("T", 0, 0, 9)
    assert [unit is not None for unit in units] == [True] * 3 + [False] * 3 + [True]
    assert {code for _, _, code in extended.store.entries("T", 0, 0, 9)} == {java_hash("red")}
    assert extended.raw_codes()[3:6] == [java_hash("red")] * 3


def test_files_removed_while_it_was_off_are_not_mixed_up_with_new_ones(extended: Extended) -> None:
    extended.put(3)
    extended.lab.change(queues={"extended": False})
    extended.reopen()
    extended.put(3)
    shutil.rmtree(extended.root / "consumequeue_ext")
    extended.lab.change(queues={"extended": True})
    extended.reopen()
    extended.put(1)
    assert all(extended.store.units("T", 0, 0, 9))


def test_units_without_any_entry_are_removed(extended: Extended) -> None:
    extended.put(3)
    extended.put(3, topic="Gone")
    extended.store.close()
    shutil.rmtree(extended.root / "consumequeue")
    shutil.rmtree(extended.root / "commitlog")
    (extended.root / "checkpoint").unlink()
    extended.reopen()
    assert extended.unit_files() == []
    extended.put(1)
    assert [offset_of(code) for code in extended.raw_codes()] == [0]


def test_a_deleted_topic_takes_its_units_along(extended: Extended) -> None:
    extended.put(3)
    extended.put(3, topic="Other")
    extended.store.flush()
    extended.store.delete_topic("T")
    assert not (extended.root / "consumequeue_ext" / "T").exists()
    assert all(extended.store.units("Other", 0, 0, 9))
    extended.put(1)
    assert [offset_of(code) for code in extended.raw_codes()] == [0]


def test_expired_messages_take_their_units_along(extended: Extended) -> None:
    extended.put(40)
    extended.store.flush()
    assert len(extended.unit_files()) == 10
    for path in (extended.root / "commitlog").iterdir():
        os.utime(path, (0, 0))
    extended.store.delete_expired_files()
    extended.store.maintain()
    first = extended.store.min_offset("T", 0)
    assert first > 8
    # The file of the oldest message stays, and those before it are gone.
    assert len(extended.unit_files()) == 10 - first // 4
    assert all(extended.store.units("T", 0, first, 99))
    extended.reopen()
    assert all(extended.store.units("T", 0, first, 99))


def test_a_failing_filter_keeps_no_message_out(
    extended: Extended, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(topic: str, properties: str) -> bytes:
        raise ZeroDivisionError

    extended.bits = fail
    extended.put(3)
    assert [unit.bits for unit in extended.store.units("T", 0, 0, 9) if unit] == [b""] * 3
    assert caplog.text.count("filter bits not calculated topic=T") == 1


def test_bits_that_no_file_takes_are_left_out(extended: Extended) -> None:
    extended.bits = lambda topic, properties: bytes(77)
    extended.put(1)
    extended.bits = lambda topic, properties: bytes(76)
    extended.put(1)
    assert [len(unit.bits) for unit in extended.store.units("T", 0, 0, 9) if unit] == [0, 76]


def test_a_file_of_another_size_is_refused(extended: Extended) -> None:
    extended.put(5)
    extended.store.close()
    extended.lab.change(queues={"extended_file_bytes": 128})
    with pytest.raises(CorruptFile, match="mappedFileSizeConsumeQueueExt"):
        extended.reopen()


@pytest.mark.parametrize("name", ["T/x", "T/0/foreign", "a b/0", "T/0/72057594037927900"])
def test_a_foreign_file_is_refused(extended: Extended, name: str) -> None:
    extended.put(1)
    extended.store.close()
    path = extended.root / "consumequeue_ext" / name
    if name.endswith("00"):
        shutil.rmtree(path.parent)
        path = path.with_name(f"{72057594037928000:020d}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(100))
    with pytest.raises(CorruptFile, match="elsewhere"):
        extended.reopen()


def test_a_file_without_its_length_counts_as_lost_after_a_crash(extended: Extended) -> None:
    extended.put(5)
    extended.store.close()
    (extended.root / "consumequeue_ext" / "T" / "0" / f"{100:020d}").write_bytes(b"")
    (extended.root / "abort").write_text("")
    extended.reopen()
    assert all(extended.store.units("T", 0, 0, 9))
    assert extended.store.get("T", 0, 0, 32).count == 5


def test_without_the_setting_nothing_is_written(lab: Lab) -> None:
    store = lab.open()
    store.put(message())
    store.flush()
    assert not (Path(lab.root) / "consumequeue_ext").exists()
    assert store.entries("T", 0, 0, 1)[0][2] == java_hash("red")


def test_files_of_queues_and_units_are_open_within_one_limit(lab: Lab) -> None:
    lab.change(queues={"open_files_max": 8})
    extended = Extended(lab)
    for topic in range(12):
        extended.put(8, topic=f"T{topic}")
    extended.store.flush()
    for topic in range(12):
        found = extended.store.get(f"T{topic}", 0, 0, 32, tags=lambda code: True)
        assert found.count == 8
    open_paths = [os.path.realpath(path) for path in Path("/proc/self/fd").iterdir()]
    of_queues = [path for path in open_paths if path.startswith(f"{lab.root}/consumequeue")]
    assert 0 < len(of_queues) <= 8, of_queues
