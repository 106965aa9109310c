"""Bodies as text, and what is hidden of them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import msgspec
import pytest

from cometmq.base.errors import ConfigError
from cometmq.dashboard.decoding.body_text import DECODED_BYTES_MAX, TEXT_CHARS_MAX, Bodies
from cometmq.dashboard.decoding.masks import Masks
from cometmq.dashboard.decoding.schemas import load_schemas
from cometmq.dashboard.problems import Problem

OPEN = Bodies(Masks([]))
MASKED = Bodies(Masks(["card*", "customer.iban"]))
ORDER = {"order": 17, "cardNumber": "4711", "customer": {"iban": "DE02", "name": "ada"}}


@pytest.mark.parametrize(
    ("body", "name", "part"),
    [
        (b"", "empty", ""),
        (b'{"a": "\xc3\xa4"}', "json", '"a": "ä"'),
        (b"[1, 2]", "json", "1,"),
        (b"{not json", "text", "{not json"),
        ("Grüße, 世界".encode(), "text", "世界"),
        (b"\x00\x01\xff", "hex", "00 01 ff"),
        (msgspec.msgpack.encode({"a": b"\x01"}), "messagepack", '"a": "01"'),
        (b"[" * 5000 + b"]" * 5000, "text", "[[["),
    ],
)
def test_formats_are_found(body: bytes, name: str, part: str) -> None:
    view = OPEN.view(body)
    assert (view.format, view.bytes) == (name, len(body))
    assert part in view.text


def test_avro_files_are_decoded() -> None:
    fastavro = pytest.importorskip("fastavro")
    fields = [{"name": "order", "type": "int"}]
    schema = fastavro.parse_schema({"type": "record", "name": "Order", "fields": fields})
    file = io.BytesIO()
    fastavro.writer(file, schema, [{"order": 17}])
    assert '"order": 17' in OPEN.view(file.getvalue()).text
    assert OPEN.view(b"Obj\x01damaged").format in ("hex", "text")


def test_what_is_asked_for_must_be_possible() -> None:
    assert OPEN.view(b'{"a":1}', "text").text == '{"a":1}'
    assert OPEN.view(b'{"a":1}', "hex").format == "hex"
    with pytest.raises(Problem, match="the body is no json"):
        OPEN.view(b"plain", "json")


def test_large_bodies_are_cut() -> None:
    view = OPEN.view(b"x" * (4 * 1024 * 1024))
    assert (view.format, len(view.text), view.is_cut) == ("text", TEXT_CHARS_MAX, True)
    binary = OPEN.view(b"\x00\xff" * (2 * 1024 * 1024))
    assert binary.is_cut
    assert len(binary.text) < 40_000
    assert len(OPEN.preview(b"x" * 1_000_000)) <= 120


def test_a_cut_in_the_middle_of_a_letter() -> None:
    body = b"a" + "ä".encode() * (TEXT_CHARS_MAX * 2)
    assert OPEN.view(body).format == "text"


def test_fields_are_masked_at_any_depth_or_by_path() -> None:
    view = MASKED.view(json.dumps(ORDER).encode())
    assert view.masked == ["cardNumber", "customer.iban"]
    assert "4711" not in view.text
    assert "DE02" not in view.text
    assert "ada" in view.text
    packed = MASKED.view(msgspec.msgpack.encode(ORDER))
    assert packed.masked == ["cardNumber", "customer.iban"]
    assert "4711" not in MASKED.preview(json.dumps(ORDER).encode())
    assert b"4711" not in MASKED.masked(json.dumps([{"deep": ORDER}]).encode())


@pytest.mark.parametrize(
    "body",
    [
        b'{"cardNumber": "4711"',
        b'{"pad": "' + b"x" * DECODED_BYTES_MAX + b'", "cardNumber": "4711"}',
        b"\x00\x01 cardNumber 4711",
        b'\n [{"cardNumber": "4711",}]',
    ],
)
def test_what_cannot_be_decoded_is_hidden_as_a_whole(body: bytes) -> None:
    for wanted in ("", "text", "hex"):
        view = MASKED.view(body, wanted)
        assert (view.text, view.masked) == ("***", ["*"])
    assert MASKED.is_hidden(body)
    assert b"4711" not in MASKED.masked(body)


def test_properties_are_masked_too() -> None:
    assert MASKED.masks.properties({"CARD": "4711", "tag": "x"}) == {"CARD": "***", "tag": "x"}


def test_avro_by_the_schema_of_its_topic(tmp_path: Path) -> None:
    fastavro = pytest.importorskip("fastavro")
    schema = {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "order", "type": "int"}, {"name": "card", "type": "string"}],
    }
    path = tmp_path / "order.avsc"
    path.write_text(json.dumps(schema))
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(schema), {"order": 17, "card": "4711"})
    bodies = Bodies(Masks(["card"]), load_schemas([f"Orders={path}"]))
    view = bodies.view(body.getvalue(), "", "Orders")
    assert (view.format, view.masked) == ("avro", ["card"])
    assert '"order": 17' in view.text
    broken = bodies.view(body.getvalue() + b"!", "", "Orders")
    assert (broken.text, broken.masked) == ("***", ["*"])


def test_protobuf_by_the_descriptor_of_its_topic(tmp_path: Path) -> None:
    pytest.importorskip("google.protobuf")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    order = file.message_type.add(name="Order")
    kind = descriptor_pb2.FieldDescriptorProto
    order.field.add(name="order", number=1, type=kind.TYPE_INT32, label=kind.LABEL_OPTIONAL)
    order.field.add(name="card", number=2, type=kind.TYPE_STRING, label=kind.LABEL_OPTIONAL)
    path = tmp_path / "shop.desc"
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
    body = made(order=17, card="4711").SerializeToString()
    bodies = Bodies(Masks(["card"]), load_schemas([f"Orders={path}:shop.Order"]))
    view = bodies.view(body, "", "Orders")
    assert (view.format, view.masked) == ("protobuf", ["card"])
    assert '"order": 17' in view.text
    with pytest.raises(Problem, match="no descriptor is known"):
        OPEN.view(body, "protobuf", "Orders")
    with pytest.raises(ConfigError, match=r"has no message 'shop\.Nothing'"):
        load_schemas([f"Orders={path}:shop.Nothing"])


@pytest.mark.parametrize("rule", ["Orders", "=x.avsc", "Orders=", "Orders=/not/there.avsc"])
def test_schemas_that_are_none(rule: str) -> None:
    with pytest.raises(ConfigError, match="bodySchemas"):
        load_schemas([rule])
