"""Files of a table as a task writes them. No session, no table: directories only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cometmq.base.errors import UsageError
from cometmq.spark.tables import files
from cometmq.spark.tables.files import (
    DataFile,
    FilesWritten,
    check_partition_columns,
    query_id_of,
    write_files,
)

SCHEMA = pa.schema([("number", pa.int32()), ("day", pa.string()), ("is_new", pa.bool_())])


def batch(*rows: tuple[int, str | None, bool]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA
    )


def write(
    directory: Path, batches: Any, partition_by: Sequence[str] = (), *, keeps: bool = False
) -> list[DataFile]:
    def open_file(name: str) -> Any:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return pa.OSFile(str(path), "wb")

    return write_files(
        batches,
        SCHEMA,
        partition_by=partition_by,
        keeps_partition_columns=keeps,
        open_file=open_file,
        remove=lambda name: (directory / name).unlink(),
    )


def numbers(directory: Path, file: DataFile) -> list[int]:
    found: list[int] = pq.read_table(directory / file.name, partitioning=None)["number"].to_pylist()
    return found


def test_a_file_for_each_partition(tmp_path: Path) -> None:
    batches = [batch((1, "mon", True), (2, None, False), (3, "a/b", True)), batch((4, "mon", True))]
    written = write(tmp_path, batches, ["day", "is_new"])
    by_values = {file.partition: file for file in written}
    assert set(by_values) == {("mon", "true"), (None, "false"), ("a/b", "true")}
    mon = by_values["mon", "true"]
    assert mon.name.startswith("day=mon/is_new=true/part-")
    assert by_values["a/b", "true"].name.startswith("day=a_b/")
    assert (mon.row_count, numbers(tmp_path, mon)) == (2, [1, 4])
    assert mon.size_bytes == (tmp_path / mon.name).stat().st_size
    assert pq.read_schema(tmp_path / mon.name).names == ["number"]


def test_partition_columns_may_stay_in_the_files(tmp_path: Path) -> None:
    (file,) = write(tmp_path, [batch((1, "mon", True))], ["day"], keeps=True)
    assert pq.read_schema(tmp_path / file.name).names == SCHEMA.names


def test_nothing_to_write_is_no_file(tmp_path: Path) -> None:
    assert write(tmp_path, []) == []
    assert write(tmp_path, [batch()]) == []


def test_open_files_and_rows_of_a_file_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "OPEN_FILES_MAX", 2)
    monkeypatch.setattr(files, "ROWS_PER_FILE_MAX", 2)
    days = ["a", "b", "c", "a", "a", "a"]
    written = write(tmp_path, [batch((at, day, True)) for at, day in enumerate(days)], ["day"])
    assert sorted(file.row_count for file in written if file.partition == ("a",)) == [1, 1, 2]
    assert sorted(n for file in written for n in numbers(tmp_path, file)) == list(range(6))


def test_an_error_leaves_no_file(tmp_path: Path) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield batch((1, "mon", True), (2, "tue", True))
        raise OSError("the worker's input broke")

    with pytest.raises(OSError, match="input broke"):
        write(tmp_path, failing(), ["day"])
    assert not list(tmp_path.rglob("*.parquet"))


def test_columns_that_make_no_partitions() -> None:
    schema = pa.schema([("at", pa.timestamp("us")), ("day", pa.date32())])
    check_partition_columns(schema, ["day"])
    with pytest.raises(
        UsageError, match="partitionBy names 'week', which is no column; there are at, day"
    ):
        check_partition_columns(schema, ["week"])
    with pytest.raises(UsageError, match="partitionBy at: expected a column of text"):
        check_partition_columns(schema, ["at"])
    with pytest.raises(UsageError, match="names all columns"):
        check_partition_columns(pa.schema([("day", pa.date32())]), ["day"])


def test_all_tasks_are_of_one_query() -> None:
    assert query_id_of([FilesWritten("q", []), None, FilesWritten("q", [])]) == "q"
    for ids in (["q", "r"], [""], []):
        with pytest.raises(UsageError, match="expected the id of one query"):
            query_id_of([FilesWritten(each, []) for each in ids])
