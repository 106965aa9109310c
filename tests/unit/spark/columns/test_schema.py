"""Which columns a reader gets."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from cometmq.base.errors import UsageError
from cometmq.spark.columns.schema import (
    COLUMNS,
    LOG_COLUMNS,
    arrow_schema,
    as_asked,
    chosen_columns,
    spark_schema,
)


def test_columns_keep_their_order_whatever_the_order_and_case_of_the_wish() -> None:
    assert chosen_columns("TAGS, body ,topic", True) == ("topic", "tags", "body")
    assert chosen_columns(None, True) == COLUMNS
    assert chosen_columns("  ", False) == tuple(name for name in COLUMNS if name != "body")
    assert chosen_columns("storedSize,topic", True, LOG_COLUMNS) == ("topic", "storedSize")


@pytest.mark.parametrize("columns", ["colour", "topic,colour", "storedSize"])
def test_what_is_no_column_is_named(columns: str) -> None:
    with pytest.raises(UsageError, match="expected some of topic, brokerName"):
        chosen_columns(columns, True)


def test_something_must_be_left() -> None:
    with pytest.raises(UsageError, match="includeBody"):
        chosen_columns("body", False)


def test_only_what_a_message_may_lack_is_nullable() -> None:
    every = COLUMNS + LOG_COLUMNS
    assert {field.name for field in arrow_schema(every) if field.nullable} == {"keys", "tags"}
    assert spark_schema(("topic", "tags")) == "topic string NOT NULL, tags string"


def test_rows_come_in_the_order_and_with_the_nullability_that_was_asked_for() -> None:
    columns = ("topic", "queueId", "tags")
    made = pa.RecordBatch.from_arrays(
        [pa.array(["T"]), pa.array([3], pa.int32()), pa.array([None], pa.string())],
        schema=arrow_schema(columns),
    )
    (same,) = as_asked(iter([made]), columns, arrow_schema(columns))
    assert same is made
    wanted = arrow_schema(("tags", "topic"), nullable={"tags", "topic"})
    (found,) = as_asked(iter([made]), columns, wanted)
    assert found.schema.equals(wanted)
    assert found.to_pylist() == [{"tags": None, "topic": "T"}]
