"""More of Delta and Iceberg tables: other modes, other queries, other readers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.table_streams import Target, both, delta, iceberg, put, rows_of, stream

from cometmq.spark.tables.delta import DeltaDataSource
from cometmq.spark.tables.iceberg import IcebergDataSource

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _registered(spark: Any) -> None:
    spark.dataSource.register(DeltaDataSource)
    spark.dataSource.register(IcebergDataSource)


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
