from __future__ import annotations

import json

import pytest

from cometmq.base.errors import CorruptFile
from cometmq.broker.filters.consumer_filters import DEAD_MS_MAX, ConsumerFilters
from cometmq.model.bloom import bloom_filter
from cometmq.model.subscription import SubscriptionData
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles

PATH = "/store/config/consumerFilter.json"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def files(clock: FakeClock) -> FaultyFiles:
    return FaultyFiles(clock)


def loaded(files: FaultyFiles, clock: FakeClock) -> ConsumerFilters:
    filters = ConsumerFilters("/store/config", files, clock, bloom_filter(32, 20))
    filters.load()
    return filters


def wish(expression: str = "a > 5", version: int = 7, topic: str = "TopicTest") -> SubscriptionData:
    return SubscriptionData(
        topic=topic, sub_string=expression, sub_version=version, expression_type="SQL92"
    )


def save(filters: ConsumerFilters) -> None:
    write = filters.unsaved()
    assert write is not None
    write()


def test_the_file_is_rocketmqs(files: FaultyFiles, clock: FakeClock) -> None:
    filters = loaded(files, clock)
    now = clock.wall_ms()
    filters.register("group1", [wish()])
    save(filters)
    assert json.loads(files.read(PATH)) == {
        "filterDataByTopic": {
            "TopicTest": {
                "groupFilterData": {
                    "group1": {
                        "bloomFilterData": {"bitNum": 112, "bitPos": [79, 5, 68]},
                        "bornTime": now,
                        "clientVersion": 7,
                        "consumerGroup": "group1",
                        "dead": False,
                        "deadTime": 0,
                        "expression": "a > 5",
                        "expressionType": "SQL92",
                        "topic": "TopicTest",
                    }
                },
                "topic": "TopicTest",
            }
        }
    }
    assert filters.unsaved() is None


def test_filters_work_after_a_restart_but_count_as_dead(
    files: FaultyFiles, clock: FakeClock
) -> None:
    filters = loaded(files, clock)
    filters.register("g", [wish()])
    save(filters)
    clock.advance(100)
    again = loaded(files, clock)
    entry, compiled = again.get("TopicTest", "g"), again.filter_of("TopicTest", "g")
    assert entry is not None
    assert compiled is not None
    assert (entry.is_dead, entry.dead_time) == (True, clock.wall_ms() - 30_000)
    assert compiled.wants is not None
    assert compiled.wants({"a": "6"})
    again.register("g", [wish()])
    assert not entry.is_dead


def test_an_expression_of_the_file_that_is_none_is_left_out(
    files: FaultyFiles, clock: FakeClock
) -> None:
    filters = loaded(files, clock)
    filters.register("g", [wish(), wish(topic="U")])
    save(filters)
    files.replace(PATH, files.read(PATH).replace(b'"a > 5"', b'"a >"', 1))
    again = loaded(files, clock)
    assert (again.get("TopicTest", "g") is None) is not (again.get("U", "g") is None)


def test_a_broken_file_is_not_overwritten(files: FaultyFiles, clock: FakeClock) -> None:
    files.make_directory("/store/config")
    files.replace(PATH, b'{"filterDataByTopic":{"T":{"groupFilterData":{"g":{"topic":5}}}}}')
    with pytest.raises(CorruptFile):
        loaded(files, clock)


def test_a_topic_no_longer_named_is_dead(files: FaultyFiles, clock: FakeClock) -> None:
    filters = loaded(files, clock)
    filters.register("g", [wish(), wish(topic="U")])
    filters.register("g", [wish(topic="U"), SubscriptionData(topic="TopicTest", sub_version=9)])
    kept, gone = filters.get("U", "g"), filters.get("TopicTest", "g")
    assert kept is not None
    assert gone is not None
    assert (kept.is_dead, gone.is_dead) == (False, True)


def test_the_dead_are_forgotten_after_a_day(files: FaultyFiles, clock: FakeClock) -> None:
    filters = loaded(files, clock)
    filters.register("g", [wish()])
    filters.retire("g")
    clock.advance(DEAD_MS_MAX / 1000 + 1)
    filters.register("h", [wish(topic="U")])
    save(filters)
    assert filters.get("TopicTest", "g") is None
    assert filters.filter_of("TopicTest", "g") is None
    assert filters.get("U", "h") is not None
    assert repr(filters) == "<ConsumerFilters 1 filters of 1 topics>"


