"""The key index: its bytes, its answers, and what it does about crashes and full disks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cometmq.base.clock import SystemClock
from cometmq.base.disk import SystemFiles
from cometmq.base.errors import CorruptFile, DiskFull
from cometmq.store.index.index_file import file_bytes
from cometmq.store.index.index_files import IndexFiles, key_prefix
from cometmq.store.store_config import IndexConfig
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import Crashed, FaultyFiles, Moment, Outage

GOLDEN = Path(__file__).parents[3] / "golden"
ALWAYS = (0, 1 << 62)
NOW = 1_700_000_000_000
T = key_prefix("T")


def small_index(files: FaultyFiles, *, slots: int = 4, entries: int = 11) -> IndexFiles:
    config = IndexConfig(slot_count=slots, entry_count=entries)
    return IndexFiles("/index", config, files, FakeClock())


@pytest.fixture
def files() -> FaultyFiles:
    return FaultyFiles(FakeClock())


@pytest.fixture
def index(files: FaultyFiles) -> IndexFiles:
    index = small_index(files)
    index.load(None)
    return index


def golden_records(version: str) -> list[dict[str, Any]]:
    text = (GOLDEN / f"index-{version}.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("version", ["4.9.7", "5.5.0"])
def test_files_are_those_of_a_java_broker_byte_for_byte(version: str, tmp_path: Path) -> None:
    config = IndexConfig(slot_count=100, entry_count=400)
    index = IndexFiles(str(tmp_path), config, SystemFiles(), SystemClock())
    index.load(None)
    for record in golden_records(version):
        keys = [record["uniqKey"]] if record["uniqKey"] else []
        keys += (record["keys"] or "").split()
        if version == "5.5.0" and record["tags"]:
            # The tag entry is 5.5's own; writing it here proves that the rest of the file agrees.
            keys.append("T#" + record["tags"])
        index.add(
            key_prefix(record["topic"]), keys, record["physicalOffset"], record["storeTimestamp"]
        )
    index.close()
    ours = [path.read_bytes() for path in sorted(tmp_path.iterdir())]
    theirs = [path.read_bytes() for path in sorted((GOLDEN / f"index-{version}").iterdir())]
    assert ours == theirs


@pytest.mark.parametrize("version", ["4.9.7", "5.5.0"])
def test_files_of_a_java_broker_answer_queries(version: str, tmp_path: Path) -> None:
    for path in (GOLDEN / f"index-{version}").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    config = IndexConfig(slot_count=100, entry_count=400)
    index = IndexFiles(str(tmp_path), config, SystemFiles(), SystemClock())
    index.load(None)
    records = golden_records(version)
    for record in records:
        if record["uniqKey"]:
            found = index.query(record["topic"], record["uniqKey"], 64, *ALWAYS)
            assert record["physicalOffset"] in found
    assert index.end_offset == max(
        record["physicalOffset"] for record in records if record["uniqKey"]
    )
    index.abandon()


def test_the_newest_comes_first_and_waiting_entries_are_found(index: IndexFiles) -> None:
    for number in range(5):
        index.add(T, ["same", f"k{number}"], number * 100, NOW + number)
    assert index.query("T", "same", 64, *ALWAYS) == [400, 300, 200, 100, 0]
    assert index.query("T", "same", 2, *ALWAYS) == [400, 300]
    index.flush()
    index.add(T, ["same"], 900, NOW + 9)
    assert index.query("T", "same", 64, *ALWAYS) == [900, 400, 300, 200, 100, 0]
    assert index.query("T", "k3", 64, *ALWAYS) == [300]
    assert index.query("Other", "same", 64, *ALWAYS) == []


def test_a_key_named_twice_is_found_once(index: IndexFiles) -> None:
    index.add(T, ["a", "b", "a"], 70, NOW)
    assert index.query("T", "a", 64, *ALWAYS) == [70]


@pytest.mark.parametrize("key", ["k" * 31, "k" * 32, "k" * 33, "k" * 300, "schlüssel", "键", "😀"])
def test_keys_of_any_kind_are_found(index: IndexFiles, key: str) -> None:
    index.add(T, [key], 5, NOW)
    assert index.query("T", key, 64, *ALWAYS) == [5]


def test_a_time_range_is_kept_to_the_second(index: IndexFiles) -> None:
    for number in range(5):
        index.add(T, ["key"], number, NOW + number * 1500)
    in_range = index.query("T", "key", 64, NOW + 1500, NOW + 4500)
    assert in_range == [3, 2, 1]
    # Entry 1 was stored at 1500, but an entry only knows "in the second from 1000 on".
    assert index.query("T", "key", 64, NOW + 1000, NOW + 1400) == [1]
    assert index.query("T", "key", 64, NOW - 9, NOW - 1) == []
    assert index.query("T", "key", 64, NOW + 7000, NOW + 9000) == []


def test_a_full_file_is_followed_by_another_even_within_a_record(
    index: IndexFiles, files: FaultyFiles
) -> None:
    for number in range(4):
        index.add(T, [f"a{number}", f"b{number}", f"c{number}"], number, NOW)
    index.flush()
    assert len(files.names("/index")) == 2
    for number in range(4):
        for letter in "abc":
            assert index.query("T", f"{letter}{number}", 64, *ALWAYS) == [number]
    sizes = {files.size(f"/index/{name}") for name in files.names("/index")}
    assert sizes == {file_bytes(4, 11)}


def test_a_record_may_have_more_keys_than_a_file_has_room(index: IndexFiles) -> None:
    keys = [f"k{number}" for number in range(35)]
    index.add(T, keys, 1, NOW)
    assert index.file_count == 4
    assert all(index.query("T", key, 64, *ALWAYS) == [1] for key in keys)


def test_it_is_all_there_after_a_clean_stop(index: IndexFiles, files: FaultyFiles) -> None:
    for number in range(20):
        index.add(T, [f"k{number}"], number * 10, NOW + number * 1000)
    index.close()
    again = small_index(files)
    again.load(None)
    assert again.end_offset == again.last_update_offset == 190
    assert again.last_update_ms == NOW + 19_000
    again.add(T, ["k19", "new"], 190, NOW)
    again.add(T, ["k20"], 200, NOW + 20_000)
    assert [again.query("T", f"k{number}", 64, *ALWAYS) for number in range(21)] == [
        [number * 10] for number in range(21)
    ]
    # The log is fed again from the last record on; what was in stays in once.
    again.add(T, ["k20"], 200, NOW + 20_000)
    assert again.query("T", "new", 64, *ALWAYS) == [190]


def test_only_durable_full_files_outlive_a_stop_that_lost_writes(
    index: IndexFiles, files: FaultyFiles
) -> None:
    for number in range(25):
        index.add(T, [f"k{number}"], number * 10, NOW + number * 1000)
    assert index.safe_until_ms == 0
    index.flush()
    assert index.safe_until_ms == NOW + 19_000
    safe_until_ms = index.safe_until_ms
    index.add(T, ["k25"], 250, NOW + 25_000)
    files.restart(Outage.POWER_LOSS)
    again = small_index(files)
    again.load(safe_until_ms)
    assert again.end_offset == 190
    assert again.file_count == 2
    for number in range(19, 27):
        again.add(T, [f"k{number}"], number * 10, NOW + number * 1000)
    assert [again.query("T", f"k{number}", 64, *ALWAYS) for number in range(27)] == [
        [number * 10] for number in range(27)
    ]


def test_many_files_of_one_millisecond_are_told_apart_by_their_records(
    index: IndexFiles, files: FaultyFiles
) -> None:
    for number in range(10):
        index.add(T, [f"k{number}"], number * 10, NOW)
    index.flush()
    for number in range(10, 20):
        index.add(T, [f"k{number}"], number * 10, NOW)
    index.write_out()
    files.crash_now()
    files.restart(Outage.PROCESS_KILL)
    again = small_index(files)
    again.load(NOW, safe_record=90)
    assert again.end_offset == 90


def test_a_dropped_file_does_not_come_back_under_a_name_taken_again() -> None:
    for seed in range(30):
        files = FaultyFiles(FakeClock(), seed=seed)
        index = small_index(files)
        index.load(None)
        for number in range(20):
            index.add(T, [f"old{number}"], number * 10, NOW)
        index.flush()
        index.truncate(95)
        index.add(T, ["new"], 100, NOW)
        files.restart(Outage.POWER_LOSS)
        again = small_index(files)
        again.load(NOW, safe_record=90)
        assert again.query("T", "old15", 64, *ALWAYS) == []
        assert again.end_offset == 90


@pytest.mark.parametrize("count", [1, 2, 3, 5, 6])
def test_rows_of_a_replayed_log_are_added_once(files: FaultyFiles, count: int) -> None:
    """The index ends within the keys of a record, or behind them."""
    rows = [(f"{key}{record}", record * 10, NOW + record) for record in (1, 2, 3) for key in "ab"]
    index = small_index(files)
    index.load(None)
    for key, place, time in rows[:count]:
        index.add(T, [key], place, time)
    index.close()
    index = small_index(files)
    index.load(None)
    keys, places, times = map(list, zip(*rows, strict=True))
    index.add_rows([T] * len(rows), keys, places, times)
    assert index.file_count == 1
    for key, place, _ in rows:
        assert index.query("T", key, 9, *ALWAYS) == [place]
    assert index._row[0].count == 1 + len(rows)


@pytest.mark.parametrize("safe_until_ms", [None, NOW])
def test_a_file_without_a_length_is_none(
    index: IndexFiles, files: FaultyFiles, safe_until_ms: int | None
) -> None:
    for number in range(10):
        index.add(T, [f"k{number}"], number, NOW)
    index.close()
    files.create("/index/20331114221320000", 0, allocate=False)
    again = small_index(files)
    again.load(safe_until_ms)
    assert again.end_offset == 9
    assert again.file_count == len(files.names("/index")) == 1


def test_files_past_a_shortened_log_are_dropped(index: IndexFiles, files: FaultyFiles) -> None:
    for number in range(25):
        index.add(T, [f"k{number}"], number * 10, NOW)
    index.flush()
    index.truncate(195)
    assert index.end_offset == 190
    index.truncate(190)
    assert index.end_offset == 90
    index.truncate(0)
    assert index.end_offset == -1
    assert files.names("/index") == []
    index.add(T, ["again"], 0, NOW)
    assert index.query("T", "again", 64, *ALWAYS) == [0]


def test_expired_files_go_but_never_the_last(index: IndexFiles, files: FaultyFiles) -> None:
    for number in range(30):
        index.add(T, [f"k{number}"], number * 10, NOW)
    assert index.delete_before(90) == 0
    assert index.delete_before(91) == 1
    assert index.query("T", "k5", 64, *ALWAYS) == []
    assert index.query("T", "k10", 64, *ALWAYS) == [100]
    assert index.delete_before(1 << 40) == 1
    assert index.delete_before(1 << 40) == 0
    index.flush()
    assert len(files.names("/index")) == 1


def test_a_full_disk_enters_nothing_and_a_retry_enters_once(
    index: IndexFiles, files: FaultyFiles
) -> None:
    files.set_free(0)
    # As many as the first file takes: they wait in memory, and a second file is made when they are written.
    index.add(T, [f"k{number}" for number in range(10)], 0, NOW)
    for _ in range(3):
        with pytest.raises(DiskFull):
            index.add(T, ["a", "b"], 10, NOW)
    assert index.end_offset == 0
    files.set_free(1 << 20)
    index.add(T, ["a", "b"], 10, NOW)
    assert index.query("T", "a", 64, *ALWAYS) == [10]
    assert index.query("T", "b", 64, *ALWAYS) == [10]


def test_waiting_entries_stay_when_the_disk_is_full(files: FaultyFiles) -> None:
    index = small_index(files, slots=4, entries=2000)
    index.load(None)
    for number in range(1000):
        index.add(T, [f"k{number}"], number, NOW)
    files.set_free(0)
    with pytest.raises(DiskFull):
        index.flush()
    assert index.query("T", "k999", 64, *ALWAYS) == [999]
    files.set_free(1 << 20)
    index.close()
    again = small_index(files, slots=4, entries=2000)
    again.load(None)
    assert all(again.query("T", f"k{number}", 64, *ALWAYS) == [number] for number in range(1000))


def test_slots_and_header_are_written_in_parts_and_a_kill_on_the_way_loses_no_key(
    files: FaultyFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cometmq.store.index.index_file.ROUND_ENTRIES", 600)
    monkeypatch.setattr("cometmq.store.index.index_file.PAGES_AT_ONCE", 1)
    index = small_index(files, slots=5000, entries=20_000)
    index.load(None)
    keys = [f"k{number}" for number in range(6000)]
    headers: set[bytes] = set()
    for number, key in enumerate(keys):
        index.add(T, [key], number * 10, NOW)
        headers |= {files.read(f"/index/{name}")[24:40] for name in files.names("/index")}
    # Several rounds were over, and each stated what was entered when it began.
    assert len(headers) > 3
    files.restart(Outage.PROCESS_KILL)
    again = small_index(files, slots=5000, entries=20_000)
    again.load(None, was_killed=True)
    assert 0 < again.end_offset < 59_990
    for number in range(again.end_offset // 10, 6000):
        again.add(T, [keys[number]], number * 10, NOW)
    for number in range(0, 6000, 7):
        assert again.query("T", keys[number], 64, *ALWAYS) == [number * 10]
    again.close()
    once = small_index(files, slots=5000, entries=20_000)
    once.load(None)
    assert all(
        once.query("T", key, 64, *ALWAYS) == [number * 10] for number, key in enumerate(keys)
    )


def test_many_bytes_of_the_log_without_keys_begin_a_round(
    files: FaultyFiles, index: IndexFiles
) -> None:
    index.add(T, ["a"], 0, NOW)
    index.write_out()
    (name,) = files.names("/index")
    assert files.read(f"/index/{name}")[:40] == bytes(40)
    index.add(T, ["b"], 64 << 20, NOW)
    index.write_out()
    assert files.read(f"/index/{name}")[36:40] == (3).to_bytes(4, "big")


def test_a_failed_sync_promises_nothing(index: IndexFiles, files: FaultyFiles) -> None:
    for number in range(12):
        index.add(T, [f"k{number}"], number, NOW + number)
    files.fail_syncs(1)
    with pytest.raises(OSError, match="sync failed"):
        index.flush()
    assert index.safe_until_ms == 0


@pytest.mark.parametrize("moment", list(Moment))
def test_a_kill_at_any_disk_call_loses_no_key_that_was_written_before(moment: Moment) -> None:
    """Entries wait in memory, so the log is fed again from the index's end; nothing may be missing or double then."""
    for calls in range(1, 200):
        files = FaultyFiles(FakeClock(), seed=calls)
        index = small_index(files)
        index.load(None)
        files.crash_in(calls, moment)
        is_over = True
        try:
            for number in range(30):
                index.add(T, [f"k{number}", "same"], number * 10, NOW + number)
                if number % 3 == 2:
                    index.flush()
        except Crashed:
            is_over = False
        files.restart(Outage.PROCESS_KILL)
        again = small_index(files)
        again.load(None, was_killed=True)
        for number in range(max(again.end_offset, 0) // 10, 30):
            again.add(T, [f"k{number}", "same"], number * 10, NOW + number)
        for number in range(30):
            assert again.query("T", f"k{number}", 64, *ALWAYS) == [number * 10], (calls, number)
        everywhere = [number * 10 for number in reversed(range(30))]
        assert again.query("T", "same", 64, *ALWAYS) == everywhere, calls
        again.close()
        # Nothing that would be refused from a stop that seemed clean.
        small_index(files).load(None)
        if is_over:
            return
    pytest.fail("the scenario makes more disk calls than were tried")


def test_half_a_first_header_counts_for_nothing() -> None:
    for seed in range(40):
        files = FaultyFiles(FakeClock(), seed=seed)
        index = small_index(files)
        index.load(None)
        for number in range(5):
            index.add(T, [f"k{number}"], number * 10, NOW)
        # One write for the entries, one for the page of the slots, then the header.
        files.crash_in(3, Moment.MIDDLE)
        with pytest.raises(Crashed, match=r"write 0\+40"):
            index.flush()
        files.restart(Outage.PROCESS_KILL)
        again = small_index(files)
        again.load(None, was_killed=True)
        for number in range(5):
            again.add(T, [f"k{number}"], number * 10, NOW)
        again.close()
        small_index(files).load(None)


@pytest.mark.parametrize(
    ("name", "size"), [("notes.txt", 5), ("2023111422132000", file_bytes(4, 11))]
)
def test_a_foreign_name_is_refused(files: FaultyFiles, name: str, size: int) -> None:
    files.make_directory("/index")
    files.create(f"/index/{name}", size, allocate=False)
    with pytest.raises(CorruptFile, match=name):
        small_index(files).load(None)
    assert files.names("/index") == [name]


@pytest.mark.parametrize("safe_until_ms", [None, 0])
def test_a_file_of_another_size_is_refused(files: FaultyFiles, safe_until_ms: int | None) -> None:
    files.make_directory("/index")
    files.create("/index/20231114221320000", file_bytes(5, 11), allocate=False)
    with pytest.raises(CorruptFile, match="maxHashSlotNum"):
        small_index(files).load(safe_until_ms)
    assert files.names("/index") == ["20231114221320000"]


def test_a_header_that_counts_too_much_is_refused(files: FaultyFiles) -> None:
    files.make_directory("/index")
    file = files.create("/index/20231114221320000", file_bytes(4, 11), allocate=False)
    file.write_at(36, (12).to_bytes(4, "big"))
    with pytest.raises(CorruptFile, match="counts 11 entries"):
        small_index(files).load(None)


def test_a_chain_that_turns_in_circles_ends(index: IndexFiles, files: FaultyFiles) -> None:
    index.add(T, ["a"], 1, NOW)
    index.add(T, ["a"], 2, NOW)
    index.close()
    (name,) = files.names("/index")
    file = files.open(f"/index/{name}", mapped=False)
    entries_at = 40 + 4 * 4
    file.write_at(entries_at + 20 * 1 + 16, (2).to_bytes(4, "big"))
    again = small_index(files)
    again.load(None)
    assert again.query("T", "a", 64, *ALWAYS) == [2, 1]


def test_files_made_in_the_same_millisecond_have_names_in_order(
    index: IndexFiles, files: FaultyFiles
) -> None:
    for number in range(35):
        index.add(T, [f"k{number}"], number, NOW)
    index.flush()
    names = list(files.names("/index"))
    assert len(names) == 4
    assert all(len(name) == 17 for name in names)
    assert int(names[3]) == int(names[0]) + 3
