"""Topics and groups: what the tables hold, and the files of Java brokers."""

from __future__ import annotations

from pathlib import Path

import pytest

from cometmq.base.errors import CorruptFile, DiskFull
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.topic import DataVersion, TopicConfig
from cometmq.protocol import fastjson
from cometmq.store.meta import config_table
from cometmq.store.meta.config_table import TableEntry
from cometmq.store.meta.groups import GroupTable
from cometmq.store.meta.rendered_rows import ROWS_AT_ONCE
from cometmq.store.meta.topics import TopicTable
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles

GOLDEN = Path(__file__).parents[3] / "golden"
VERSIONS = ["4.9.7", "5.5.0"]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def files(clock: FakeClock) -> FaultyFiles:
    return FaultyFiles(clock)


def put_golden(files: FaultyFiles, version: str) -> None:
    files.make_directory("/config")
    for path in (GOLDEN / f"config-{version}").iterdir():
        files.replace(f"/config/{path.name}", path.read_bytes())


def topic_table(files: FaultyFiles, clock: FakeClock) -> TopicTable:
    table = TopicTable("/config", files, clock)
    table.load()
    return table


def group_table(files: FaultyFiles, clock: FakeClock) -> GroupTable:
    table = GroupTable("/config", files, clock)
    table.load()
    return table


@pytest.mark.parametrize("version", VERSIONS)
def test_topics_of_a_java_broker(files: FaultyFiles, clock: FakeClock, version: str) -> None:
    put_golden(files, version)
    table = topic_table(files, clock)
    order = table.get("TopicOrder")
    assert order is not None
    assert (order.read_queue_nums, order.perm, order.order) == (4, 6, version == "5.5.0")
    assert table.version.counter == (16 if version == "4.9.7" else 17)
    transaction = table.get("TopicTx")
    assert transaction is not None
    assert transaction.attributes == (
        None if version == "4.9.7" else {"message.type": "TRANSACTION"}
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["topics.json", "subscriptionGroup.json"])
def test_files_of_a_java_broker_are_written_back_byte_for_byte(
    files: FaultyFiles, clock: FakeClock, version: str, name: str
) -> None:
    put_golden(files, version)
    table = (topic_table if name == "topics.json" else group_table)(files, clock)
    assert table.encode().decode() == files.read(f"/config/{name}").decode()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_change_keeps_what_only_other_brokers_know(
    files: FaultyFiles, clock: FakeClock, version: str
) -> None:
    put_golden(files, version)
    content = fastjson.loads(files.read("/config/subscriptionGroup.json"))
    content["somethingNew"] = {"a": [1]}
    content["subscriptionGroupTable"]["CG_sql"]["fromTheFuture"] = {"x": 1}
    files.replace("/config/subscriptionGroup.json", fastjson.dumps(content))
    table = group_table(files, clock)
    table.put(SubscriptionGroupConfig(group_name="CG_sql", retry_max_times=3))
    table.save_if_changed()
    after = fastjson.loads(files.read("/config/subscriptionGroup.json"))
    assert after["somethingNew"] == {"a": [1]}
    assert after["subscriptionGroupTable"]["CG_sql"]["fromTheFuture"] == {"x": 1}
    assert after["subscriptionGroupTable"]["CG_sql"]["retryMaxTimes"] == 3
    assert after["dataVersion"]["counter"] == content["dataVersion"]["counter"] + 1
    assert set(after) == set(content)


def test_an_absent_file_is_an_empty_table(files: FaultyFiles, clock: FakeClock) -> None:
    table = topic_table(files, clock)
    assert table.names() == []
    assert len(table) == 0
    assert table.version == DataVersion()
    assert not files.exists("/config/topics.json")


def test_what_was_saved_is_loaded_again(files: FaultyFiles, clock: FakeClock) -> None:
    table = topic_table(files, clock)
    table.put(TopicConfig(topic_name="A", read_queue_nums=4))
    table.save_if_changed()
    again = topic_table(files, clock)
    assert again.all() == {"A": TopicConfig(topic_name="A", read_queue_nums=4)}
    assert again.version == table.version == DataVersion(counter=1, timestamp=clock.wall_ms())


def test_a_change_reaches_the_file_when_saved(files: FaultyFiles, clock: FakeClock) -> None:
    table = topic_table(files, clock)
    told: list[int] = []
    table.on_change = lambda: told.append(len(table))
    calls = files.call_count
    for number in range(1000):
        table.put(TopicConfig(topic_name=f"T{number}"))
    assert files.call_count == calls
    assert told == list(range(1, 1001))
    table.save_if_changed()
    assert len(topic_table(files, clock)) == 1000
    calls = files.call_count
    table.save_if_changed()
    assert files.call_count == calls


def test_several_are_one_change_and_none_is_none(files: FaultyFiles, clock: FakeClock) -> None:
    table = topic_table(files, clock)
    table.put_many([TopicConfig(topic_name="A"), TopicConfig(topic_name="B")])
    table.put_many([])
    assert table.version.counter == 1
    assert sorted(table.names()) == ["A", "B"]


def test_remove_tells_whether_it_was_there(files: FaultyFiles, clock: FakeClock) -> None:
    table = topic_table(files, clock)
    table.put(TopicConfig(topic_name="A"))
    assert table.remove("A")
    assert not table.remove("A")
    assert table.get("A") is None
    assert table.version.counter == 2
    assert topic_table(files, clock).names() == []


def replace(
    table: TopicTable, entries: dict[str, TableEntry[TopicConfig]], version: DataVersion
) -> set[str]:
    steps = table.replacing(entries, version)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return set(end.value)


