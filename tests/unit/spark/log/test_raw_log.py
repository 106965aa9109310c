"""The log from end to end: every record once, however it is cut into stretches and windows, and what ends it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from tests.spark.log_stores import LOG_FILE_BYTES, fill, message, unpack_golden

from cometmq.spark.log import raw_log
from cometmq.spark.log.log_options import read_log_options
from cometmq.spark.log.log_reader import DamagedRecord
from cometmq.spark.log.raw_log import StretchTask, stretches_of
from cometmq.store.files import record_scan
from cometmq.store.message_store import MessageStore

COLUMNS = "topic,queueId,queueOffset,body,physicalOffset,storedSize"


def read(root: Path, **values: str) -> list[dict[str, Any]]:
    options = read_log_options({"path": str(root), "scan": "log", "columns": COLUMNS, **values})
    rows: list[dict[str, Any]] = []
    for stretch in stretches_of(options):
        task = StretchTask(options, options.columns)
        rows += [row for batch in task.read(stretch) for row in batch.to_pylist()]
        task.close()
    return rows


def bodies(rows: list[dict[str, Any]]) -> list[str]:
    return [row["body"].decode().rstrip(".") for row in rows]


def log_files(root: Path) -> list[Path]:
    return sorted((root / "commitlog").iterdir())


@pytest.mark.parametrize(("piece", "window"), [(10**9, 10**6), (5_000, 10**6), (700, 300), (91, 1)])
def test_every_record_comes_once_however_the_log_is_cut(
    store: MessageStore, root: Path, monkeypatch: pytest.MonkeyPatch, piece: int, window: int
) -> None:
    monkeypatch.setattr(raw_log, "PIECE_BYTES", piece)
    monkeypatch.setattr(raw_log, "WINDOW_BYTES", window)
    monkeypatch.setattr(record_scan, "SEARCH_BYTES", 100)
    fill(store, "orders", 130)
    fill(store, "bills", 70)
    rows = read(root)
    assert bodies(rows) == [f"orders-{n}" for n in range(130)] + [f"bills-{n}" for n in range(70)]
    ends = [row["physicalOffset"] + row["storedSize"] for row in rows]
    starts = [row["physicalOffset"] for row in rows]
    assert all(
        start == end or start % LOG_FILE_BYTES == 0
        for end, start in zip(ends, starts[1:], strict=False)
    )


def test_records_of_no_queue_are_there_too(store: MessageStore, root: Path) -> None:
    fill(store, "orders", 10)
    fill(store, "bills", 10)
    store.delete_topic("orders")
    half = message("bills", 0, b"half")
    half.sys_flag = 4
    store.put(half)
    assert len(read(root)) == 21
    assert {row["topic"] for row in read(root, topic="orders")} == {"orders"}
    assert len(read(root, topicPattern="b.*", columns="queueOffset")) == 11
    assert len(read(root, topic="orders", tags="a || b")) == 7


def test_a_body_that_holds_a_record_is_not_taken_for_one(
    store: MessageStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_log, "PIECE_BYTES", 300)
    fill(store, "orders", 3)
    inner = log_files(root)[0].read_bytes()[:600]
    for _ in range(5):
        store.put(message("orders", 0, inner))
    assert len(read(root)) == 8


def test_a_last_record_that_is_not_whole_is_not_there(store: MessageStore, root: Path) -> None:
    fill(store, "orders", 20)
    rows = read(root)
    store.close()
    path = log_files(root)[0]
    data = bytearray(path.read_bytes())
    last = rows[-1]["physicalOffset"]
    data[last + 120 : last + 400] = bytes(280)
    path.write_bytes(data)
    assert bodies(read(root)) == bodies(rows)[:-1]
    path.write_bytes(data[: last + 50])
    assert bodies(read(root)) == bodies(rows)[:-1]
    path.write_bytes(data[:last])
    assert bodies(read(root)) == bodies(rows)[:-1]


@pytest.mark.parametrize(
    ("at", "new", "reason"),
    [
        (4, b"\1\2\3\4", "magic 0x1020304"),
        (0, b"\0\0\0\1", "a record of 1 bytes"),
        (0, b"\0\x0f\0\0", "a record that goes beyond the end of its file"),
        (0, bytes(400), "nothing was written"),
        (35, b"\7", "a record of offset"),
        (20 + 28 + 36 + 3, b"\xff", "body of 255 bytes|parts of"),
    ],
)
def test_damage_is_reported_or_stepped_over(
    store: MessageStore,
    root: Path,
    caplog: pytest.LogCaptureFixture,
    at: int,
    new: bytes,
    reason: str,
) -> None:
    fill(store, "orders", 150)
    rows = read(root)
    store.close()
    path = log_files(root)[0]
    data = bytearray(path.read_bytes())
    start = rows[10]["physicalOffset"]
    data[start + at : start + at + len(new)] = new
    path.write_bytes(data)
    with pytest.raises(DamagedRecord, match=rf"{path.name}: damaged at byte {start}: ({reason})"):
        read(root)
    with caplog.at_level(logging.WARNING, "cometmq.spark"):
        left = bodies(read(root, failOnDataLoss="false"))
    kept = [f"orders-{n}" for n in range(150) if n != 10]
    assert left == [body for body in kept if len(new) < 400 or body != "orders-11"]
    assert "record left out" in caplog.text


def test_files_made_ahead_are_passed_over(store: MessageStore, root: Path) -> None:
    fill(store, "orders", 20)
    (root / "commitlog" / f"{LOG_FILE_BYTES:020d}").write_bytes(bytes(LOG_FILE_BYTES))
    assert len(read(root)) == 20


@pytest.mark.parametrize("version", ["4.9.7", "5.5.0"])
def test_a_java_brokers_log_holds_what_its_queues_name(version: str, tmp_path: Path) -> None:
    root = unpack_golden(version, tmp_path)
    expected = (
        Path(__file__).parents[3] / "golden" / f"store-{version}" / "expected.jsonl"
    ).read_text(encoding="utf-8")
    assert len(read(root, checkCrc="true")) == len(expected.splitlines())
