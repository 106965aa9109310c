"""``rocketmq-log`` in a Spark session: batches, streams, and what the user is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from tests.spark.log_stores import fill, open_store, unpack_golden

from cometmq.spark.log_source import RocketMQLogDataSource
from cometmq.spark.schema import COLUMNS, LOG_COLUMNS, arrow_schema, spark_schema
from cometmq.store.message_store import MessageStore


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


def test_a_stream_refuses_options_of_batches(spark: Any, store: MessageStore, root: str) -> None:
    fill(store, "orders", 1)
    store.flush()
    stream = spark.readStream.format("rocketmq-log").option("endingOffsets", "latest").load(root)
    with pytest.raises(Exception, match=r"is for spark\.read"):
        stream.writeStream.format("noop").start().processAllAvailable()
