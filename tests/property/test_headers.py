"""Typed headers and JSON bodies: round trips of anything, refusals of everything else."""

from __future__ import annotations

import json
import types
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.protocol_registry import REPLY_HEADERS, REQUEST_HEADERS

from cometmq.base.errors import RemoteProtocolError
from cometmq.model.ids import Int32
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol import fastjson, fastjson_reader
from cometmq.protocol.bodies.heartbeat import decode_heartbeat
from cometmq.protocol.bodies.register import decode_register_body
from cometmq.protocol.fields import Header, decode_fields, encode_fields

HEADER_CLASSES = sorted(
    {*REQUEST_HEADERS.values(), *REPLY_HEADERS.values()}, key=lambda cls: cls.__name__
)
TEXT = st.text(max_size=20)
KEY = st.text(max_size=8).filter(lambda text: text != "$ref")
JSON_VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEY, inner, max_size=4),
    max_leaves=12,
)


def field_values(hint: Any) -> st.SearchStrategy[Any]:
    if get_origin(hint) in (Union, types.UnionType):
        kinds = [kind for kind in get_args(hint) if kind is not type(None)]
        return st.none() | field_values(kinds[0])
    if get_origin(hint) is Annotated:
        bound = 1 << (31 if hint == Int32 else 63)
        return st.integers(-bound, bound - 1)
    return {str: TEXT, bool: st.booleans()}[hint]


def header_values(header_class: type[Header]) -> st.SearchStrategy[Header]:
    hints = get_type_hints(header_class, include_extras=True)
    return st.builds(
        header_class, **{name: field_values(hints[name]) for name in header_class.__struct_fields__}
    )


ANY_HEADER = st.sampled_from(HEADER_CLASSES).flatmap(header_values)


@given(ANY_HEADER)
def test_a_header_survives_its_texts(header: Header) -> None:
    ext = encode_fields(header)
    again = decode_fields(type(header), ext)
    # None is not written, so a field with another default comes back as that.
    for field in msgspec.structs.fields(header):
        sent = getattr(header, field.name)
        assert getattr(again, field.name) == (field.default if sent is None else sent)


@given(st.sampled_from(HEADER_CLASSES), st.data())
def test_any_texts_give_a_header_or_a_protocol_error(
    header_class: type[Header], data: st.DataObject
) -> None:
    values = st.sampled_from(["", "0", "-1", "abc", "true", "1e3", "9" * 30, "+7", "null"]) | TEXT
    ext = {key: data.draw(values) for key in header_class.__struct_encode_fields__}
    try:
        header = decode_fields(header_class, ext)
    except RemoteProtocolError:
        return
    for value in msgspec.structs.astuple(header):
        assert value is None or isinstance(value, str | bool) or -(1 << 63) <= value < 1 << 63


@given(JSON_VALUE)
def test_strict_json_reads_the_same_by_the_tolerant_reader(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False).encode()
    assert fastjson_reader.read(text) == value
    assert fastjson.loads(text) == value


@given(JSON_VALUE.filter(lambda value: value is not None))
def test_a_value_survives_fastjson(value: Any) -> None:
    wanted = without_nulls(value)
    assert fastjson.loads(fastjson.dumps(value)) == wanted
    assert json.loads(fastjson.dumps_standard(value)) == wanted


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@given(
    st.dictionaries(
        st.builds(MessageQueue, TEXT, st.integers(-(1 << 31), (1 << 31) - 1), TEXT),
        st.integers(-(1 << 63), (1 << 63) - 1),
    )
)
def test_tables_by_queue_survive_both_forms(table: dict[MessageQueue, int]) -> None:
    wanted = dict[MessageQueue, int]
    assert fastjson.decode(fastjson.dumps(table), wanted, what="table") == table
    assert fastjson.decode(fastjson.dumps_standard(table), wanted, what="table") == table


JSON_LIKE = st.text("{}[]:,\"'\\0123456789.eE+-truefalsn$ab \n\u00e9", max_size=60)


@given(JSON_LIKE)
@example('{"$ref":"$"}')
@example('{"a":{"$ref":".."},"$ref":{"$ref":"$.a"}}')
@example('[{"$ref":"$[0]"},{"$ref":"$[1][2].x"}]')
def test_nearly_json_gives_a_value_or_a_protocol_error(text: str) -> None:
    try:
        fastjson.loads(text)
    except RemoteProtocolError:
        pass


@pytest.mark.parametrize("read", [decode_heartbeat, fastjson.loads])
@given(body=st.binary(max_size=80) | JSON_LIKE.map(str.encode) | JSON_VALUE.map(fastjson.dumps))
def test_any_body_gives_a_value_or_a_protocol_error(read: Any, body: bytes) -> None:
    try:
        read(body)
    except RemoteProtocolError:
        pass


@given(st.binary(max_size=80), st.booleans(), st.integers(0, 600))
def test_any_registration_gives_a_value_or_a_protocol_error(
    body: bytes, compressed: bool, version: int
) -> None:
    try:
        decode_register_body(body, compressed=compressed, version=version)
    except RemoteProtocolError:
        pass
