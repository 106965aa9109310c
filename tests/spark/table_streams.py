"""Streams of numbered rows into Delta and Iceberg tables, and what is in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SCHEMA = "number INT, day STRING, at TIMESTAMP, tags MAP<STRING,STRING>"
Options = dict[str, str]


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