def test_a_replica_takes_table_and_version(files: FaultyFiles, clock: FakeClock) -> None:
    table = topic_table(files, clock)
    table.put(TopicConfig(topic_name="old"))
    version = DataVersion(counter=70, timestamp=5)
    fields = {"readQueueNums": 3, "ofAnotherKind": True}
    assert replace(table, {"new": table.entry("new", fields)}, version) == {"old"}
    table.save_if_changed()
    again = topic_table(files, clock)
    assert again.names() == ["new"]
    assert again.version == version
    assert b'"ofAnotherKind":true' in again.encode()


def test_a_replica_that_takes_the_same_again_renders_nothing(
    files: FaultyFiles, clock: FakeClock
) -> None:
    table = topic_table(files, clock)
    table.put_many(TopicConfig(topic_name=f"T{number}") for number in range(3))
    while table.freshen():
        pass
    same = {name: table.entry(name, {}) for name in ("T0", "T1")}
    changed = {"T2": table.entry("T2", {"perm": 4})}
    replace(table, same, DataVersion(counter=9))
    assert table.is_fresh
    replace(table, {**same, **changed}, DataVersion(counter=10))
    assert not table.is_fresh
    assert table.rows_of(["T2"]).startswith(b'{"T2":{"order":false,"perm":4,')


def test_an_entry_that_is_the_same_is_the_tables_own(files: FaultyFiles, clock: FakeClock) -> None:
    """So that a table of ten thousand is taken over without a comparison of each of their fields."""
    table = topic_table(files, clock)
    table.put(TopicConfig(topic_name="T", perm=4))
    assert table.entry("T", {"perm": 4, "ofAnotherKind": True}).config is table.get("T")
    assert table.entry("T", {"perm": 6}).config == TopicConfig(topic_name="T", perm=6)


def test_everybody_has_the_old_table_until_the_new_one_is_complete(
    files: FaultyFiles, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_table, "PORTION", 2)
    table = topic_table(files, clock)
    table.put_many(TopicConfig(topic_name=f"old{number}") for number in range(3))
    old = table.version, table.change_count, table.encode()
    entries = {f"new{number}": table.entry(f"new{number}", {}) for number in range(7)}
    steps = table.replacing(entries, DataVersion(counter=9))
    for _ in range(3):
        next(steps)
        assert (table.version, table.change_count, table.encode()) == old
    assert list(steps) == []
    assert table.names() == list(entries)
    assert table.version.counter == 9


@pytest.mark.parametrize("is_seen", [False, True])
def test_an_entry_that_is_changed_meanwhile_becomes_what_the_replica_read(
    files: FaultyFiles, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, *, is_seen: bool
) -> None:
    """Before or after it was found to be the same."""
    monkeypatch.setattr(config_table, "PORTION", 1)
    table = topic_table(files, clock)
    names = ["T0", "T1"]
    table.put_many(TopicConfig(topic_name=name, perm=4) for name in names)
    read = {name: table.entry(name, {"perm": 4}) for name in names}
    steps = table.replacing(read, DataVersion(counter=9))
    next(steps)
    changed = names[0] if is_seen else names[1]
    table.put(TopicConfig(topic_name=changed, perm=2))
    table.put(TopicConfig(topic_name="T2"))
    while table.freshen():
        pass
    assert list(steps) == [None]
    assert table.names() == names
    assert table.rows_of(names).count(b'"perm":4') == 2


def test_the_text_of_many_entries_is_rendered_in_portions(
    files: FaultyFiles, clock: FakeClock
) -> None:
    table = topic_table(files, clock)
    table.put_many(TopicConfig(topic_name=f"T{number}") for number in range(ROWS_AT_ONCE * 2 + 1))
    assert [table.freshen() for _ in range(4)] == [True, True, False, False]
    table.put(TopicConfig(topic_name="T7", perm=2))
    assert not table.is_fresh
    assert b'"T7":{"order":false,"perm":2,' in table.rows_of(["T8", "T7"])


def test_a_full_disk_is_told_and_made_up_for(files: FaultyFiles, clock: FakeClock) -> None:
    table = topic_table(files, clock)
    files.set_free(0)
    table.put(TopicConfig(topic_name="A"))
    with pytest.raises(DiskFull):
        table.save_if_changed()
    assert "A" in table
    files.set_free(1 << 20)
    table.save_if_changed()
    assert topic_table(files, clock).names() == ["A"]


def test_a_change_during_a_save_in_a_worker_is_not_forgotten(
    files: FaultyFiles, clock: FakeClock
) -> None:
    table = topic_table(files, clock)
    table.put(TopicConfig(topic_name="A"))
    table.put(TopicConfig(topic_name="B"))
    write = table.unsaved()
    assert write is not None
    table.put(TopicConfig(topic_name="C"))
    write()
    assert topic_table(files, clock).names() == ["A", "B"]
    table.save_if_changed()
    assert topic_table(files, clock).names() == ["A", "B", "C"]
    assert table.unsaved() is None


@pytest.mark.parametrize(
    "content",
    [
        b'{"topicConfigTable":[]}',
        b'{"topicConfigTable":{"A":3}}',
        b'{"topicConfigTable":{"A":{"perm":"many"}}}',
        b'{"topicConfigTable":{},"dataVersion":{"counter":"x"}}',
    ],
)
def test_a_foreign_table_is_refused(files: FaultyFiles, clock: FakeClock, content: bytes) -> None:
    files.make_directory("/config")
    files.replace("/config/topics.json", content)
    with pytest.raises(CorruptFile, match=r"topics\.json"):
        topic_table(files, clock)
    assert files.read("/config/topics.json") == content
