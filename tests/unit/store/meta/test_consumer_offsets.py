"""Consumer offsets: commits, queries, and the files of Java brokers."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from cometmq.base.errors import CorruptFile
from cometmq.protocol import fastjson
from cometmq.store.meta import consumer_offsets as offsets
from cometmq.store.meta.consumer_offsets import OffsetTable
from cometmq.store.meta.rendered_rows import ROWS_AT_ONCE
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles

GOLDEN = Path(__file__).parents[3] / "golden"
PATH = "/config/consumerOffset.json"


@pytest.fixture
def files() -> FaultyFiles:
    files = FaultyFiles(FakeClock())
    files.make_directory("/config")
    return files


@pytest.fixture
def table(files: FaultyFiles) -> OffsetTable:
    return loaded(files)


def loaded(files: FaultyFiles) -> OffsetTable:
    table = OffsetTable("/config", files, FakeClock())
    table.load()
    return table


def golden(version: str) -> bytes:
    return (GOLDEN / f"config-{version}" / "consumerOffset.json").read_bytes()


def test_what_was_committed_is_told(table: OffsetTable) -> None:
    assert table.query("G", "T", 0) == -1
    table.commit("G", "T", 0, 5)
    table.commit("G", "T", 1, 7)
    table.commit("G", "T", 0, 3)
    assert table.query("G", "T", 0) == 3
    assert table.query("G", "T", 2) == -1
    assert table.offsets("G", "T") == {0: 3, 1: 7}
    assert table.offsets("G", "U") == {}
    table.offsets("G", "T")[0] = 99
    assert table.query("G", "T", 0) == 3


def test_topics_and_groups_find_each_other(table: OffsetTable) -> None:
    table.commit("G", "T", 0, 1)
    table.commit("G", "U", 0, 1)
    table.commit("H", "T", 0, 1)
    assert table.topics_of("G") == {"T", "U"}
    assert table.groups_of("T") == {"G", "H"}
    table.remove_topic("T")
    assert table.topics_of("G") == {"U"}
    assert table.groups_of("T") == set()
    assert table.query("H", "T", 0) == -1
    table.remove_group("G")
    assert table.topics_of("G") == set()
    assert fastjson.loads(table.encode())["offsetTable"] == {}


def test_a_clone_starts_where_the_other_is(table: OffsetTable) -> None:
    table.commit("G", "T", 0, 5)
    table.commit("G", "U", 3, 6)
    table.clone("G", "H", "T")
    assert table.topics_of("H") == {"T"}
    table.clone("G", "I")
    assert (table.query("I", "T", 0), table.query("I", "U", 3)) == (5, 6)


def test_only_a_change_is_saved(files: FaultyFiles, table: OffsetTable) -> None:
    calls = files.call_count
    table.save_if_changed()
    assert files.call_count == calls
    table.commit("G", "T", 0, 5)
    table.save_if_changed()
    assert loaded(files).query("G", "T", 0) == 5
    calls = files.call_count
    table.commit("G", "T", 0, 5)
    table.save_if_changed()
    assert files.call_count == calls


def test_the_file_is_written_as_java_4_9_does(files: FaultyFiles) -> None:
    files.replace(PATH, golden("4.9.7"))
    table = loaded(files)
    assert table.offsets("CG_normal", "TopicNormal") == {0: 30, 1: 30, 2: 30, 3: 30}
    table.commit("CG_normal", "TopicNormal", 0, 31)
    table.commit("CG_normal", "TopicNormal", 0, 30)
    table.save_if_changed()
    assert files.read(PATH) == golden("4.9.7")


def test_what_5_x_adds_survives(files: FaultyFiles) -> None:
    files.replace(PATH, golden("5.5.0"))
    before = fastjson.loads(golden("5.5.0"))
    table = loaded(files)
    table.commit("CG_new", "TopicNormal", 2, 9)
    table.save_if_changed()
    after = fastjson.loads(files.read(PATH))
    assert after["pullOffsetTable"] == before["pullOffsetTable"]
    assert after["offsetTable"] == {**before["offsetTable"], "TopicNormal@CG_new": {"2": 9}}
    assert after["groupTopicMap"] == {**before["groupTopicMap"], "CG_new": ["TopicNormal"]}
    assert after["dataVersion"]["counter"] == before["dataVersion"]["counter"] + 1
    assert b"{2:9\n" in files.read(PATH)
    table.remove_group("CG_normal")
    table.save_if_changed()
    gone = fastjson.loads(files.read(PATH))
    assert "CG_normal" not in gone["groupTopicMap"]
    assert not any(key.endswith("@CG_normal") for key in gone["offsetTable"])


def test_the_topics_of_many_groups_are_rendered_in_portions(files: FaultyFiles) -> None:
    """As 5.x lists them in its file."""
    groups = [f"G{number}" for number in range(ROWS_AT_ONCE * 3)]
    content = {
        "groupTopicMap": {group: ["T"] for group in groups},
        "offsetTable": {f"T@{group}": {"0": 1} for group in groups},
    }
    files.replace(PATH, fastjson.dumps(content))
    table = loaded(files)
    assert [table.freshen() for _ in range(6)] == [True] * 4 + [False] * 2
    table.remove("G0", "T")
    assert table.is_fresh
    table.commit("G1", "T2", 0, 5)
    table.commit("New", "T", 0, 5)
    assert not table.is_fresh
    table.save_if_changed()
    left = content["groupTopicMap"] | {"G1": ["T", "T2"], "New": ["T"]}
    del left["G0"]
    assert fastjson.loads(files.read(PATH))["groupTopicMap"] == left


def test_what_was_pulled_is_saved_along_with_offsets(
    files: FaultyFiles, table: OffsetTable
) -> None:
    table.pulled("G", "T", 0, 7)
    table.pulled("only", "T", 1, 9)
    assert table.unsaved() is None
    table.commit("G", "T", 0, 5)
    table.save_if_changed()
    again = loaded(files)
    assert again.pull_offset("G", "T", 0) == 7
    assert again.pull_offset("only", "T", 1) == 9
    assert again.query("only", "T", 1) == -1


@pytest.mark.parametrize("is_topic", [True, False])
def test_what_was_pulled_goes_with_its_topic_and_its_group(
    table: OffsetTable, is_topic: bool
) -> None:
    table.pulled("G", "T", 0, 7)
    table.pulled("G", "U", 0, 7)
    table.pulled("H", "T", 0, 7)
    table.commit("G", "T", 0, 5)
    table.reset("G", "T", 0, 3)
    if is_topic:
        table.remove_topic("T")
    else:
        table.remove_group("G")
    assert table.pull_offset("G", "T", 0) == -1
    assert not table.is_reset("G", "T", 0)
    assert table.pull_offset("G", "U", 0) == (7 if is_topic else -1)
    assert table.pull_offset("H", "T", 0) == (-1 if is_topic else 7)


def test_of_too_many_groups_nothing_more_is_recorded(
    table: OffsetTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offsets, "PULLED_MAX", 2)
    for number in range(3):
        table.pulled(f"G{number}", "T", 0, 7)
    table.pulled("G0", "T", 0, 8)
    found = [table.pull_offset(f"G{number}", "T", 0) for number in range(3)]
    assert found == [8, 7, -1]


def test_a_reset_is_told_once_and_goes_with_the_process(
    files: FaultyFiles, table: OffsetTable
) -> None:
    table.commit("G", "T", 0, 9)
    table.reset("G", "T", 0, 4)
    table.reset("G", "T", 1, 6)
    assert (table.query("G", "T", 0), table.pull_offset("G", "T", 0)) == (4, 4)
    assert table.take_reset("G", "T", 2) is None
    assert table.take_reset("G", "T", 0) == 4
    assert table.take_reset("G", "T", 0) is None
    table.save_if_changed()
    assert loaded(files).query("G", "T", 1) == 6
    assert not loaded(files).is_reset("G", "T", 1)


def test_a_replica_gets_one_line_with_plain_integer_keys(table: OffsetTable) -> None:
    table.commit("G", "T", 0, 5)
    assert b'"offsetTable":{"T@G":{0:5}}' in table.encode()
    assert b"\n" not in table.encode()


def test_a_replica_gets_no_pull_offsets(table: OffsetTable) -> None:
    """A slave of RocketMQ 5.5 does not understand them, even its own master's, and would take over nothing."""
    table.commit("G", "T", 0, 5)
    table.pulled("G", "T", 0, 7)
    table.save_if_changed()
    assert set(fastjson.loads(table.encode())) == {"dataVersion", "offsetTable"}
    table.commit("G", "T", 0, 6)
    assert fastjson.loads(table.encode())["offsetTable"] == {"T@G": {"0": 6}}


