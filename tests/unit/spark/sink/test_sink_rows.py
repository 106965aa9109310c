from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

from cometmq.spark.sink.sink_errors import BadRow
from cometmq.spark.sink.sink_options import read_sink_options
from cometmq.spark.sink.sink_rows import RowReader, SinkRow

BASE = {"nameServers": "127.0.0.1:9876"}


def rows(columns: dict[str, Any], **options: str) -> list[SinkRow]:
    batch = pa.RecordBatch.from_pydict(columns)
    reader = RowReader(batch.schema, read_sink_options(BASE | options))
    return list(reader.rows(batch))


def text_of(columns: dict[str, Any], **options: str) -> str:
    (row,) = rows({"body": ["x"], "topic": ["T"]} | columns, **options)
    return row.text.replace("\x01", "=").replace("\x02", ";")


def test_bodies_alone() -> None:
    found = rows({"body": ["ab", "é"]}, topic="T")
    assert [bytes(row.body) for row in found] == [b"ab", "é".encode()]
    assert [row[2:] for row in found] == [("", None, False, None)] * 2
    assert [row.topic for row in found] == ["T", "T"]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.string(), pa.large_string()])
def test_a_slice_of_a_batch_is_its_own_rows(kind: Any) -> None:
    values = ["zero", "one", "two", "three"]
    batch = pa.RecordBatch.from_arrays([pa.array(values).cast(kind)], names=["body"])
    reader = RowReader(batch.schema, read_sink_options(BASE | {"topic": "T"}))
    assert [bytes(row.body) for row in reader.rows(batch.slice(1, 2))] == [b"one", b"two"]
    assert list(reader.rows(batch.slice(1, 0))) == []


def test_what_columns_become() -> None:
    assert text_of({"tags": ["red"], "keys": ["a b"]}) == "TAGS=red;KEYS=a b;"
    assert text_of({"keys": [["a", "b"]]}) == "KEYS=a b;"
    assert text_of({"tags": [""], "keys": pa.array([None], pa.string())}) == ""
    assert text_of({"delayLevel": [3]}) == "DELAY=3;"
    assert text_of({"delayLevel": [0]}) == ""
    assert text_of({"deliverTime": [1_700_000_000_123]}) == "TIMER_DELIVER_MS=1700000000123;"
    when = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.UTC)
    assert text_of({"deliverTime": [when]}) == "TIMER_DELIVER_MS=1767323045678;"


def test_properties_of_the_system_are_left_out() -> None:
    kind = pa.map_(pa.string(), pa.string())
    pairs = [("a", "1"), ("UNIQ_KEY", "u"), ("TAGS", "t"), ("__SINK", "s/1/2"), ("b", None)]
    assert text_of({"properties": pa.array([pairs], kind)}) == "a=1;"
    assert text_of({"properties": pa.array([None], kind)}) == ""


def test_a_delay_is_seen_per_row() -> None:
    columns = {"body": ["a", "b", "c"], "delayLevel": [0, 2, None]}
    assert [row.is_delayed for row in rows(columns, topic="T")] == [False, True, False]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("k", "k"),
        (7, "7"),
        (b"\x01\xff", "01ff"),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (None, None),
        ("", None),
    ],
)
def test_values_to_shard_by(value: object, text: str | None) -> None:
    (row,) = rows({"body": ["x"], "shardingKey": [value], "id": [value]}, topic="T", idColumn="id")
    assert (row.sharding, row.identity) == (text, text)


@pytest.mark.parametrize(
    ("columns", "options", "complaint"),
    [
        ({"body": [None]}, {}, "expected binary or string, found null"),
        ({"body": pa.array([None], pa.string())}, {}, "body is null"),
        ({"body": [""]}, {}, "body is empty"),
        ({"body": [1]}, {}, "expected binary or string, found int64"),
        ({"body": ["x"], "tags": ["a\x01"]}, {}, "which separate properties"),
        ({"body": ["x"], "tags": [3]}, {}, "column 'tags': expected string, found int64"),
        ({"body": ["x"], "delayLevel": [-1]}, {}, "delay level -1"),
        ({"body": ["x"], "delayLevel": ["1"]}, {}, "expected int, found string"),
        ({"body": ["x"], "tag": ["a"]}, {}, "column tag: is no part of a message"),
        ({"body": ["x"], "shardingKey": [["a"]]}, {}, "expected a simple type"),
        ({"body": ["x"], "keys": ["k" * 40_000]}, {}, "expected at most"),
        ({"value": ["x"]}, {}, "expected a column 'body'"),
        ({"body": ["x"]}, {"tagsColumn": "t"}, "expected one column 't' for tags, found 0"),
    ],
)
def test_mistakes(columns: dict[str, Any], options: dict[str, str], complaint: str) -> None:
    with pytest.raises(BadRow, match=complaint):
        rows(columns, topic="T", **options)


def test_a_topic_must_come_from_somewhere() -> None:
    with pytest.raises(BadRow, match="expected the option topic, or a column 'topic'"):
        rows({"body": ["x"]})
    with pytest.raises(BadRow, match="topic is null or empty"):
        rows({"body": ["x"], "topic": pa.array([None], pa.string())})


def test_property_names_without_sense() -> None:
    kind = pa.map_(pa.string(), pa.string())
    with pytest.raises(BadRow, match="property name ''"):
        rows({"body": ["x"], "properties": pa.array([[("", "v")]], kind)}, topic="T")