def test_a_new_version_of_the_same_expression_is_the_same_filter(
    files: FaultyFiles, clock: FakeClock
) -> None:
    filters = loaded(files, clock)
    changes: list[int] = []
    filters.on_change = lambda: changes.append(1)
    filters.register("g", [wish(version=1)])
    entry = filters.get("TopicTest", "g")
    filters.register("g", [wish(version=1)])
    assert len(changes) == 1
    filters.register("g", [wish(version=2)])
    assert filters.get("TopicTest", "g") is entry
    assert entry is not None
    assert (entry.client_version, len(changes)) == (2, 2)


def test_bits_tell_which_groups_want_a_message(files: FaultyFiles, clock: FakeClock) -> None:
    filters = loaded(files, clock)
    assert filters.bits_of("TopicTest", "a\x019\x02") == b""
    filters.register("group1", [wish("a > 5")])
    filters.register("group2", [wish("a > 7")])
    now = clock.wall_ms()
    tests = [filters.filter_of("TopicTest", group) for group in ("group1", "group2")]

    def wanted(properties: str, at: int = now + 1) -> list[bool]:
        bits = filters.bits_of("TopicTest", properties)
        assert len(bits) == 14
        return [bool(test and test.by_unit and test.by_unit(at, bits)) for test in tests]

    assert wanted("a\x019\x02") == [True, True]
    assert wanted("a\x016\x02") == [True, False]
    assert wanted("a\x015\x02") == [False, False]
    assert wanted("a\x01x\x02") == [False, False]
    # Not known to have been held against the filters: the record will tell.
    assert wanted("a\x015\x02", now) == [True, True]


def test_bits_of_one_group_are_rocketmqs(files: FaultyFiles, clock: FakeClock) -> None:
    filters = loaded(files, clock)
    filters.register("group1", [wish()])
    bits = int.from_bytes(filters.bits_of("TopicTest", "a\x019\x02"), "little")
    assert bits == 1 << 79 | 1 << 5 | 1 << 68


def test_a_dead_filter_still_counts_and_a_new_expression_is_a_new_birth(
    files: FaultyFiles, clock: FakeClock
) -> None:
    filters = loaded(files, clock)
    filters.register("group1", [wish()])
    filters.retire("group1")
    bits = filters.bits_of("TopicTest", "a\x019\x02")
    assert any(bits)
    clock.advance(1)
    filters.register("group1", [wish("a < 5", 8)])
    assert not any(filters.bits_of("TopicTest", "a\x019\x02"))
    wanted = filters.filter_of("TopicTest", "group1")
    assert wanted is not None
    assert wanted.by_unit is not None
    assert wanted.by_unit(clock.wall_ms(), bytes(14))
    assert not wanted.by_unit(clock.wall_ms() + 1, bytes(14))


def test_a_forgotten_filter_has_no_bits(files: FaultyFiles, clock: FakeClock) -> None:
    filters = loaded(files, clock)
    filters.register("group1", [wish()])
    assert filters.bits_of("TopicTest", "a\x019\x02")
    filters.retire("group1")
    clock.advance(DEAD_MS_MAX / 1000 + 1)
    save(filters)
    assert filters.bits_of("TopicTest", "a\x019\x02") == b""


def test_a_filter_is_not_born_before_the_newest_message(
    files: FaultyFiles, clock: FakeClock
) -> None:
    """The clock may have been set back: then messages are stored with times ahead of it."""
    filters = loaded(files, clock)
    newest = clock.wall_ms() + 3_600_000
    filters.newest_ms = lambda: newest
    filters.register("group1", [wish()])
    entry = filters.get("TopicTest", "group1")
    assert entry is not None
    assert entry.born_time == newest


def test_bits_of_other_settings_are_not_loaded(files: FaultyFiles, clock: FakeClock) -> None:
    filters = loaded(files, clock)
    filters.register("group1", [wish()])
    save(filters)
    other = ConsumerFilters("/store/config", files, clock, bloom_filter(64, 20))
    other.load()
    assert other.get("TopicTest", "group1") is None
    save(other)
    assert json.loads(files.read(PATH)) == {"filterDataByTopic": {}}
    other.register("group1", [wish()])
    assert len(other.bits_of("TopicTest", "a\x019\x02")) == 27


@pytest.mark.parametrize("bits", ['"bitPos":[1,2]', '"bitPos":[1,2,112]', '"bitPos":[-1,2,3]'])
def test_bits_that_no_filter_has_are_not_loaded(
    files: FaultyFiles, clock: FakeClock, bits: str
) -> None:
    filters = loaded(files, clock)
    filters.register("group1", [wish()])
    save(filters)
    text = "".join(files.read(PATH).decode().split())
    files.replace(PATH, text.replace('"bitPos":[79,5,68]', bits).encode())
    assert loaded(files, clock).get("TopicTest", "group1") is None
