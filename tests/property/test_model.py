"""Values of the model against their plain definitions."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from cometmq.base.errors import RemoteProtocolError
from cometmq.model.flags import COMPRESSION_LZ4, COMPRESSION_ZLIB, COMPRESSION_ZSTD, SysFlag
from cometmq.model.java_hash import (
    java_hash,
    power_of_31,
    to_signed,
    unsigned_hash,
    unsigned_hashes,
    utf16_length,
)
from cometmq.model.messages.batch import BatchElement, decode_batch, encode_batch
from cometmq.model.messages.compression import compress, decompress
from cometmq.model.messages.properties import parse_properties, property_of, render_properties
from cometmq.model.messages.received_message import decode_messages
from cometmq.model.messages.record import BadRecord, decode_record, decode_records, encode_record

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
HOSTS = st.binary(min_size=8, max_size=8) | st.binary(min_size=20, max_size=20)
NAME = st.text(min_size=1, max_size=8).filter(
    lambda text: "\x01" not in text and "\x02" not in text
)


def plain_java_hash(text: str) -> int:
    raw = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(raw), 2):
        value = (31 * value + int.from_bytes(raw[at : at + 2], "big")) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


@given(st.text(st.characters(), max_size=400))
@example("a" * 255)
@example("a" * 256)
@example("a" * 257)
@example("\ud800")
def test_java_hash_is_horner_s_rule(text: str) -> None:
    assert java_hash(text) == plain_java_hash(text)


@given(st.lists(st.text(st.characters(max_codepoint=127), max_size=70) | st.text(max_size=5)))
@example(["a" * 256, "b", ""])
@example(["a" * 257, "b"])
@example([f"{number:032X}" for number in range(130)])
@example(["\x7f" * 256])
def test_texts_hashed_together_get_the_hashes_they_get_alone(texts: list[str]) -> None:
    assert [to_signed(bits) for bits in unsigned_hashes(texts)] == [*map(plain_java_hash, texts)]


@given(st.text(max_size=40), st.text(max_size=40) | st.text(st.characters(), max_size=5))
@example("Topic#", "\U0001f600 key")
def test_the_hash_of_a_whole_comes_from_the_hashes_of_its_parts(head: str, tail: str) -> None:
    whole = unsigned_hash(head) * power_of_31(utf16_length(tail)) + unsigned_hash(tail)
    assert to_signed(whole & 0xFFFFFFFF) == plain_java_hash(head + tail)


@given(st.dictionaries(NAME, NAME))
def test_properties_round_trip(pairs: dict[str, str]) -> None:
    text = render_properties(pairs)
    assert parse_properties(text) == pairs
    assert {name: property_of(text, name) for name in pairs} == pairs


@given(st.text("ab\x01\x02", max_size=30), st.sampled_from(["a", "b", "ab", "ba"]))
def test_one_property_is_what_parsing_all_gives(text: str, name: str) -> None:
    assert property_of(text, name) == parse_properties(text).get(name)


@given(
    topic=st.text("abc%_", max_size=300),
    queue_id=INT32,
    queue_offset=INT64,
    physical_offset=st.integers(0, 2**63 - 1),
    flag=INT32,
    born=HOSTS,
    store=HOSTS,
    born_timestamp=INT64,
    store_timestamp=INT64,
    reconsume_times=INT32,
    prepared=INT64,
    body=st.binary(max_size=100),
    properties=st.text(max_size=50),
)
def test_records_round_trip(
    topic: str,
    queue_id: int,
    queue_offset: int,
    physical_offset: int,
    flag: int,
    born: bytes,
    store: bytes,
    born_timestamp: int,
    store_timestamp: int,
    reconsume_times: int,
    prepared: int,
    body: bytes,
    properties: str,
) -> None:
    sys_flag = (16 if len(born) == 20 else 0) | (32 if len(store) == 20 else 0)
    raw = encode_record(
        topic=topic.encode(),
        queue_id=queue_id,
        queue_offset=queue_offset,
        physical_offset=physical_offset,
        flag=flag,
        sys_flag=sys_flag,
        born_timestamp=born_timestamp,
        born_host=born,
        store_timestamp=store_timestamp,
        store_host=store,
        reconsume_times=reconsume_times,
        prepared_transaction_offset=prepared,
        body=body,
        properties=properties.encode(),
    )
    read = decode_record(b"junk" + raw + b"more", 4)
    assert (read.topic, read.queue_id, read.queue_offset) == (topic, queue_id, queue_offset)
    assert (read.physical_offset, read.flag, read.sys_flag) == (physical_offset, flag, sys_flag)
    assert (read.born_host, read.store_host) == (born, store)
    assert (read.born_timestamp, read.store_timestamp) == (born_timestamp, store_timestamp)
    assert (read.reconsume_times, read.prepared_transaction_offset) == (reconsume_times, prepared)
    assert (read.body, read.properties_text, read.size_bytes) == (body, properties, len(raw))


RECORD = encode_record(
    topic=b"T",
    queue_id=0,
    queue_offset=0,
    physical_offset=0,
    flag=0,
    sys_flag=0,
    born_timestamp=0,
    born_host=bytes(8),
    store_timestamp=0,
    store_host=bytes(8),
    reconsume_times=0,
    prepared_transaction_offset=0,
    body=b"body",
    properties=b"a\x01b",
)


@given(st.lists(st.tuples(st.integers(0, len(RECORD) - 1), st.integers(0, 255)), max_size=4))
def test_a_damaged_record_gives_a_record_or_bad_record(changes: list[tuple[int, int]]) -> None:
    raw = bytearray(RECORD)
    for at, value in changes:
        raw[at] = value
    try:
        records = decode_records(bytes(raw))
    except BadRecord:
        return
    assert sum(record.size_bytes for record in records) == len(raw)


@given(
    st.lists(
        st.builds(BatchElement, INT32, st.binary(max_size=30), st.binary(max_size=30)), max_size=5
    )
)
def test_batches_round_trip(elements: list[BatchElement]) -> None:
    assert decode_batch(encode_batch(elements)) == elements


@given(st.binary(max_size=100))
def test_any_batch_gives_elements_or_a_protocol_error(raw: bytes) -> None:
    try:
        elements = decode_batch(raw)
    except RemoteProtocolError:
        return
    assert sum(22 + len(e.body) + len(e.properties) for e in elements) == len(raw)


@given(
    st.binary(max_size=300),
    st.sampled_from([0, COMPRESSION_ZLIB, COMPRESSION_LZ4, COMPRESSION_ZSTD, 7 << 8]),
    st.booleans(),
    st.data(),
)
def test_a_body_is_unpacked_or_refused_and_the_message_comes_either_way(
    body: bytes, kind: int, is_packed: bool, data: st.DataObject
) -> None:
    """Bytes of strangers in the hands of three libraries: nothing else is raised, and the limit holds."""
    sys_flag = int(SysFlag.COMPRESSED) | kind
    stored = body
    if is_packed and kind != 7 << 8:
        packed = bytearray(compress(body, kind or COMPRESSION_ZLIB)[0])
        for _ in range(data.draw(st.integers(0, 2))):
            packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
        stored = bytes(packed[: data.draw(st.integers(0, len(packed)))])
    try:
        plain = decompress(stored, sys_flag, 200)
        assert len(plain) <= 200
    except RemoteProtocolError:
        pass
    record = encode_record(
        topic=b"t",
        queue_id=0,
        queue_offset=1,
        physical_offset=2,
        flag=0,
        sys_flag=sys_flag,
        born_timestamp=3,
        born_host=bytes(8),
        store_timestamp=4,
        store_host=bytes(8),
        reconsume_times=0,
        prepared_transaction_offset=0,
        body=stored,
        properties=b"",
    )
    first, second = decode_messages(record + record, "b")
    assert (first.body, first.body_error) == (second.body, second.body_error)
    if first.body_error is not None:
        assert first.body == stored
