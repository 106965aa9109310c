"""The log inspector over a small log whose content is known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.spark.log_stores import message, open_store

from cometmq.base.errors import UsageError
from cometmq.spark import inspect
from cometmq.spark.log.log_source import RocketMQLogDataSource
from cometmq.testing.fake_clock import FakeClock

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, datetime]:
    """``orders``: a message every 10 s for five minutes, deleted, made anew with four; ``bills``: one large."""
    clock = FakeClock()
    # At the start of a minute, so that every minute has six.
    clock.advance((60_000 - clock.wall_ms() % 60_000) / 1000)
    start = EPOCH + timedelta(milliseconds=clock.wall_ms())
    root = tmp_path_factory.mktemp("inspected") / "store"
    store = open_store(root, clock)
    for number in range(30):
        store.put(message("orders", number % 2, b"x" * (number % 3), "ab"[number % 5 == 0]))
        clock.advance(10)
    store.put(message("bills", 0, b"y" * 1000))
    half = message("bills", 0, b"z")
    half.sys_flag = 4
    store.put(half)
    store.delete_topic("orders")
    for body in (b"", b"", b"", b"last"):
        store.put(message("orders", 0, body))
    store.close()
    # One record is lost: its size stays, so that all others are found.
    log_file = root / "commitlog" / ("0" * 20)
    data = bytearray(log_file.read_bytes())
    sizes: list[tuple[int, int]] = []
    at = 0
    while len(sizes) < 8:
        sizes.append((at, int.from_bytes(data[at : at + 4], "big")))
        at += sizes[-1][1]
    lost, size = sizes[6]
    data[lost : lost + size] = b"\xee" * size
    log_file.write_bytes(data)
    return str(root), start


@pytest.fixture
def records(spark: Any, log: tuple[str, datetime]) -> Any:
    spark.dataSource.register(RocketMQLogDataSource)
    return inspect.log_records(spark, log[0], failOnDataLoss="false")


def rows(frame: Any, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.select(*columns).collect()]


def test_sizes(records: Any) -> None:
    frame = inspect.sizes(records)
    assert rows(frame, "topic", "messages", "queues") == [("orders", 33, 2), ("bills", 2, 1)]
    (bills,) = frame.where("topic = 'bills'").collect()
    assert bills["max_bytes"] - bills["min_bytes"] == 999 + len("k1000") - len("k1")
    assert bills["bytes"] == bills["max_bytes"] + bills["min_bytes"]


def test_rates(records: Any, log: tuple[str, datetime]) -> None:
    frame = inspect.rates(records.where("topic = 'orders'"))
    found = rows(frame, "messages", "messages_per_second")
    # The seventh was lost, and the new topic has its four in the sixth minute.
    assert found == [(6, 0.1), (5, 0.1), (6, 0.1), (6, 0.1), (6, 0.1), (4, 0.1)]
    starts = rows(frame.selectExpr("unix_seconds(start) as start"), "start")
    assert starts[0] == (log[1].timestamp(),)
    assert inspect.rates(records, every="1 hour").count() >= 2


def test_top_keys_and_tags(records: Any) -> None:
    tags = inspect.top_tags(records)
    assert rows(tags, "topic", "tags", "messages") == [("orders", "a", 23), ("orders", "b", 6)]
    keys = inspect.top_keys(records, count=1)
    assert rows(keys, "topic", "key", "messages") == [("orders", "k0", 12)]
    with pytest.raises(UsageError, match="at least 1"):
        inspect.top_keys(records, count=0)


def test_gaps(records: Any) -> None:
    found = rows(inspect.gaps(records), "topic", "queueId", "first_missing", "last_missing")
    # Queue 0 has offset 3 again, from after the topic was made anew.
    assert found == []
    before = records.where("tags is not null")
    found = rows(inspect.gaps(before), "topic", "queueId", "first_missing", "missing")
    assert found == [("orders", 0, 3, 1)]


def test_duplicates(records: Any) -> None:
    found = rows(inspect.duplicate_offsets(records), "topic", "queueId", "queueOffset", "copies")
    assert found == [("orders", 0, offset, 2) for offset in (0, 1, 2)]
    assert inspect.duplicate_messages(records).count() == 0
    again = records.union(records.where("queueId = 1 and queueOffset = 2"))
    (twice,) = inspect.duplicate_messages(again).collect()
    assert (twice["copies"], len(twice["at"])) == (2, 2)