def test_a_replica_gets_a_version(table: OffsetTable) -> None:
    """A slave of RocketMQ 5 fails without one, after it has taken over the offsets and before it saves them."""
    table.commit("G", "T", 0, 5)
    first = fastjson.loads(table.encode())["dataVersion"]
    table.commit("G", "T", 0, 6)
    second = fastjson.loads(table.encode())["dataVersion"]
    assert set(first) == {"counter", "stateVersion", "timestamp"}
    assert second["counter"] > first["counter"]


def test_a_replica_takes_the_whole_table(files: FaultyFiles, table: OffsetTable) -> None:
    table.commit("old", "T", 0, 5)
    table.replace_all({"T@G": {0: 8}})
    assert table.topics_of("old") == set()
    assert table.groups_of("T") == {"G"}
    table.save_if_changed()
    assert loaded(files).query("G", "T", 0) == 8


def test_a_large_table_is_taken_over_in_portions(
    table: OffsetTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offsets, "PORTION", 3)
    for number in range(7):
        table.commit(f"old{number}", "T", 0, 5)
    changes = [table.change_count]
    steps = table.replacing({f"T@new{number}": {0: 8} for number in range(7)})
    changes += [table.change_count for _ in steps]
    changes.append(table.change_count)
    assert max(after - before for before, after in pairwise(changes)) == 3
    assert table.groups_of("T") == {f"new{number}" for number in range(7)}


