"""Bodies into columns: each row is decoded, or told apart with the reason. None is lost."""

from __future__ import annotations

import datetime
import io
import json
from typing import Any

import fastavro
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from cometmq.base.errors import ConfigError
from cometmq.spark.bodies.body_formats import (
    AvroBody,
    JsonBody,
    ProtobufBody,
    TextBody,
    body_format,
    decode,
)


def frame_of(spark: Any, bodies: list[bytes | None]) -> Any:
    rows = list(enumerate(bodies))
    return spark.createDataFrame(rows, "queueOffset INT, body BINARY").coalesce(1)


def decoded(
    spark: Any, bodies: list[bytes | None], body: Any, **options: Any
) -> tuple[list[Any], dict[int, str]]:
    split = decode(frame_of(spark, bodies), body, **options)
    good = sorted(split.good.collect(), key=lambda row: row.queueOffset)
    assert split.failed is not None
    failed = {row.queueOffset: row.reason for row in split.failed.collect()}
    assert len(good) + len(failed) == len(bodies)
    return good, failed


def test_json(spark: Any) -> None:
    bodies: list[bytes | None] = [
        b'{"order":1,"amount":2.5,"at":"2026-01-01T00:00:00Z","more":true}',
        b'{"order":2}',
        b"nope",
        b'{"amount":1}',
        b'{"order":"x"}',
        b"[1]",
        b"\xff{}",
        b"",
        None,
        b'{"order":3,"items":[{"sku":1},{"sku":"z"}]}',
        b'{"order":4.5}',
    ]
    schema = "order INT NOT NULL, amount DOUBLE, at TIMESTAMP, items ARRAY<STRUCT<sku: INT>>"
    good, failed = decoded(spark, bodies, JsonBody(schema))
    assert [(row.queueOffset, row.order, row.amount) for row in good] == [(0, 1, 2.5), (1, 2, None)]
    assert "body" not in good[0]
    assert failed == {
        2: "not JSON: Expecting value: line 1 column 1 (char 0)",
        3: "field order is missing",
        4: 'field order: expected a whole number, got "x"',
        5: "expected a JSON object, got [1]",
        6: "not UTF-8: byte 0xff at position 0",
        7: "the body is empty, expected a JSON object",
        8: "the body is empty, expected a JSON object",
        9: 'field items[1].sku: expected a whole number, got "z"',
        10: "field order: expected a whole number, got 4.5",
    }


def test_json_that_something_follows_is_not_good(spark: Any) -> None:
    bodies: list[bytes | None] = [
        b' {"order":0} \r\n',
        b'{"order":1}\n{"order":2}',
        b'{"order":1}garbage',
        b'{"order":1},{"order":2}',
        b'{"order":1}]',
        b'{"order":1}}',
        b'{"order":1}],"more":[{}',
        b'{"order":1},',
        b'{"order":1} null',
        b'{"order":1}\0',
        b"null",
        b'{"order":1,"items":[{"sku":1}',
    ]
    good, failed = decoded(spark, bodies, JsonBody("order INT, items ARRAY<STRUCT<sku: INT>>"))
    assert [(row.queueOffset, row.order) for row in good] == [(0, 0)]
    assert failed[1] == (
        'expected one JSON object and nothing behind it, got more from character 12 on: {"order":2}; '
        "objects on lines of their own are read with the format json-lines"
    )
    assert "got more from character 11 on: garbage;" in failed[2]


def test_lines_of_json_are_rows(spark: Any) -> None:
    bodies: list[bytes | None] = [
        b'{"order":1}\n{"order":2}\r\n\n \t\n  {"order":3}  \n\r',
        b'{"order":4}\nnope\n{"order":5}{"order":6}',
        b" \n",
        b"",
        None,
        b'{"order":7}\n\xff',
        b'{"order":8}',
    ]
    split = decode(frame_of(spark, bodies), JsonBody("order INT NOT NULL", is_lines=True))
    good = sorted((row.queueOffset, row.order) for row in split.good.collect())
    assert good == [(0, 1), (0, 2), (0, 3), (1, 4), (6, 8)]
    assert split.failed is not None
    failed = sorted((row.queueOffset, bytes(row.body or b"")) for row in split.failed.collect())
    assert failed == [
        (1, b"nope"),
        (1, b'{"order":5}{"order":6}'),
        (2, b" \n"),
        (3, b""),
        (4, b""),
        (5, b'{"order":7}\n\xff'),
    ]


AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "order", "type": "long"},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "labels", "type": {"type": "map", "values": "int"}},
        {
            "name": "items",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Item",
                    "fields": [{"name": "sku", "type": "string"}],
                },
            },
        },
    ],
}


def test_avro(spark: Any) -> None:
    at = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
    record = {
        "order": 7,
        "state": "PAID",
        "at": at,
        "note": None,
        "labels": {"a": 1},
        "items": [{"sku": "s"}],
    }
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, AVRO, record)
    body = stream.getvalue()
    good, failed = decoded(
        spark, [body, body[:-2], body + b"!", None, b""], AvroBody(json.dumps(AVRO))
    )
    assert [row.queueOffset for row in good] == [0]
    row = good[0]
    assert (row.order, row.state, row.note, row.labels) == (7, "PAID", None, {"a": 1})
    assert [item.sku for item in row["items"]] == ["s"]
    assert row.at.timestamp() == at.timestamp()
    assert sorted(failed) == [1, 2, 3, 4]
    assert failed[2] == "ValueError: 1 bytes are left behind the record"
    assert failed[3] == "ValueError: there is no body"


def descriptors() -> bytes:
    """What protoc would write for a small .proto file."""
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    state = file.enum_type.add(name="State")
    state.value.add(name="NEW", number=0)
    state.value.add(name="PAID", number=1)
    item = file.message_type.add(name="Item")
    item.field.add(name="sku", number=1, type=9, label=1)
    order = file.message_type.add(name="Order")
    order.field.add(name="order", number=1, type=4, label=1)
    order.field.add(name="state", number=2, type=14, type_name=".shop.State", label=1)
    order.field.add(name="items", number=3, type=11, type_name=".shop.Item", label=3)
    order.field.add(name="note", number=4, type=9, label=1, proto3_optional=True, oneof_index=0)
    order.oneof_decl.add(name="_note")
    entry = order.nested_type.add(name="LabelsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=9, label=1)
    entry.field.add(name="value", number=2, type=5, label=1)
    order.field.add(name="labels", number=5, type=11, type_name=".shop.Order.LabelsEntry", label=3)
    return bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())


def test_protobuf(spark: Any) -> None:
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors()).file:
        pool.Add(file)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
    message = kind(order=2**64 - 1, state=1, items=[{"sku": "a"}, {"sku": "b"}], labels={"x": 3})
    good, failed = decoded(
        spark,
        [message.SerializeToString(), b"\xff\xff", None],
        ProtobufBody(descriptors(), "shop.Order"),
        as_column="value",
    )
    (row,) = good
    assert (row.value.order, row.value.state, row.value.note) == (2**64 - 1, "PAID", None)
    assert [item.sku for item in row.value["items"]] == ["a", "b"]
    assert row.value.labels == {"x": 3}
    assert sorted(failed) == [1, 2]
    assert "DecodeError" in failed[1]


def test_text(spark: Any) -> None:
    good, failed = decoded(spark, ["Grüße".encode(), b"\xff", None], TextBody())
    assert [row.body for row in good] == ["Grüße"]
    assert sorted(failed) == [1, 2]


def test_what_cannot_be_decoded_at_all(spark: Any) -> None:
    frame = frame_of(spark, [b"x"])
    with pytest.raises(
        ConfigError, match="names of columns that every message has: queueOffset; put them"
    ):
        decode(frame, JsonBody("queueOffset INT"))
    with pytest.raises(ConfigError, match="expected a schema such as"):
        decode(frame, JsonBody("order WHATEVER"))
    with pytest.raises(ConfigError, match="expected a column body to decode, found queueOffset"):
        decode(frame.drop("body"), TextBody())
    with pytest.raises(ConfigError, match="this is no Avro schema"):
        decode(frame, AvroBody("{}"))
    with pytest.raises(ConfigError, match="the file is no descriptor set"):
        decode(frame, ProtobufBody(b"", "shop.Order"))
    with pytest.raises(
        ConfigError, match=r"has no message 'shop\.Bill'; it has shop\.Item, shop\.Order"
    ):
        decode(frame, ProtobufBody(descriptors(), "shop.Bill"))
    with pytest.raises(
        ConfigError, match=r"cannot read the schema file /no/such\.avsc: No such file"
    ):
        body_format("avro", file="/no/such.avsc")
