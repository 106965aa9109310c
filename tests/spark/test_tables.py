"""Delta and Iceberg tables: what a stream writes is there once, also when a batch comes again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.spark.table_streams import Target, both, put, rows_of, stream

from cometmq.spark.tables.delta import DeltaDataSource
from cometmq.spark.tables.iceberg import IcebergDataSource


@pytest.fixture(scope="module", autouse=True)
def _registered(spark: Any) -> None:
    spark.dataSource.register(DeltaDataSource)
    spark.dataSource.register(IcebergDataSource)


@both
def test_every_row_of_a_stream_is_there_once(spark: Any, tmp_path: Path, target: Target) -> None:
    put(tmp_path, "1.json", range(10))
    stream(spark, tmp_path, target)
    # As after a crash between the commit to the table and Spark's note of it: the batch comes again.
    for note in (tmp_path / "checkpoint" / "commits").glob("*0*"):
        note.unlink()
    put(tmp_path, "2.json", range(10, 15))
    stream(spark, tmp_path, target)
    rows = rows_of(spark, tmp_path, target)
    assert [row.number for row in rows] == list(range(15))
    assert [row.day for row in rows[:3]] == ["mon", "tue/1", None]
    assert rows[7].tags == {"a": "7"}
    assert len({row.at.isoformat() for row in rows}) == 1


@both
def test_rows_that_do_not_fit_are_refused(spark: Any, tmp_path: Path, target: Target) -> None:
    name, options = target(tmp_path)
    spark.range(5).write.format(name).options(**options).mode("append").save()
    other = spark.range(5).withColumnRenamed("id", "number")
    with pytest.raises(Exception, match="the rows do not fit the"):
        other.write.format(name).options(**options).mode("append").save()
    assert len(rows_of(spark, tmp_path, target)) == 5
