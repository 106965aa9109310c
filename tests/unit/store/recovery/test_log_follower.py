"""What the follower makes of records: the same entries in groups as one by one, and the same keys as anybody else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.store.conftest import MakeMessage, StoreLab

from cometmq.base.errors import DiskFull
from cometmq.model.java_hash import java_hash
from cometmq.model.messages.properties import KEYS, TAGS, UNIQ_KEY, parse_properties, split_keys
from cometmq.store.files.queue_entry import FILLER_SIZE
from cometmq.store.files.record_scan import Scanned
from cometmq.store.queues.delay_levels import DelayLevels
from cometmq.store.recovery import log_follower
from cometmq.store.recovery.log_follower import index_keys

NOW = 1_700_000_000_000
# Most texts hold names that count, and what separates them.
PIECES = st.sampled_from([UNIQ_KEY, KEYS, TAGS, "\1", "\2", "a", "b c", "", "WAIT", "ü"])


@dataclass
class Log:
    """Records as the follower sees them, one behind the other."""

    end: int = 0

    def record(
        self, number: int, text: str = "", *, queue_id: int = 0, topic: str = "T", flag: int = 0
    ) -> Scanned:
        place, self.end = self.end, self.end + 100
        return Scanned(
            place, 100, queue_id, number, flag, NOW + place, topic.encode(), text.encode()
        )


@given(st.lists(PIECES, max_size=12).map("".join))
def test_keys_are_those_that_a_parser_finds(text: str) -> None:
    pairs = parse_properties(text)
    unique = [pairs[UNIQ_KEY]] if UNIQ_KEY in pairs else []
    assert index_keys(text) == unique + split_keys(pairs.get(KEYS))


def test_a_group_is_entered_as_its_records_are_one_by_one(lab: StoreLab) -> None:
    log = Log()
    records = [
        log.record(0, f"{UNIQ_KEY}\1u0\2{TAGS}\1blue"),
        log.record(0, f"{KEYS}\1k1 k2\2", queue_id=1),
        log.record(1, f"{TAGS}\1{'long' * 50}"),
        log.record(0, "DELAY\0013", topic="SCHEDULE_TOPIC_XXXX", queue_id=2),
        # Half and rolled back: in no queue.
        log.record(0, f"{UNIQ_KEY}\1half", flag=4),
        log.record(0, f"{UNIQ_KEY}\1gone", flag=12),
        log.record(2, f"{UNIQ_KEY}\1committed", flag=8),
        # There already, a gap, and one that no log has.
        log.record(1, f"{UNIQ_KEY}\1twice"),
        log.record(5, f"{UNIQ_KEY}\1far"),
        log.record(5_000_000, f"{UNIQ_KEY}\1damaged"),
        log.record(6),
        # A queue whose older messages are gone.
        log.record(40, queue_id=3),
        log.record(41, queue_id=3),
    ]
    found = []
    for name, cuts in (("together", [0, len(records)]), ("each", [*range(len(records) + 1)])):
        other = StoreLab(lab.root / name)
        other.open_stores = lab.open_stores
        store = other.open()
        one = store._make_follower()
        told = [one.enter(records[start:stop]) for start, stop in pairwise(cuts)]
        columns = [[*chain(*column)] for column in zip(*told, strict=True)]
        queues = {
            (topic, queue_id): store.entries(topic, queue_id, 0, 100)
            for topic in sorted(store.topics())
            for queue_id in store.queue_ids(topic)
        }
        ends = {queue: store.max_offset(*queue) for queue in queues}
        assert store._index is not None
        keys = {
            key: store._index.query("T", key, 9, 0, 1 << 62)
            for key in ("u0", "k1", "k2", "half", "gone", "committed", "twice", "far", "damaged")
        }
        found.append((columns, queues, ends, keys))
    assert found[0] == found[1]
    columns, queues, ends, keys = found[0]
    assert ends == {
        ("SCHEDULE_TOPIC_XXXX", 2): 1,
        ("T", 0): 7,
        ("T", 1): 1,
        ("T", 3): 42,
    }
    assert queues["T", 0][:2] == [(0, 100, java_hash("blue")), (200, 100, java_hash("long" * 50))]
    assert [size for _, size, _ in queues["T", 0]] == [
        100,
        100,
        100,
        FILLER_SIZE,
        FILLER_SIZE,
        100,
        100,
    ]
    assert columns[2] == [0, 0, 1, 0, 2, 5, 6, 40, 41]
    assert columns[3][3] == NOW + 300 + DelayLevels("1s 5s 10s").delay_ms(3)
    assert {key for key, places in keys.items() if not places} == {"gone"}


def test_nothing_is_entered_when_the_index_has_no_space(
    lab: StoreLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, log = lab.open(), Log()
    records = [log.record(number, f"{UNIQ_KEY}\1u{number}") for number in range(3)]
    one = store._make_follower()
    assert store._index is not None

    def refuse(count: int) -> None:
        raise DiskFull("full")

    with monkeypatch.context() as patch:
        patch.setattr(store._index, "reserve", refuse)
        with pytest.raises(DiskFull):
            one.enter(records)
    assert store.max_offset("T", 0) == 0
    assert one.enter(records).queue_offsets == [0, 1, 2]
    assert store._index.query("T", "u1", 9, 0, 1 << 62) == [100]


def test_the_twin_enters_what_the_follower_enters(
    lab: StoreLab, message: MakeMessage, monkeypatch: pytest.MonkeyPatch
) -> None:
    if log_follower._twin is None:
        pytest.skip("cometmq was installed without twins")
    master = lab.open()
    for number in range(600):
        # More queues than the twin looks for at once, and records without keys where the time changes.
        topic, queue_id = f"T{number * 7 % 25}", number % 3
        keys = [f"u{number}", *(["k"] * (number % 5 == 0))] if number % 4 else []
        unique = f"{UNIQ_KEY}\1{keys[0]}\2" if keys else ""
        text = f"{unique}{TAGS}\1t{number % 3}\2" + (f"{KEYS}\1k" if keys[1:] else "")
        lab.clock.ms += 700 * (number % 9 == 0)
        master.put(message(topic=topic, queue_id=queue_id, properties=text.encode(), keys=keys))
    replicas = []
    for name, twin in (("twin", log_follower._twin), ("python", None)):
        monkeypatch.setattr(log_follower, "_twin", twin)
        other = StoreLab(lab.root / name)
        other.clock, other.config = lab.clock, replace(lab.config, root=str(other.root))
        slave = other.open()
        slave.follow()
        slave.replica.append(0, master.replica.read(0, master.max_physical))
        while slave.replica.dispatch(count_max=100):
            pass
        slave.close()
        rooms = (other.root / room for room in ("consumequeue", "index"))
        replicas.append(
            {
                path.relative_to(other.root): path.read_bytes()
                for room in rooms
                for path in sorted(room.rglob("*"))
                if path.is_file()
            }
        )
    assert replicas[0] == replicas[1]
