"""What the compiled twin gathers is what ``collect`` collects, or it leaves the read alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from cometmq.model.address import pack_host
from cometmq.store.files.queue_entry import ENTRY, ENTRY_BYTES, FILLER
from cometmq.store.log.new_messages import NewMessage
from cometmq.store.message_store import MessageStore
from cometmq.store.queues.consume_queue import ConsumeQueue
from cometmq.store.queues.queue_check import leads_to
from cometmq.store.read import gather as seam
from cometmq.store.read.collect import collect_carefully
from cometmq.store.read.gather import gather
from cometmq.store.read.wanted import Collected, Limits, Wanted

pulls = pytest.importorskip("cometmq.native.pulls")

Lab = Any
Make = Callable[..., NewMessage]

MANY = 1 << 40
NO_LIMITS = Limits(MANY, MANY, MANY, MANY, 0)
ALL = Wanted(None, 0, None)
LONG_TOPIC = "t" * 127
IPV6 = pack_host("::1", 10911)


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seam, "_twin", pulls)


class Read:
    """One read of a store, in both ways."""

    def __init__(self, store: MessageStore, topic: str = "T", queue_id: int = 0) -> None:
        queue = store._queues.get(topic, queue_id)
        assert queue is not None
        self.store = store
        self.queue: ConsumeQueue = queue
        self.data = queue.read(0, 1 << 20, store._queues.open_files)
        self.wanted, self.limits = ALL, NO_LIMITS

    def gathered(self) -> Collected | None:
        store = self.store
        return gather(
            store._log, store._soundness, self.queue, self.data, 0, self.wanted, self.limits
        )

    def collected(self) -> Collected:
        store = self.store
        return collect_carefully(
            store._log,
            store._repair,
            store._soundness,
            self.queue,
            self.data,
            0,
            self.wanted,
            self.limits,
        )

    def is_left_alone(self) -> bool:
        return self.gathered() is None

    def assert_alike(self) -> Collected:
        found = self.gathered()
        assert found is not None
        assert_same(found, self.collected())
        return found


def assert_same(found: Collected, expected: Collected) -> None:
    assert b"".join(found.parts) == b"".join(expected.parts)
    assert found._replace(parts=[]) == expected._replace(parts=[])


def filled(lab: Lab, message: Make, count: int = 40, **fields: Any) -> MessageStore:
    """Messages of two queues in turns, with their number as the code of their tag, modulo five."""
    lab.change(log={"file_bytes": 1 << 20}, queues={"file_bytes": 20 * 1000})
    store: MessageStore = lab.open()
    for number in range(count):
        store.put(message(f"{number}", tags_code=number % 5, **fields))
        store.put(message(f"{number}", queue_id=1))
    return store


def test_everything(lab: Lab, message: Make) -> None:
    found = Read(filled(lab, message)).assert_alike()
    assert (found.examined, len(found.sizes), len(found.parts)) == (40, 40, 1)


def test_adjacent_records_are_one_view_of_the_log(lab: Lab, message: Make) -> None:
    store = lab.open()
    for number in range(3):
        store.put(message(f"{number}"))
    (part,) = Read(store).assert_alike().parts
    assert not isinstance(part.obj, bytes)


def test_large_records_are_not_copied(lab: Lab, message: Make) -> None:
    lab.change(log={"file_bytes": 1 << 20, "message_bytes_max": 100_000})
    store = lab.open()
    for queue_id in (0, 1, 0, 1, 0):
        store.put(message("x" * 5000, queue_id=queue_id))
    parts = Read(store).assert_alike().parts
    assert len(parts) == 3
    assert not any(isinstance(part.obj, bytes) for part in parts)


@pytest.mark.parametrize(
    "limits",
    [
        Limits(3, MANY, 1, MANY, 0),
        Limits(MANY, 300, MANY, 1, 0),
        Limits(MANY, 1, MANY, 1, 0),
        Limits(9, MANY, 2, MANY, MANY),
        Limits(9, MANY, MANY, 400, MANY),
        Limits(9, MANY, 2, MANY, 1000),
    ],
)
def test_limits(lab: Lab, message: Make, limits: Limits) -> None:
    read = Read(filled(lab, message))
    read.limits = limits
    assert 0 < len(read.assert_alike().sizes) < 40


@pytest.mark.parametrize("codes", [{3}, {1, 2, 4}, {7}, set(), {2**63, -(2**70), 2}])
@pytest.mark.parametrize("code_min", [-(2**31), 3])
def test_tags(lab: Lab, message: Make, codes: set[int], code_min: int) -> None:
    read = Read(filled(lab, message))
    read.wanted = Wanted(codes.__contains__, code_min, None)
    by_function = read.assert_alike()
    read.wanted = Wanted(pulls.Tags(codes), code_min, None)
    assert_same(read.assert_alike(), by_function)


def test_tags_are_a_set() -> None:
    tags = pulls.Tags([5, -1, 5, 2**63 - 1, -(2**63), 2**63])
    asked = (5, -1, 2**63 - 1, -(2**63), 2**63, 0, 4, 6, -(2**64))
    assert [tags(code) for code in asked] == [code in asked[:4] for code in asked]


def test_a_judge_of_records_gets_the_record(lab: Lab, message: Make) -> None:
    read = Read(filled(lab, message))
    read.wanted = Wanted(pulls.Tags([1, 2]), 0, lambda record: record[-5] & 1 == 0)
    assert 0 < len(read.assert_alike().sizes) < 16


def test_a_judge_that_fails_is_heard(lab: Lab, message: Make) -> None:
    def fail(record: memoryview) -> bool:
        raise KeyError("this one")

    read = Read(filled(lab, message))
    read.wanted = Wanted(None, 0, fail)
    with pytest.raises(KeyError, match="this one"):
        read.gathered()


def test_a_long_topic(lab: Lab, message: Make) -> None:
    store = lab.open()
    store.put(message("a", topic=LONG_TOPIC))
    assert len(Read(store, LONG_TOPIC).assert_alike().sizes) == 1


def test_records_from_the_disk_are_checked(lab: Lab, message: Make) -> None:
    store = filled(lab, message)
    store._soundness.trust_what_comes()
    assert len(Read(store).assert_alike().sizes) == 40


def test_a_byte_of_a_record_from_the_disk_that_is_wrong(lab: Lab, message: Make) -> None:
    """Whatever the pure check refuses is left to it; whatever is handed out, it would hand out, too."""
    store = filled(lab, message, properties=b"a\x01b\x02")
    read = Read(store)
    place, size, _ = ENTRY.unpack_from(read.data, 7 * ENTRY_BYTES)
    refused = []
    for at in range(size):
        store._soundness.trust_what_comes()
        whole = store._log.view(place, size)
        assert whole is not None
        byte = whole[at]
        store._log.overwrite(place + at, bytes((byte ^ 0x10,))).close()
        found = read.gathered()
        if not store._soundness.is_sound(place, whole) or not leads_to(read.queue, 7, whole):
            assert found is None
            refused.append(at)
        store._log.overwrite(place + at, bytes((byte,))).close()
        assert found is None or len(found.sizes) == 40
    # Times, hosts, the user's flag, counts and the text of the properties are not protected.
    assert {0, 5, 9, 15, 25, 34, 87, 88, size - 8, size - 6} <= set(refused)


def test_an_empty_body_from_the_disk(lab: Lab, message: Make) -> None:
    store = lab.open()
    store.put(message(b""))
    store._soundness.trust_what_comes()
    assert len(Read(store).assert_alike().sizes) == 1


def test_large_records_from_the_disk_are_left_to_the_check_that_remembers(
    lab: Lab, message: Make
) -> None:
    lab.change(log={"file_bytes": 1 << 20, "message_bytes_max": 100_000})
    store = lab.open()
    store.put(message("x" * 20_000, tags_code=1))
    store._soundness.trust_what_comes()
    read = Read(store)
    assert read.is_left_alone()
    read.wanted = Wanted(pulls.Tags([1]), 0, None)
    assert read.gathered() is not None
    assert store._soundness.are_known([0])


def test_marks_of_records_from_the_disk_are_left_alone(lab: Lab, message: Make) -> None:
    lab.change(read={"check_marks": True})
    store = filled(lab, message)
    store._soundness.trust_what_comes()
    assert Read(store).is_left_alone()


def test_records_from_the_disk_are_checked_before_they_are_judged(lab: Lab, message: Make) -> None:
    store = filled(lab, message)
    store._soundness.trust_what_comes()
    read = Read(store)
    read.wanted = Wanted(pulls.Tags([1]), 0, None)
    read.assert_alike()
    place, size, _ = ENTRY.unpack_from(read.data, ENTRY_BYTES)
    store._soundness.trust_what_comes()
    store._log.overwrite(place + size - 3, b"!").close()
    assert read.is_left_alone()


def test_hosts_of_ipv6_are_left_alone(lab: Lab, message: Make) -> None:
    store = filled(lab, message, count=2, born_host=IPV6)
    assert Read(store).is_left_alone()


def test_two_log_files_are_left_alone(lab: Lab, message: Make) -> None:
    store = lab.open()
    for _ in range(5):
        store.put(message("x" * 1000))
    assert len(store._log.row.files) > 1
    assert Read(store).is_left_alone()


@pytest.mark.parametrize("seed", range(40))
def test_damaged_entries(lab: Lab, message: Make, seed: int) -> None:
    """Either the same is found, or the read is left alone; and never anything that is not in the log."""
    chance = random.Random(seed)
    read = Read(filled(lab, message))
    codes = chance.sample(range(5), 3)
    tags = None if chance.random() < 0.3 else pulls.Tags(codes)
    read.wanted = Wanted(tags, chance.choice((-5, 0, 2)), None)
    read.limits = Limits(
        chance.choice((5, MANY)), chance.choice((700, MANY)), 4, 900, chance.choice((0, 3000))
    )
    entries = [read.data[at : at + ENTRY_BYTES] for at in range(0, len(read.data), ENTRY_BYTES)]
    damage_count = chance.choice((0, 1, 3))
    for _ in range(damage_count):
        at = chance.randrange(len(entries))
        place, size, code = ENTRY.unpack(entries[at])
        entries[at] = chance.choice(
            (
                FILLER,
                bytes(ENTRY_BYTES),
                ENTRY.pack(place + chance.choice((-1, 1, 1 << 40, -(1 << 40))), size, code),
                ENTRY.pack(place, size + chance.choice((-1, 1, -size, -2 * size, 1 << 30)), code),
                ENTRY.pack(place, size, chance.choice((-(1 << 40), 1 << 62, 3))),
                entries[chance.randrange(len(entries))],
                chance.randbytes(ENTRY_BYTES),
            )
        )
    read.data = b"".join(entries)
    found = read.gathered()
    assert found is not None or damage_count
    if found is not None:
        assert_same(found, read.collected())


@pytest.mark.parametrize("seed", range(40))
def test_damaged_records(lab: Lab, message: Make, seed: int) -> None:
    chance = random.Random(seed)
    store = filled(lab, message)
    read = Read(store)
    for _ in range(chance.choice((1, 3))):
        place, size, _ = ENTRY.unpack_from(read.data, ENTRY_BYTES * chance.randrange(40))
        at = place + chance.randrange(size)
        store._log.overwrite(at, chance.randbytes(1)).close()
    if chance.random() < 0.5:
        store._soundness.trust_what_comes()
    read.wanted = Wanted(pulls.Tags([0, 1, 2]), 0, None) if chance.random() < 0.5 else ALL
    found = read.gathered()
    if found is not None:
        assert_same(found, read.collected())