def test_no_group_goes_on_behind_the_end_of_a_queue(files: FaultyFiles, table: OffsetTable) -> None:
    for queue_id, offset in enumerate((4, 5, 6)):
        table.commit("G", "T", queue_id, offset)
    table.commit("G", "Gone", 0, 3)
    table.commit("CID_RMQ_SYS_TRANS_SEEN", "T", 0, 1_000_000)
    table.save_if_changed()
    assert table.cut(lambda topic, queue_id: 5 if topic == "T" else 0) == 2
    table.save_if_changed()
    again = loaded(files)
    assert again.offsets("G", "T") == {0: 4, 1: 5, 2: 5}
    assert again.query("G", "Gone", 0) == 0
    assert again.query("CID_RMQ_SYS_TRANS_SEEN", "T", 0) == 1_000_000
    assert again.cut(lambda topic, queue_id: 5) == 0


@pytest.mark.parametrize(
    "content",
    [
        b'{"offsetTable":[]}',
        b'{"offsetTable":{"T@G":7}}',
        b'{"offsetTable":{"T@G":{"x":7}}}',
        b'{"offsetTable":{"T@G":{0:"x"}}}',
        b'{"offsetTable":{"T@G":{0:null}}}',
    ],
)
def test_a_foreign_table_is_refused(files: FaultyFiles, content: bytes) -> None:
    files.replace(PATH, content)
    with pytest.raises(CorruptFile, match=r"consumerOffset\.json"):
        loaded(files)
    assert files.read(PATH) == content
