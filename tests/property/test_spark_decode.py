"""Decoding many records at once says the same as decoding them one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow")

import numpy as np

from cometmq.base.errors import CometError, RemoteProtocolError
from cometmq.model.flags import COMPRESSION_LZ4, COMPRESSION_ZLIB, COMPRESSION_ZSTD, SysFlag
from cometmq.model.messages.batch import decode_batch, encode_batch
from cometmq.model.messages.compression import compress, decompress
from cometmq.model.messages.record import BadRecord, decode_record, decode_records, encode_record
from cometmq.native.choice import twin
from cometmq.spark.columns import compiled
from cometmq.spark.columns.decode import UndecodableRecord, decode, decode_at
from cometmq.spark.columns.schema import COLUMNS, arrow_schema


@pytest.fixture(scope="module", autouse=True, params=["native", "python"])
def implementation(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each of them is held against the decoder of single records."""
    if request.param == "python":
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compiled, "_rows", None)
            yield
    elif twin("rows") is None:
        pytest.skip("the twin is not compiled")
    else:
        yield


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INT32 = st.integers(-(2**31), 2**31 - 1)
OFFSET = st.integers(0, 2**63 - 1)
# Within the years that Python's datetime, which the comparison uses, can hold.
MILLISECONDS = st.integers(-62_000_000_000_000, 250_000_000_000_000)
V4 = st.binary(min_size=4, max_size=4)
V6 = st.binary(min_size=16, max_size=16)
PORT = st.integers(0, 65535).map(lambda port: port.to_bytes(4, "big"))
HOSTS = st.builds(lambda ip, port: ip + port, st.one_of(V4, V6), PORT)
FEW_HOSTS = st.sampled_from([b"\x7f\0\0\x01\0\0\x2a\x9f", bytes(15) + b"\x01\0\0\x2a\x9f"])
NAMES = st.one_of(
    st.sampled_from(["KEYS", "TAGS", "UNIQ_KEY", "WAIT", "键", ""]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)
VALUES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@st.composite
def property_texts(draw: st.DrawFn) -> bytes:
    """Good pairs and broken ones, names that come twice, with and without the last separator."""
    pairs = draw(st.lists(st.tuples(NAMES, st.sampled_from(["\x01", "\x01", ""]), VALUES)))
    text = "\x02".join(name + middle + value for name, middle, value in pairs)
    return (text + draw(st.sampled_from(["", "\x02", "\x02\x02"]))).encode()


@st.composite
def records(draw: st.DrawFn) -> bytes:
    born_host = draw(st.one_of(HOSTS, FEW_HOSTS))
    store_host = draw(st.one_of(HOSTS, FEW_HOSTS))
    body = draw(st.one_of(st.just(b""), st.binary(max_size=200)))
    sys_flag = draw(st.sampled_from([0, 0, 2, 4, 8, 64, 128]))
    sys_flag |= 16 * (len(born_host) == 20) | 32 * (len(store_host) == 20)
    kind = draw(st.sampled_from([None, None, COMPRESSION_ZLIB, COMPRESSION_LZ4, COMPRESSION_ZSTD]))
    if kind is not None:
        packed, bits = compress(body, kind)
        # Not all that says so is packed.
        body = draw(st.sampled_from([packed, packed, packed, body, packed[:-1]]))
        sys_flag |= bits
    topic = draw(st.one_of(st.just("orders"), st.text(max_size=100)))
    return encode_record(
        topic=topic.encode(),
        queue_id=draw(INT32),
        queue_offset=draw(OFFSET),
        physical_offset=draw(OFFSET),
        flag=draw(INT32),
        sys_flag=sys_flag,
        born_timestamp=draw(MILLISECONDS),
        born_host=born_host,
        store_timestamp=draw(MILLISECONDS),
        store_host=store_host,
        reconsume_times=draw(INT32),
        prepared_transaction_offset=draw(OFFSET),
        body=body,
        properties=draw(property_texts()),
    )


@st.composite
def alike(draw: st.DrawFn) -> list[bytes]:
    """Records as one producer sends them: the same names in the same order, one topic, one host."""
    names = draw(st.lists(NAMES, max_size=4))
    last = draw(st.sampled_from(["", "\x02"]))
    topic = draw(st.sampled_from(["orders", "键", ""]))
    stored = []
    for number in range(draw(st.integers(1, 8))):
        text = "\x02".join(f"{name}\x01{draw(VALUES)}" for name in names) + last * bool(names)
        stored.append(
            encode_record(
                topic=topic.encode(),
                queue_id=1,
                queue_offset=number,
                physical_offset=number,
                flag=0,
                sys_flag=0,
                born_timestamp=0,
                born_host=b"\x7f\0\0\x01\0\0\x2a\x9f",
                store_timestamp=0,
                store_host=b"\x7f\0\0\x01\0\0\x2a\x9f",
                reconsume_times=0,
                prepared_transaction_offset=0,
                body=b"",
                properties=text.encode(),
            )
        )
    return stored


def one_by_one(stored: bytes, *, is_unpacked: bool = True) -> dict[str, Any]:
    """Args: is_unpacked: whether the body is asked for; a reason why it cannot be unpacked is known only then."""
    record = decode_record(stored)
    properties, body = record.properties, record.body
    try:
        body = decompress(body, record.sys_flag)
    except RemoteProtocolError as error:
        if is_unpacked:
            properties = {**properties, "__BODY_ERROR": str(error)}
    return {
        "topic": record.topic,
        "brokerName": "broker-ä",
        "queueId": record.queue_id,
        "queueOffset": record.queue_offset,
        "msgId": properties.get("UNIQ_KEY") or record.offset_id,
        "keys": properties.get("KEYS"),
        "tags": properties.get("TAGS"),
        "body": body,
        "properties": properties,
        "bornTimestamp": EPOCH + timedelta(milliseconds=record.born_timestamp),
        "storeTimestamp": EPOCH + timedelta(milliseconds=record.store_timestamp),
        "bornHost": record.born_address,
        "storeHost": record.store_address,
        "sysFlag": record.sys_flag,
        "flag": record.flag,
        "reconsumeTimes": record.reconsume_times,
    }


def rows(batch: Any) -> list[dict[str, Any]]:
    batch.validate(full=True)
    return [
        {
            name: dict(value) if name == "properties" and len(dict(value)) == len(value) else value
            for name, value in row.items()
        }
        for row in batch.to_pylist()
    ]


@given(st.lists(records(), max_size=12), st.booleans(), st.booleans())
def test_many_at_once_are_what_each_is_alone(
    stored: list[bytes], sizes_are_known: bool, check_crc: bool
) -> None:
    sizes = np.array([len(record) for record in stored]) if sizes_are_known else None
    batch = decode(b"".join(stored), sizes, COLUMNS, "broker-ä", check_crc=check_crc)
    assert batch.schema.equals(arrow_schema(COLUMNS))
    assert rows(batch) == [one_by_one(record) for record in stored]


@given(alike(), st.lists(records(), max_size=1))
def test_records_of_one_producer_are_what_each_is_alone(
    stored: list[bytes], another: list[bytes]
) -> None:
    """Those of one producer are decoded in a quicker way, unless there is one of another among them."""
    stored = stored + another
    batch = decode(b"".join(stored), None, COLUMNS, "broker-ä")
    assert rows(batch) == [one_by_one(record) for record in stored]


@given(
    st.lists(st.tuples(st.binary(max_size=9), records()), min_size=1, max_size=6),
    st.sets(st.sampled_from(COLUMNS), min_size=1),
    st.randoms(),
)
def test_any_columns_of_records_anywhere_in_any_order(
    pieces: list[tuple[bytes, bytes]], chosen: set[str], random: Any
) -> None:
    data = b""
    places = []
    for gap, record in pieces:
        data += gap
        places.append((len(data), len(record)))
        data += record
    random.shuffle(places)
    starts, sizes = np.array(places).T
    columns = tuple(name for name in COLUMNS if name in chosen)
    found = rows(decode_at(memoryview(data), starts, sizes, columns, "broker-ä"))
    expected = [
        one_by_one(data[at : at + size], is_unpacked="body" in chosen) for at, size in places
    ]
    assert found == [{name: row[name] for name in columns} for row in expected]


@given(st.lists(records(), max_size=8), st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_limits_and_tag_keep_what_they_say(stored: list[bytes], first: int, last: int) -> None:
    every = [one_by_one(record) for record in stored]
    data = b"".join(stored)
    found = rows(decode(data, None, COLUMNS, "broker-ä", first_offset=first, last_offset=last))
    assert found == [row for row in every if first <= row["queueOffset"] <= last]
    tags = sorted({row["tags"] for row in every if row["tags"] and "|" not in row["tags"]})
    wanted = [tag for tag in tags if tag == tag.strip() != "*"][:2]
    if wanted:
        found = rows(decode(data, None, ("tags", "body"), "b", tag=" || ".join(wanted)))
        kept = [row for row in every if row["tags"] in wanted]
        assert found == [{"tags": row["tags"], "body": row["body"]} for row in kept]


@given(
    st.lists(st.tuples(INT32, st.binary(max_size=20), property_texts()), min_size=1, max_size=5),
    st.booleans(),
    records(),
)
def test_an_inner_batch_comes_out_as_its_messages(
    elements: list[tuple[int, bytes, bytes]], is_packed: bool, neighbour: bytes
) -> None:
    body, bits = encode_batch(elements), 0
    if is_packed:
        body, bits = compress(body)
    batch_record = encode_record(
        topic=b"orders",
        queue_id=3,
        queue_offset=70,
        physical_offset=4096,
        flag=0,
        sys_flag=bits | SysFlag.INNER_BATCH | SysFlag.NEED_UNWRAP,
        born_timestamp=1,
        born_host=b"\x7f\0\0\x01\0\0\x2a\x9f",
        store_timestamp=2,
        store_host=b"\x7f\0\0\x01\0\0\x2a\x9f",
        reconsume_times=0,
        prepared_transaction_offset=0,
        body=body,
        properties=b"",
    )
    columns = ("queueOffset", "body", "flag")
    found = rows(decode(neighbour + batch_record, None, columns, "b"))
    assert [tuple(row.values()) for row in found[1:]] == [
        (70 + number, body, flag) for number, (flag, body, _) in enumerate(elements)
    ]
    assert found[0]["queueOffset"] == decode_record(neighbour).queue_offset


@given(st.binary(max_size=40), st.booleans(), st.lists(records(), min_size=1, max_size=3))
def test_what_only_says_that_it_is_an_inner_batch_is_a_row_as_it_is(
    junk: bytes, is_packed: bool, neighbours: list[bytes]
) -> None:
    try:
        decode_batch(junk)
        return
    except RemoteProtocolError:
        pass
    body, bits = compress(junk) if is_packed else (junk, 0)
    batch_record = encode_record(
        topic=b"orders",
        queue_id=3,
        queue_offset=70,
        physical_offset=4096,
        flag=0,
        sys_flag=bits | SysFlag.INNER_BATCH | SysFlag.NEED_UNWRAP,
        born_timestamp=1,
        born_host=b"\x7f\0\0\x01\0\0\x2a\x9f",
        store_timestamp=2,
        store_host=b"\x7f\0\0\x01\0\0\x2a\x9f",
        reconsume_times=0,
        prepared_transaction_offset=0,
        body=body,
        properties=b"a\x01b",
    )
    data = b"".join([neighbours[0], batch_record, *neighbours[1:]])
    found = rows(decode(data, None, COLUMNS, "broker-ä"))
    assert (found[1]["queueOffset"], found[1]["body"]) == (70, junk)
    reason = dict(found[1]["properties"]).pop("__BODY_ERROR")
    assert reason.startswith("inner batch: ")
    del found[1]
    assert found == [one_by_one(one) for one in neighbours]


def test_the_reason_is_told_where_properties_are_and_whatever_was_sent_in_its_name() -> None:
    packed, bits = compress(b"x")
    plain: dict[str, Any] = {
        "topic": b"t",
        "queue_id": 0,
        "physical_offset": 0,
        "flag": 0,
        "born_timestamp": 1,
        "born_host": bytes(8),
        "store_timestamp": 2,
        "store_host": bytes(8),
        "reconsume_times": 0,
        "prepared_transaction_offset": 0,
    }
    forged = b"__BODY_ERROR\x01none\x02a\x01b"
    data = b"".join(
        encode_record(**plain, queue_offset=offset, sys_flag=flag, body=body, properties=forged)
        for offset, (flag, body) in enumerate([(bits, packed), (bits, b"bad"), (0, b"plain")])
    )
    with_map = rows(decode(data, None, ("body", "properties"), "b"))
    assert [row["body"] for row in with_map] == [b"x", b"bad", b"plain"]
    reasons = [row["properties"]["__BODY_ERROR"] for row in with_map]
    assert (reasons[0], reasons[2]) == ("none", "none")
    assert reasons[1].startswith("compressed body is broken")
    assert [row["body"] for row in rows(decode(data, None, ("body",), "b"))] == [
        b"x",
        b"bad",
        b"plain",
    ]
    assert len(rows(decode(data, None, ("properties",), "b"))) == 3


@given(st.lists(records(), min_size=1, max_size=4), st.data())
def test_damage_is_either_harmless_to_both_or_refused_by_both(
    stored: list[bytes], data: st.DataObject
) -> None:
    damaged = bytearray(b"".join(stored))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    kept = bytes(damaged[: data.draw(st.integers(0, len(damaged)))])
    expected = outcome(lambda: [record.topic for record in decode_records(kept, check_crc=False)])
    found = outcome(lambda: decode(kept, None, ("topic", "properties"), "b")["topic"].to_pylist())
    assert isinstance(found, list) == isinstance(expected, list)
    if isinstance(found, UndecodableRecord):
        assert 0 <= found.position <= len(kept)
    elif len(found) == len(expected):
        assert found == expected


def outcome(decoding: Callable[[], list[str]]) -> Any:
    try:
        return decoding()
    except (BadRecord, UndecodableRecord) as error:
        return error


@settings(max_examples=30)
@given(st.binary(max_size=300))
def test_garbage_is_refused_with_a_typed_error(garbage: bytes) -> None:
    try:
        batch = decode(garbage, None, COLUMNS, "b")
    except CometError:
        return
    assert not garbage or batch.num_rows
