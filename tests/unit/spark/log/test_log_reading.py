"""Reading a store's directory without Spark: what is planned, and what a task makes of it."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from tests.spark.log_stores import LOG_FILE_BYTES, fill, message, open_store

from cometmq.spark.errors import BadOption, DataLost
from cometmq.spark.log import log_reader
from cometmq.spark.log.log_arrays import open_directory
from cometmq.spark.log.log_options import read_log_options
from cometmq.spark.log.log_planner import LogPlanner, NoSuchTopic
from cometmq.spark.log.log_reader import DamagedRecord, LogTask
from cometmq.store.files.store_directory import NoStore
from cometmq.store.message_store import MessageStore
from cometmq.testing.fake_clock import FakeClock


def read(root: Path, **options: Any) -> list[dict[str, Any]]:
    """All rows of a batch, in the order of its tasks."""
    rows: list[dict[str, Any]] = []
    for _, batches in read_tasks(root, **options):
        rows += batches
    return rows


def read_tasks(root: Path, **options: Any) -> list[tuple[Any, list[dict[str, Any]]]]:
    parsed = read_log_options({"path": str(root), **{k: str(v) for k, v in options.items()}})
    planner = LogPlanner(parsed)
    found = []
    for piece in planner.batch():
        task = LogTask(parsed, parsed.columns)
        rows = [row for batch in task.read(piece) for row in batch.to_pylist()]
        task.close()
        found.append((piece, rows))
    planner.close()
    return found


def bodies(rows: list[dict[str, Any]]) -> list[str]:
    return [row["body"].decode().rstrip(".") for row in rows]


def numbers(topic: str, *those: int) -> set[str]:
    return {f"{topic}-{number}" for number in those}


def snapshot(root: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def test_every_message_of_a_topic_comes_once_in_the_order_of_the_log(
    store: MessageStore, root: Path
) -> None:
    for start in range(0, 300, 10):
        fill(store, "orders", 10, start=start)
        fill(store, "bills", 3, start=start)
    store.flush()
    rows = read(root, topic="orders", brokerName="a")
    assert bodies(rows) == [f"orders-{number}" for number in range(300)]
    assert {row["brokerName"] for row in rows} == {"a"}
    assert [(row["queueId"], row["queueOffset"]) for row in rows] == [
        (number % 2, number // 2) for number in range(300)
    ]


def test_without_a_topic_all_are_read_and_a_pattern_picks(store: MessageStore, root: Path) -> None:
    fill(store, "orders", 5)
    fill(store, "order-items", 5)
    fill(store, "bills", 5)
    store.flush()
    assert len(read(root)) == 15
    assert {row["topic"] for row in read(root, topicPattern="order.*")} == {
        "orders",
        "order-items",
    }
    assert len(read(root, topic="orders, bills")) == 10


def test_nothing_in_the_directory_changes_and_it_may_be_read_only(
    store: MessageStore, root: Path
) -> None:
    fill(store, "orders", 200)
    store.flush()
    before = snapshot(root)
    assert len(read(root, topic="orders", minPartitions=3, checkCrc="true")) == 200
    assert snapshot(root) == before


def test_tags_are_compared_exactly(store: MessageStore, root: Path) -> None:
    fill(store, "orders", 30)
    # Two texts with one hash.
    store.put(message("orders", 0, b"Aa", "Aa"))
    store.put(message("orders", 0, b"BB", "BB"))
    store.flush()
    assert bodies(read(root, topic="orders", tags="BB")) == ["BB"]
    found = read(root, topic="orders", tags="a || Aa")
    assert {row["tags"] for row in found} == {"a", "Aa"}
    assert len(found) == 11
    assert read(root, topic="orders", tags="nobody") == []


def test_tasks_are_stretches_of_the_log(store: MessageStore, root: Path) -> None:
    fill(store, "orders", 300, queues=4)
    store.flush()
    tasks = read_tasks(root, topic="orders", minPartitions=7)
    assert len(tasks) >= 7
    every = [row for _, rows in tasks for row in rows]
    assert bodies(every) == [f"orders-{number}" for number in range(300)]
    assert max(len(piece) for piece, _ in tasks) == 4
    limited = read_tasks(root, topic="orders", maxRecordsPerPartition=10)
    assert all(len(rows) <= 10 for _, rows in limited)
    assert sum(len(rows) for _, rows in limited) == 300


def test_small_windows_give_the_same_rows(
    store: MessageStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for start in range(0, 120, 4):
        fill(store, "orders", 4, queues=3, start=start)
        fill(store, "bills", 20, start=start)
    store.flush()
    expected = read(root, topic="orders")
    assert len(expected) == 120
    for window, gap, entries in ((1, 0, 7), (1_000, 0, 50), (5_000, 3_000, 1), (10**6, 10**6, 9)):
        monkeypatch.setattr(log_reader, "WINDOW_BYTES", window)
        monkeypatch.setattr(log_reader, "GAP_BYTES", gap)
        monkeypatch.setattr(log_reader, "ENTRIES_MAX", entries)
        assert read(root, topic="orders") == expected


def test_start_and_end_by_offsets_words_and_time(
    store: MessageStore, root: Path, clock: FakeClock
) -> None:
    fill(store, "orders", 10)
    clock.advance(60)
    middle_ms = clock.wall_ms()
    fill(store, "orders", 10, start=10)
    store.flush()
    assert set(bodies(read(root, topic="orders", startingTimestamp=middle_ms))) == numbers(
        "orders", *range(10, 20)
    )
    assert set(bodies(read(root, topic="orders", endingTimestamp=middle_ms))) == numbers(
        "orders", *range(10)
    )
    assert read(root, topic="orders", startingOffsets="latest") == []
    start = {"orders": {"log": {"0": 8, "1": -1}}}
    end = {"orders": {"log": {"0": 9}}}
    found = read(
        root,
        topic="orders",
        startingOffsets=json.dumps(start),
        endingOffsets=json.dumps(end),
    )
    assert bodies(found) == ["orders-16"]


def test_columns_are_chosen_and_the_place_in_the_log_may_be_asked_for(
    store: MessageStore, root: Path
) -> None:
    fill(store, "orders", 3)
    store.flush()
    rows = read(root, topic="orders", columns="storedSize, physicalOffset,queueId")
    assert list(rows[0]) == ["queueId", "physicalOffset", "storedSize"]
    assert rows[1]["physicalOffset"] == rows[0]["storedSize"]
    assert "body" not in read(root, topic="orders", includeBody="false")[0]


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"path": ""}, "option path"),
        ({"topic": "a", "topicPattern": "b"}, "topicPattern"),
        ({"topicPattern": "("}, "regular expression"),
        ({"sql": "a > 1"}, "where"),
        ({"startingOffsets": "group"}, "rocketmq"),
        ({"columns": "physical"}, "physicalOffset"),
        ({"topik": "a"}, "did you mean topic"),
        ({"minRowsPerTrigger": "9", "maxRowsPerTrigger": "8"}, "at most"),
        ({"scan": "log", "startingOffsets": "latest"}, "scan=log"),
    ],
)
def test_bad_options_are_named(options: Mapping[str, str], part: str) -> None:
    with pytest.raises(BadOption, match=part.replace("(", r"\(")):
        read_log_options({"path": "/somewhere", **options})


def test_a_directory_that_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoStore, match="storePathRootDir"):
        read(tmp_path)


def test_a_topic_that_is_not_there_is_named(store: MessageStore, root: Path) -> None:
    fill(store, "orders", 3)
    store.flush()
    with pytest.raises(NoSuchTopic, match=r"bills.*there are orders"):
        read(root, topic="bills,orders")
    store.delete_topic("orders")
    with pytest.raises(NoSuchTopic):
        read(root, topic="orders")


def test_batch_queues_are_refused_with_advice(store: MessageStore, root: Path) -> None:
    fill(store, "orders", 3)
    store.flush()
    (root / "batchconsumequeue" / "inner" / "0").mkdir(parents=True)
    with pytest.raises(NoSuchTopic, match="BatchCQ"):
        read(root, topic="inner")


def test_log_files_may_lie_in_directories_of_their_own(store: MessageStore, root: Path) -> None:
    fill(store, "orders", 300)
    store.flush()
    copy = root.parent / "copy"
    shutil.copytree(root, copy)
    files = sorted((copy / "commitlog").iterdir())
    assert len(files) > 2
    for number, path in enumerate(files):
        target = root.parent / f"disk{number % 2}"
        target.mkdir(exist_ok=True)
        path.rename(target / path.name)
    (copy / "commitlog").rmdir()
    paths = f"{root.parent}/disk0, {root.parent}/disk1/"
    assert len(read(copy, topic="orders", commitLogPath=paths)) == 300
    with pytest.raises(NoStore, match="commitlog"):
        read(copy, topic="orders")


def test_an_empty_queue_gives_no_rows(store: MessageStore, root: Path) -> None:
    fill(store, "orders", 3)
    store.flush()
    (root / "consumequeue" / "orders" / "7").mkdir()
    (root / "consumequeue" / "quiet" / "0").mkdir(parents=True)
    (root / "consumequeue" / "quiet" / "0" / ("0" * 20)).write_bytes(bytes(400))
    assert len(read(root, topic="orders,quiet")) == 3
    assert read(root, topic="quiet") == []


def test_entries_without_a_whole_record_do_not_count(store: MessageStore, root: Path) -> None:
    fill(store, "orders", 100)
    store.flush()
    copy = root.parent / "copy"
    shutil.copytree(root, copy)
    log_file = sorted((copy / "commitlog").iterdir())[0]
    place = read(copy, topic="orders", columns="physicalOffset,storedSize,queueId,queueOffset")[60]
    # The end of this record was never written, nor was anything behind it.
    cut = place["physicalOffset"] + place["storedSize"] - 20
    assert cut < LOG_FILE_BYTES
    for other in sorted((copy / "commitlog").iterdir())[1:]:
        other.unlink()
    data = log_file.read_bytes()
    log_file.write_bytes(data[:cut].ljust(LOG_FILE_BYTES, b"\0"))
    assert bodies(read(copy, topic="orders")) == [f"orders-{number}" for number in range(60)]
    # The same when the copy of the file ends there.
    log_file.write_bytes(data[:cut])
    assert bodies(read(copy, topic="orders")) == [f"orders-{number}" for number in range(60)]
    end = json.dumps({"orders": {"log": {"0": 45}}})
    with pytest.raises(DataLost, match="wanted offsets 0 to 45, available are 0 to 30"):
        read(copy, topic="orders", endingOffsets=end)


def test_expired_log_files_move_the_start(
    store: MessageStore, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(store, "orders", 300)
    store.flush()
    copy = root.parent / "copy"
    shutil.copytree(root, copy)
    first = sorted((copy / "commitlog").iterdir())[0]
    first.unlink()
    left = read(copy, topic="orders", columns="queueId,queueOffset,body")
    count = len(left)
    assert 0 < count < 300
    assert bodies(left) == [f"orders-{number}" for number in range(300 - count, 300)]
    start = json.dumps({"orders": {"log": {"0": 0, "1": 0}}})
    with pytest.raises(DataLost, match="queue=0: wanted offsets 0 to 150"):
        read(copy, topic="orders", startingOffsets=start)
    with caplog.at_level(logging.WARNING, "cometmq.spark"):
        kept = read(copy, topic="orders", startingOffsets=start, failOnDataLoss="false")
    assert bodies(kept) == bodies(left)
    assert "messages are gone topic=orders" in caplog.text


@pytest.mark.parametrize("is_listed_anew", [True, False])
def test_files_that_vanish_after_planning_are_a_loss(
    store: MessageStore, root: Path, is_listed_anew: bool
) -> None:
    fill(store, "orders", 300)
    store.flush()
    copy = root.parent / "copy"
    shutil.copytree(root, copy)
    for fail in ("true", "false"):
        options = read_log_options({"path": str(copy), "topic": "orders", "failOnDataLoss": fail})
        (piece,) = LogPlanner(options).batch()
        first = sorted((copy / "commitlog").iterdir())[0]
        hidden = copy / "hidden"
        task = None if is_listed_anew else LogTask(options, ("queueId", "body"))
        first.rename(hidden)
        task = task or LogTask(options, ("queueId", "body"))
        if fail == "true":
            with pytest.raises(DataLost, match="wanted offsets 0 to"):
                list(task.read(piece))
        else:
            rows = [row for batch in task.read(piece) for row in batch.to_pylist()]
            assert 0 < len(rows) < 300
            assert bodies(rows)[-1] == "orders-299"
        hidden.rename(first)


def test_a_queue_that_vanishes_after_planning_is_a_loss(store: MessageStore, root: Path) -> None:
    fill(store, "orders", 50)
    store.flush()
    options = read_log_options({"path": str(root), "topic": "orders"})
    (piece,) = LogPlanner(options).batch()
    store.delete_topic("orders")
    with pytest.raises(DataLost, match="available are 0 to 0"):
        list(LogTask(options, ("body",)).read(piece))


def test_damage_is_named_with_its_place_or_left_out(
    store: MessageStore, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(store, "orders", 60)
    store.flush()
    copy = root.parent / "copy"
    shutil.copytree(root, copy)
    places = read(copy, topic="orders", columns="physicalOffset")
    log_file = sorted((copy / "commitlog").iterdir())[0]
    data = bytearray(log_file.read_bytes())
    data[places[20]["physicalOffset"] + 95] ^= 1  # in the body
    data[places[30]["physicalOffset"] + 5] ^= 1  # in the magic
    log_file.write_bytes(data)
    with pytest.raises(DamagedRecord, match=rf"{log_file.name}.*topic=orders.*magic"):
        read(copy, topic="orders")
    with caplog.at_level(logging.WARNING, "cometmq.spark"):
        rows = read(copy, topic="orders", failOnDataLoss="false", checkCrc="true")
    expected = [f"orders-{number}" for number in range(60) if number not in (20, 30)]
    assert bodies(rows) == expected
    assert "checksum" in caplog.text
    assert len(read(copy, topic="orders", failOnDataLoss="false")) == 59


def test_fillers_before_the_first_entry_are_not_messages(tmp_path: Path) -> None:
    """A replica that joined late: its first queue file begins with fillers."""
    store = open_store(tmp_path / "store")
    fill(store, "orders", 60, queues=1)
    store.flush()
    root = Path(store.config.root)
    queue_file = root / "consumequeue" / "orders" / "0" / ("0" * 20)
    filler = bytes(8) + b"\x7f\xff\xff\xff" + bytes(8)
    queue_file.write_bytes(filler * 5 + queue_file.read_bytes()[100:])
    rows = read(root, topic="orders")
    assert [row["queueOffset"] for row in rows] == list(range(5, 60))
    store.close()


def test_a_running_store_is_read_as_far_as_its_queue_files_go(
    store: MessageStore, root: Path
) -> None:
    fill(store, "orders", 10)
    store.flush()
    fill(store, "orders", 10, start=10)
    assert len(read(root, topic="orders")) == 10
    store.maintain()
    assert len(read(root, topic="orders")) == 20


# ── streams ──


def test_no_file_stays_open(store: MessageStore, root: Path) -> None:
    fill(store, "orders", 300)
    store.flush()
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    directory = open_directory(read_log_options({"path": str(root)}))
    directory.log.read(0, 10)
    directory.close()
    read(root, topic="orders")
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
