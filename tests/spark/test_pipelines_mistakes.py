"""What only Spark can know about a pipeline is told with its line too; a query that fails says why and ends the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.spark.pipeline_runs import cometmq

BASE = """\
name: shop
checkpoint: {directory}/checkpoint
sources:
  rows:
    format: json
    stream: true
    schema: body STRING, at TIMESTAMP, day STRING
    options:
      path: {directory}/in
transforms:
  chosen:
    sql: |
      SELECT *
      FROM rows
sinks:
  table:
    format: parquet
    partitionBy: day
    options:
      path: {directory}/out
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    lines = [json.dumps({"body": body, "day": "mon"}) for body in ('{"order": 1}', "oops", "{}")]
    (tmp_path / "in" / "1.json").write_text("\n".join(lines))
    return tmp_path


def pipeline(directory: Path, old: str = "", new: str = "") -> str:
    text = BASE.replace("{directory}", str(directory))
    assert old in text
    path = directory / "shop.yaml"
    path.write_text(text.replace(old, new))
    return str(path)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "FROM rows",
            "FROM raws",
            "14: transform chosen: [TABLE_OR_VIEW_NOT_FOUND] The table or view `raws`",
        ),
        ("SELECT *", "SELECT day,\n        nobody", "14: transform chosen: [UNRESOLVED_COLUMN"),
        ("FROM rows", "FROM rows WHERE (", "14: transform chosen: [PARSE_SYNTAX_ERROR]"),
        (
            "sql: |\n      SELECT *\n      FROM rows",
            "python: nowhere:clean",
            "11: transform chosen: cannot import nowhere",
        ),
        (
            "sql: |\n      SELECT *\n      FROM rows",
            "python: json:nothing",
            "11: transform chosen: json has no function nothing",
        ),
        (
            "sql: |\n      SELECT *\n      FROM rows",
            "python: json:dumps\n    arguments: {colour: red}",
            "11: transform chosen: json:dumps was called with 1 frames and the arguments colour",
        ),
        (
            "partitionBy: day",
            "partitionBy: week",
            "16: sink table: partitionBy names week, which is no column",
        ),
        (
            "schema: body STRING, at",
            "watermark: {column: when, delay: 1 hour}\n    schema: body STRING, at",
            "7: watermark of source rows: expected a timestamp column 'when', there are body, at, day",
        ),
        (
            "format: parquet\n    partitionBy: day\n    options:\n      path",
            "format: rocketmq\n    from: rows\n    body: json\n    options:\n      nameServer",
            "16: sink table: option nameServers: expected the addresses of name servers",
        ),
    ],
)
def test_mistakes_have_lines(
    spark: Any, directory: Path, old: str, new: str, expected: str
) -> None:
    path = pipeline(directory, old, new)
    printed = cometmq("pipeline", "validate", path, code=2)
    assert f"{path}:{expected}" in printed


DECODED = """\
    body:
      format: json
      schema: order INT NOT NULL
      deadLetters: stop
    options:
"""


def test_stop_at_what_cannot_be_decoded(spark: Any, directory: Path) -> None:
    path = pipeline(
        directory,
        f"    options:\n      path: {directory}/in",
        DECODED + f"      path: {directory}/in",
    )
    text = Path(path).read_text().replace("body STRING", "body BINARY")
    Path(path).write_text(text)
    lines = [
        json.dumps({"body": "eyJvcmRlciI6IDF9", "day": "mon"}),
        json.dumps({"body": "b29wcw==", "day": "mon"}),
    ]
    (directory / "in" / "1.json").write_text("\n".join(lines))
    printed = cometmq("pipeline", "run", "--once", path, code=1)
    assert "shop-table: a body cannot be decoded: not JSON: Expecting value" in printed
    # A file of the task that failed may lie there; what counts is that no batch was finished.
    assert not (directory / "out" / "_spark_metadata" / "0").exists()


def test_two_sinks_and_a_function_beside_the_file(spark: Any, directory: Path) -> None:
    path = pipeline(
        directory,
        "sinks:",
        "  short:\n    python: shorten_bodies:shorten\n    arguments: {length: 3}\n"
        "sinks:\n  shown: {format: console}",
    )
    text = Path(path).read_text().replace("format: parquet", "from: chosen\n    format: parquet")
    Path(path).write_text(text)
    (directory / "shorten_bodies.py").write_text(
        "def shorten(rows, length):\n    return rows.selectExpr(f'left(body, {length}) AS body')\n"
    )
    printed = cometmq("pipeline", "run", "--once", path)
    assert "shop-table: 3 rows read, 3 rows written, 1 batch in" in printed
    assert "shown, batch 0:" in printed
    assert "|oop |" in printed
    assert spark.read.parquet(str(directory / "out")).count() == 3
