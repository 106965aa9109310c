"""``rocketmq-log`` in a Spark session: batches, streams, and what the user is told."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from tests.spark.log_stores import fill, open_store, unpack_golden

from cometmq.spark.columns.schema import COLUMNS, LOG_COLUMNS, arrow_schema, spark_schema
from cometmq.spark.log.log_source import RocketMQLogDataSource
from cometmq.store.message_store import MessageStore
from cometmq.testing.fake_clock import FakeClock


@pytest.fixture(autouse=True)
def format_is_known(spark: Any) -> None:
    spark.dataSource.register(RocketMQLogDataSource)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MessageStore]:
    store = open_store(tmp_path / "store")
    yield store
    store.close()


@pytest.fixture
def root(store: MessageStore) -> str:
    return store.config.root


def damaged_copy(root: str, place: Callable[[bytes], int]) -> str:
    """Of a store, with one bit of its first log file turned over."""
    copy = Path(root).with_name("copy")
    shutil.copytree(root, copy)
    file = min((copy / "commitlog").iterdir())
    data = bytearray(file.read_bytes())
    data[place(bytes(data))] ^= 1
    file.write_bytes(data)
    return str(copy)


def test_a_table_of_all_columns(spark: Any, store: MessageStore, root: str) -> None:
    fill(store, "orders", 120, queues=3)
    store.flush()
    table = spark.read.format("rocketmq-log").option("topic", "orders").load(root)
    assert tuple(table.columns) == COLUMNS
    rows = table.orderBy("queueId", "queueOffset").collect()
    assert [(row.queueId, row.queueOffset) for row in rows] == [
        (queue, offset) for queue in range(3) for offset in range(40)
    ]
    first = rows[0]
    assert bytes(first.body).startswith(b"orders-0.")
    assert first.properties == {"KEYS": "k100", "TAGS": "a"}
    assert (first.brokerName, first.tags, first.storeHost) == ("log", "a", "127.0.0.1:10911")
    assert table.where("tags = 'b'").count() == 40


def test_arrow_and_spark_name_the_same_types(spark: Any) -> None:
    every = COLUMNS + LOG_COLUMNS
    schema = spark.createDataFrame([], spark_schema(every)).schema
    assert to_arrow_schema(schema, timezone="UTC") == arrow_schema(every)


def test_options_reach_the_tasks(spark: Any, store: MessageStore, root: str) -> None:
    fill(store, "orders", 90)
    store.flush()
    table = (
        spark.read.format("rocketmq-log")
        .options(
            path=root,
            topicPattern="ord.*",
            tags="a || c",
            columns="queueOffset,tags,storedSize",
            minPartitions=4,
            startingOffsets=json.dumps({"orders": {"log": {"0": 40}}}),
            brokerName="log",
        )
        .load()
    )
    assert table.columns == ["queueOffset", "tags", "storedSize"]
    assert table.rdd.getNumPartitions() >= 4
    # Of queue 0 the last five, of queue 1 all.
    assert {row.tags for row in table.collect()} == {"a", "c"}
    assert table.count() == 3 + 30


def test_a_schema_of_the_users_own_picks_columns(
    spark: Any, store: MessageStore, root: str
) -> None:
    fill(store, "orders", 5)
    store.flush()
    reader = spark.read.format("rocketmq-log").option("topic", "orders")
    assert reader.schema("tags string, queueOffset bigint").load(root).count() == 5
    with pytest.raises(Exception, match="expected some of the columns"):
        reader.schema("colour string").load(root).collect()


def test_a_java_brokers_directory(spark: Any, tmp_path: Path) -> None:
    root = unpack_golden("4.9.7", tmp_path)
    table = spark.read.format("rocketmq-log").option("topic", "TopicNormal").load(str(root))
    counts = {row.tags: row["count"] for row in table.groupBy("tags").count().collect()}
    assert sum(counts.values()) == 120
    assert counts[None] == 12


def test_the_whole_log_in_its_order(spark: Any, store: MessageStore, root: str) -> None:
    fill(store, "orders", 30)
    fill(store, "payments", 30)
    store.flush()
    reader = spark.read.format("rocketmq-log").options(scan="log", columns="topic,physicalOffset")
    rows = reader.load(root).collect()
    assert [row.topic for row in rows] == ["orders"] * 30 + ["payments"] * 30
    places = [row.physicalOffset for row in rows]
    assert places == sorted(places)


def test_log_files_may_lie_elsewhere(spark: Any, store: MessageStore, root: str) -> None:
    fill(store, "orders", 30)
    store.flush()
    copy = Path(root).with_name("copy")
    shutil.copytree(root, copy)
    elsewhere = copy.with_name("elsewhere")
    (copy / "commitlog").rename(elsewhere)
    reader = spark.read.format("rocketmq-log").option("topic", "orders")
    assert reader.option("commitLogPath", str(elsewhere)).load(str(copy)).count() == 30


def test_checksums_are_compared_on_demand(spark: Any, store: MessageStore, root: str) -> None:
    fill(store, "orders", 30)
    store.flush()
    copy = damaged_copy(root, lambda log: log.index(b"orders-7."))
    reader = spark.read.format("rocketmq-log").option("topic", "orders")
    assert len(reader.load(copy).collect()) == 30
    with pytest.raises(Exception, match="does not match its checksum"):
        reader.option("checkCrc", "true").load(copy).collect()


def test_times_bound_what_is_read(spark: Any, tmp_path: Path) -> None:
    clock = FakeClock()
    store = open_store(tmp_path / "store", clock)
    fill(store, "orders", 10)
    clock.advance(60)
    middle_ms = str(clock.wall_ms())
    fill(store, "orders", 5, start=10)
    store.flush()
    store.close()

    def count(**bounds: str) -> int:
        reader = spark.read.format("rocketmq-log").option("topic", "orders")
        found: int = reader.load(str(tmp_path / "store"), **bounds).count()
        return found

    assert count(startingTimestamp=middle_ms) == 5
    assert count(endingTimestamp=middle_ms) == 10


def test_tasks_are_cut_and_bodies_left_out(spark: Any, store: MessageStore, root: str) -> None:
    fill(store, "orders", 90)
    store.flush()
    reader = spark.read.format("rocketmq-log").options(topic="orders", includeBody="false")
    table = reader.load(root, maxRecordsPerPartition="20")
    assert table.rdd.getNumPartitions() >= 5
    assert "body" not in table.columns
    assert table.count() == 90


def test_what_is_damaged_may_be_left_out(spark: Any, store: MessageStore, root: str) -> None:
    fill(store, "orders", 30)
    store.flush()
    in_the_magic_of_the_first = 5
    copy = damaged_copy(root, lambda _: in_the_magic_of_the_first)
    reader = spark.read.format("rocketmq-log").option("topic", "orders")
    with pytest.raises(Exception, match="damaged at byte 0"):
        reader.load(copy).collect()
    assert reader.option("failOnDataLoss", "false").load(copy).count() == 29


def test_an_empty_topic_is_an_empty_table(spark: Any, store: MessageStore, root: str) -> None:
    fill(store, "orders", 5)
    store.flush()
    reader = spark.read.format("rocketmq-log").option("startingOffsets", "latest")
    assert reader.load(root).count() == 0


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"topic": "orderz"}, "orderz has no messages here"),
        ({"topik": "orders"}, "did you mean topic"),
        ({"path": "/nowhere"}, "expected the directory of a store"),
    ],
)
def test_mistakes_are_told(
    spark: Any, store: MessageStore, root: str, options: dict[str, str], part: str
) -> None:
    fill(store, "orders", 5)
    store.flush()
    with pytest.raises(Exception, match=part):
        spark.read.format("rocketmq-log").options(**{"path": root, **options}).load().collect()


def test_a_stream_reads_on_as_the_log_grows(
    spark: Any, store: MessageStore, root: str, tmp_path: Path
) -> None:
    fill(store, "orders", 50)
    store.flush()
    target, checkpoint = str(tmp_path / "rows"), str(tmp_path / "checkpoint")

    def run(**options: Any) -> Any:
        query = (
            spark.readStream.format("rocketmq-log")
            .options(topic="orders", startingOffsets="earliest", **options)
            .load(root)
            .writeStream.format("parquet")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start(target)
        )
        assert query.awaitTermination(60)
        return query

    query = run(maxRowsPerTrigger=20)
    sizes = [progress["numInputRows"] for progress in query.recentProgress]
    assert [size for size in sizes if size] == [20, 20, 10]
    fill(store, "orders", 30, start=50)
    store.flush()
    run()
    bodies = [bytes(row.body) for row in spark.read.parquet(target).select("body").collect()]
    assert sorted(int(body[7:].rstrip(b".")) for body in bodies) == list(range(80))


def test_a_running_stream_shows_its_lag_and_takes_what_comes(
    spark: Any, store: MessageStore, root: str
) -> None:
    fill(store, "orders", 10)
    store.flush()
    query = (
        spark.readStream.format("rocketmq-log")
        .options(topic="orders", startingOffsets="earliest")
        .load(root)
        .writeStream.format("memory")
        .queryName("log_rows")
        .start()
    )
    try:
        query.processAllAvailable()
        fill(store, "orders", 10, start=10)
        store.flush()
        query.processAllAvailable()
        assert spark.sql("select * from log_rows").count() == 20
        source = query.lastProgress["sources"][0]
        assert json.loads(source["latestOffset"]) == {"orders": {"log": {"0": 10, "1": 10}}}
    finally:
        query.stop()


def test_bytes_per_trigger_are_limited(
    spark: Any, store: MessageStore, root: str, tmp_path: Path
) -> None:
    fill(store, "orders", 50, queues=1)
    store.flush()
    record_bytes = store.max_physical // 50
    query = (
        spark.readStream.format("rocketmq-log")
        .options(topic="orders", startingOffsets="earliest")
        .option("maxBytesPerTrigger", str(20 * record_bytes + record_bytes // 2))
        .load(root)
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    sizes = [progress["numInputRows"] for progress in query.recentProgress]
    assert [size for size in sizes if size] == [20, 20, 10]


def test_few_rows_wait_for_company_and_new_topics_are_found(
    spark: Any, store: MessageStore, root: str
) -> None:
    fill(store, "orders-a", 3)
    store.flush()
    stream = spark.readStream.format("rocketmq-log").options(
        topicPattern="orders-.*", startingOffsets="earliest", discoveryInterval="100ms"
    )
    options = {"minRowsPerTrigger": "10", "maxTriggerDelay": "600s"}
    query = stream.options(**options).load(root).writeStream.format("memory").queryName("few")
    running = query.start()
    try:
        # Nothing can be waited for: long enough for triggers that would have taken the three.
        time.sleep(2)
        assert spark.table("few").count() == 0
        fill(store, "orders-b", 7)
        store.flush()
        deadline = time.monotonic() + 60
        while spark.table("few").count() < 10:
            assert time.monotonic() < deadline, running.lastProgress
            time.sleep(0.1)
    finally:
        running.stop()


def test_a_stream_refuses_options_of_batches(spark: Any, store: MessageStore, root: str) -> None:
    fill(store, "orders", 1)
    store.flush()
    stream = spark.readStream.format("rocketmq-log").option("endingOffsets", "latest").load(root)
    with pytest.raises(Exception, match=r"is for spark\.read"):
        stream.writeStream.format("noop").start().processAllAvailable()
