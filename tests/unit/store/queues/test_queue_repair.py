"""Queue entries that were damaged on the disk are found by what the log says, mended from it, and told of."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cometmq.model.java_hash import java_hash
from cometmq.model.messages.record import decode_records
from cometmq.store.files.queue_entry import ENTRY, ENTRY_BYTES, FILLER
from cometmq.store.log.new_messages import NewMessage
from cometmq.store.message_store import MessageStore
from cometmq.store.queues.queue_repair import QueueRepair
from cometmq.store.read.bulk_reader import BulkLimits
from cometmq.store.read.read_results import GetStatus

Lab = Any
Make = Callable[..., NewMessage]
COUNT = 60
RED = b"TAGS\x01red\x02"


class Queues:
    """Two topics of two queues each, in lockstep, so that a wrong place may well be that of another record."""

    def __init__(self, lab: Lab, message: Make) -> None:
        self.lab = lab
        # All of a queue in one file; and the start checks none, so that reading has to.
        lab.change(log={"file_bytes": 1 << 16}, queues={"file_bytes": 20 * COUNT})
        store = lab.open()
        for number in range(COUNT):
            for topic in ("T", "U"):
                for queue_id in (0, 1):
                    # 128 bytes each: a flipped bit of an offset leads to another record.
                    body = f"{topic}{queue_id}-{number}".ljust(27)
                    store.put(
                        message(
                            body,
                            topic=topic,
                            queue_id=queue_id,
                            properties=RED,
                            tags_code=java_hash("red"),
                        )
                    )
        assert store.entries("T", 0, 1, 1)[0][1] == 128
        store.close()
        self.path = Path(lab.root, "consumequeue", "T", "0", f"{0:020d}")
        self.sound = self.path.read_bytes()

    def damage(self, position: int, data: bytes) -> None:
        raw = bytearray(self.path.read_bytes())
        raw[position : position + len(data)] = data
        self.path.write_bytes(raw)

    def flip(self, position: int, bit: int) -> None:
        self.damage(position, bytes((self.path.read_bytes()[position] ^ 1 << bit,)))

    @property
    def is_sound(self) -> bool:
        return self.path.read_bytes() == self.sound


@pytest.fixture
def queues(lab: Lab, message: Make, monkeypatch: pytest.MonkeyPatch) -> Queues:
    monkeypatch.setattr(QueueRepair, "check_newest", lambda self, log_bytes: None)
    return Queues(lab, message)


def pulled(store: MessageStore, **options: Any) -> list[str]:
    """All of T/0, as a consumer reads it."""
    bodies: list[str] = []
    offset = tries = 0
    while offset < store.max_offset("T", 0):
        found = store.get("T", 0, offset, 32, **options)
        assert found.next_offset > offset or tries < 100, found
        tries += 1
        offset = found.next_offset
        records = [record for part in found.parts for record in decode_records(part)]
        assert all(record.topic == "T" for record in records)
        bodies += [record.body.decode().strip() for record in records]
    return bodies


def bulk(store: MessageStore) -> list[str]:
    bodies: list[str] = []
    offset = 0
    limits = BulkLimits(max_bytes=1 << 20, max_count=1000, scan_max=1000)
    while offset < store.max_offset("T", 0):
        found = store.get_bulk("T", 0, offset, COUNT, limits)
        assert found.next_offset > offset, found
        offset = found.next_offset
        bodies += [
            record.body.decode().strip() for part in found.parts for record in decode_records(part)
        ]
    return bodies


EXPECTED = [f"T0-{number}" for number in range(COUNT)]


@pytest.mark.parametrize("position", range(12))
def test_any_flipped_bit_of_offset_or_size_is_mended_on_read(
    queues: Queues, position: int, caplog: pytest.LogCaptureFixture
) -> None:
    for bit in range(8):
        caplog.clear()
        queues.flip((20 + bit) * ENTRY_BYTES + position, bit)
        store = queues.lab.open()
        assert pulled(store) == EXPECTED
        assert f"mended from the log topic=T queue=0 from_offset={20 + bit} count=1" in caplog.text
        store.close()
        assert queues.is_sound


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("read", [pulled, bulk, lambda store: pulled(store, tags=lambda _: True)])
def test_many_flipped_bits_are_mended(
    queues: Queues, seed: int, read: Callable[[MessageStore], list[str]]
) -> None:
    randomly = random.Random(seed)
    for _ in range(40):
        # Not the tags, which nobody compares on read; not the end, which the start looks at.
        entry = randomly.randrange(COUNT - 1)
        queues.flip(entry * ENTRY_BYTES + randomly.randrange(12), randomly.randrange(8))
    store = queues.lab.open()
    assert read(store) == EXPECTED
    store.close()
    assert queues.is_sound


@pytest.mark.parametrize("garbage", [bytes(400), b"\xff" * 400, bytes(range(100)) * 4])
@pytest.mark.parametrize("first", [0, 15, COUNT - 20])
def test_a_stretch_of_garbage_is_mended(queues: Queues, garbage: bytes, first: int) -> None:
    queues.damage(first * ENTRY_BYTES, garbage)
    store = queues.lab.open()
    assert pulled(store, tags=lambda code: code == java_hash("red")) == EXPECTED
    store.close()
    assert queues.is_sound


def test_a_search_through_much_of_the_log_goes_on_in_slices(
    queues: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cometmq.store.queues.queue_repair.SLICE_BYTES", 100)
    queues.damage(20 * ENTRY_BYTES, bytes(200))
    store = queues.lab.open()
    result = store.get("T", 0, 10, 32)
    assert (result.count, result.next_offset) == (10, 20)
    result = store.get("T", 0, 20, 32)
    assert (result.count, result.next_offset) == (0, 20)
    assert result.status is GetStatus.NO_MATCHED_MESSAGE
    assert pulled(store) == EXPECTED


def test_a_message_that_is_not_in_the_log_is_passed_and_told_once(
    queues: Queues, caplog: pytest.LogCaptureFixture
) -> None:
    store = queues.lab.open()
    ((physical_offset, _, _),) = store.entries("T", 0, 20, 1)
    store.close()
    (log_path,) = Path(queues.lab.root, "commitlog").iterdir()
    raw = bytearray(log_path.read_bytes())
    raw[physical_offset + 27] ^= 64  # its queue offset
    log_path.write_bytes(raw)
    store = queues.lab.open()
    for _ in range(3):
        assert pulled(store) == EXPECTED[:20] + EXPECTED[21:]
    told = [line for line in caplog.messages if "queue entry without a record" in line]
    assert told == ["queue entry without a record topic=T queue=0 offset=20"]
    store.close()
    assert queues.is_sound


def test_a_gap_is_no_damage(queues: Queues, caplog: pytest.LogCaptureFixture) -> None:
    queues.damage(20 * ENTRY_BYTES, FILLER * 3)
    store = queues.lab.open()
    assert pulled(store) == EXPECTED[:20] + EXPECTED[23:]
    assert bulk(store) == EXPECTED[:20] + EXPECTED[23:]
    assert "mended" not in caplog.text


def test_times_and_entries_are_read_from_mended_ones(queues: Queues) -> None:
    store = queues.lab.open()
    sound = store.entries("T", 0, 0, COUNT)
    times = [store.store_time("T", 0, number) for number in range(COUNT)]
    store.close()
    for number in (3, 30, 31):
        queues.flip(number * ENTRY_BYTES + 5, 3)
    store = queues.lab.open()
    assert [store.store_time("T", 0, number) for number in range(COUNT)] == times
    assert store.entries("T", 0, 0, COUNT) == sound


def test_the_start_mends_the_newest_entries_with_their_tags(lab: Lab, message: Make) -> None:
    queues = Queues(lab, message)
    for number, position in ((COUNT - 1, 17), (COUNT - 2, 6), (COUNT - 9, 10), (3, 15)):
        queues.flip(number * ENTRY_BYTES + position, 2)
    queues.lab.open().close()
    assert queues.is_sound


def test_a_message_of_a_deleted_topic_does_not_take_the_place_of_a_new_one(
    lab: Lab, message: Make
) -> None:
    lab.change(log={"file_bytes": 1 << 16})
    store = lab.open()
    for kind in ("old", "new"):
        for number in range(6):
            store.put(message(f"{kind}-{number}"))
        if kind == "old":
            store.delete_topic("T")
    store.close()
    path = Path(lab.root, "consumequeue", "T", "0", f"{0:020d}")
    raw = bytearray(path.read_bytes())
    raw[:60] = bytes(60)
    path.write_bytes(raw)
    store = lab.open()
    assert pulled(store) == [f"new-{number}" for number in range(6)]


@pytest.mark.parametrize("damaged", [range(32, 33), range(36, 50)])
def test_damage_does_not_move_the_minimum(lab: Lab, message: Make, damaged: range) -> None:
    lab.change(queues={"file_bytes": 20 * COUNT})
    store = lab.open()
    for number in range(COUNT):
        store.put(message(f"{number}".ljust(200)))
    for _ in range(2):
        store._log.row.files[0].close()
        store._files.remove(store._log.drop_first(1)[0])
    minimum = store.min_offset("T", 0)
    assert 10 < minimum < 30
    store.close()
    path = Path(lab.root, "consumequeue", "T", "0", f"{0:020d}")
    raw = bytearray(path.read_bytes())
    for number in damaged:
        ENTRY.pack_into(raw, number * ENTRY_BYTES, 0, 300, 0)
    path.write_bytes(raw)
    store = lab.open()
    assert store.min_offset("T", 0) == minimum
    first = store.get("T", 0, minimum, 32)
    assert first.status is GetStatus.FOUND
