"""Delta and Iceberg tables: what a stream writes is there once, also when a batch comes again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cometmq.spark.tables.delta import DeltaDataSource
from cometmq.spark.tables.iceberg import IcebergDataSource

SCHEMA = "number INT, day STRING, at TIMESTAMP, tags MAP<STRING,STRING>"
Options = dict[str, str]


@pytest.fixture(scope="module", autouse=True)
def _registered(spark: Any) -> None:
    spark.dataSource.register(DeltaDataSource)
    spark.dataSource.register(IcebergDataSource)


def delta(directory: Path) -> tuple[str, Options]:
    return "cometmq-delta", {"path": str(directory / "table")}


def iceberg(directory: Path) -> tuple[str, Options]:
    (directory / "warehouse").mkdir(exist_ok=True)
    return "cometmq-iceberg", {
        "table": "shop.orders",
        "catalog.type": "sql",
        "catalog.uri": f"sqlite:///{directory}/catalog.db",
        "catalog.warehouse": f"file://{directory}/warehouse",
    }


Target = Callable[[Path], tuple[str, Options]]
both = pytest.mark.parametrize("target", [delta, iceberg])


def put(directory: Path, name: str, numbers: range) -> None:
    (directory / "in").mkdir(exist_ok=True)
    lines = [
        json.dumps(
            {
                "number": number,
                "day": ["mon", "tue/1", None][number % 3],
                "at": "2026-01-02T03:04:05Z",
                "tags": {"a": str(number)},
            }
        )
        for number in numbers
    ]
    (directory / "in" / name).write_text("\n".join(lines))


def stream(
    spark: Any, directory: Path, target: Target, *, mode: str = "append", frame: Any = None
) -> None:
    name, options = target(directory)
    rows = spark.readStream.schema(SCHEMA).json(str(directory / "in"))
    query = (
        (frame(rows) if frame else rows)
        .writeStream.format(name)
        .options(**options)
        .option("checkpointLocation", str(directory / "checkpoint"))
        .outputMode(mode)
        .trigger(availableNow=True)
    )
    if mode == "append":
        query = query.option("partitionBy", "day")
    query.start().awaitTermination()


def rows_of(spark: Any, directory: Path, target: Target) -> list[Any]:
    name, options = target(directory)
    return sorted(spark.read.format(name).options(**options).load().collect())


@both
def test_a_stream_is_in_the_table_once(spark: Any, tmp_path: Path, target: Target) -> None:
    put(tmp_path, "1.json", range(10))
    stream(spark, tmp_path, target)
    put(tmp_path, "2.json", range(10, 15))
    stream(spark, tmp_path, target)
    rows = rows_of(spark, tmp_path, target)
    assert [row.number for row in rows] == list(range(15))
    assert [row.day for row in rows[:3]] == ["mon", "tue/1", None]
    assert rows[7].tags == {"a": "7"}
    assert rows[0].at == rows[14].at
    assert len({row.at.isoformat() for row in rows}) == 1


@both
def test_a_batch_that_comes_again_is_passed_over(
    spark: Any, tmp_path: Path, target: Target
) -> None:
    put(tmp_path, "1.json", range(10))
    stream(spark, tmp_path, target)
    # As after a crash between the commit to the table and Spark's note of it.
    for note in (tmp_path / "checkpoint" / "commits").glob("*0*"):
        note.unlink()
    put(tmp_path, "2.json", range(10, 12))
    stream(spark, tmp_path, target)
    assert [row.number for row in rows_of(spark, tmp_path, target)] == list(range(12))


@both
def test_the_same_rows_by_another_query_are_added(
    spark: Any, tmp_path: Path, target: Target
) -> None:
    put(tmp_path, "1.json", range(3))
    stream(spark, tmp_path, target)
    (tmp_path / "checkpoint").rename(tmp_path / "old")
    stream(spark, tmp_path, target)
    assert [row.number for row in rows_of(spark, tmp_path, target)] == [0, 0, 1, 1, 2, 2]


@both
def test_complete_mode_replaces_the_table(spark: Any, tmp_path: Path, target: Target) -> None:
    def counts(rows: Any) -> Any:
        return rows.groupBy((rows.number % 2).alias("odd")).count()

    put(tmp_path, "1.json", range(5))
    stream(spark, tmp_path, target, mode="complete", frame=counts)
    put(tmp_path, "2.json", range(5, 10))
    stream(spark, tmp_path, target, mode="complete", frame=counts)
    assert [tuple(row) for row in rows_of(spark, tmp_path, target)] == [(0, 5), (1, 5)]


@both
def test_batch_writes_append_and_overwrite(spark: Any, tmp_path: Path, target: Target) -> None:
    name, options = target(tmp_path)
    frame = spark.range(5)
    frame.write.format(name).options(**options).mode("append").save()
    frame.write.format(name).options(**options).mode("append").save()
    assert len(rows_of(spark, tmp_path, target)) == 10
    frame.write.format(name).options(**options).mode("overwrite").save()
    assert [row.id for row in rows_of(spark, tmp_path, target)] == [0, 1, 2, 3, 4]


@both
def test_rows_that_do_not_fit_are_refused(spark: Any, tmp_path: Path, target: Target) -> None:
    name, options = target(tmp_path)
    spark.range(5).write.format(name).options(**options).mode("append").save()
    other = spark.range(5).withColumnRenamed("id", "number")
    with pytest.raises(Exception, match="the rows do not fit the"):
        other.write.format(name).options(**options).mode("append").save()
    assert len(rows_of(spark, tmp_path, target)) == 5


def test_others_read_the_delta_table(spark: Any, tmp_path: Path) -> None:
    from deltalake import DeltaTable

    put(tmp_path, "1.json", range(10))
    stream(spark, tmp_path, delta)
    table = DeltaTable(str(tmp_path / "table"))
    assert table.metadata().partition_columns == ["day"]
    rows: pa.Table = table.to_pyarrow_table()
    assert sorted(rows.column("number").to_pylist()) == list(range(10))
    assert set(rows.column("day").to_pylist()) == {"mon", "tue/1", None}


def test_a_snapshot_names_query_and_batch(spark: Any, tmp_path: Path) -> None:
    from pyiceberg.catalog import load_catalog

    put(tmp_path, "1.json", range(10))
    stream(spark, tmp_path, iceberg)
    _, options = iceberg(tmp_path)
    catalog = load_catalog("default", type="sql", uri=options["catalog.uri"])
    snapshot = catalog.load_table("shop.orders").current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    query_id = json.loads((tmp_path / "checkpoint" / "metadata").read_text())["id"]
    assert snapshot.summary.additional_properties["cometmq.query-id"] == query_id
    assert snapshot.summary.additional_properties["cometmq.batch-id"] == "0"
