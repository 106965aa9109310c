"""Units and Bloom bits for any input: what is written is read, and no group misses a message that it wants."""

from __future__ import annotations

import random

import hypothesis.strategies as st
from hypothesis import given

from cometmq.broker.filters.message_filter import BitTest
from cometmq.model.bloom import bloom_filter
from cometmq.store.open_files import OpenFiles
from cometmq.store.queues.extended_queue import (
    ExtendedQueue,
    Unit,
    UnitReader,
    address_of,
    decode_unit,
    encode_unit,
    is_address,
)
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles

longs = st.integers(-(1 << 63), (1 << 63) - 1)
units = st.builds(Unit, longs, longs, st.binary(max_size=40))
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)


@given(st.builds(Unit, longs, longs, st.binary(max_size=0x7FFF - 20)), st.binary(max_size=9))
def test_a_unit_survives_its_bytes(unit: Unit, before: bytes) -> None:
    raw = encode_unit(unit)
    assert len(raw) == unit.size_bytes
    assert decode_unit(before + raw, len(before)) == unit
    assert decode_unit(raw[:-1]) is None


@given(st.binary(max_size=80), st.integers(-5, 85))
def test_any_bytes_are_a_unit_or_none(data: bytes, position: int) -> None:
    unit = decode_unit(data, position)
    if unit is not None:
        assert encode_unit(unit) == data[position : position + unit.size_bytes]


@given(
    st.lists(units, min_size=1, max_size=60),
    st.integers(64, 300),
    st.lists(st.integers(0, 59), max_size=4),
)
def test_a_row_of_files_gives_back_its_units(
    put: list[Unit], file_bytes: int, written_at: list[int]
) -> None:
    files = FaultyFiles(FakeClock())
    open_files = OpenFiles(files, 4)
    row = ExtendedQueue("/ext", file_bytes)
    addresses = []
    for number, unit in enumerate(put):
        if number in written_at:
            row.write_waiting(open_files)
        addresses.append(address_of(row.append(encode_unit(unit))))
    assert all(map(is_address, addresses))
    reader = UnitReader(row, open_files)
    assert [reader.unit(address) for address in addresses] == put
    row.write_waiting(open_files)
    # As RocketMQ walks a file: from unit to unit, until a size that is none.
    walked = []
    for name in files.names("/ext"):
        data = files.read(f"/ext/{name}")
        assert len(data) == file_bytes
        position = 0
        while (size := int.from_bytes(data[position : position + 2], "big", signed=True)) > 0:
            walked.append(decode_unit(data, position))
            position += size
        assert position + 4 <= file_bytes
    assert walked == put


@given(
    st.sets(names, min_size=1, max_size=60),
    st.integers(1, 200),
    st.integers(1, 99),
    st.randoms(use_true_random=False),
)
def test_no_group_misses_what_it_wants(
    groups: set[str], expected_count: int, error_percent: int, choice: random.Random
) -> None:
    bloom = bloom_filter(expected_count, error_percent)
    bits_of = {group: bloom.bits(bloom.positions(f"{group}#T")) for group in groups}
    wanting = {group for group in groups if choice.random() < 0.5}
    stored = 0
    for group in wanting:
        stored |= bits_of[group]
    raw = stored.to_bytes(bloom.bit_count // 8, "little")
    for group in wanting:
        assert BitTest(10, bloom.bit_count, bits_of[group])(11, raw)
        assert bloom.is_of(bloom.bit_count, bloom.positions(f"{group}#T"))
    for group in groups:
        # Stored before the filter came to be, or with other bits: nothing is known.
        assert BitTest(10, bloom.bit_count, bits_of[group])(10, raw)
        assert BitTest(10, bloom.bit_count, bits_of[group])(11, raw + b"\0")
        assert BitTest(10, bloom.bit_count, bits_of[group])(11, b"")


def test_false_hits_stay_below_the_setting() -> None:
    """With as many groups wanting a message as the filter was made for, few others are let through."""
    for expected_count, error_percent in ((32, 20), (32, 5), (100, 10), (8, 50)):
        bloom = bloom_filter(expected_count, error_percent)
        hits = rounds = 0
        for attempt in range(40):
            stored = 0
            for number in range(expected_count):
                stored |= bloom.bits(bloom.positions(f"group-{attempt}-{number}#T"))
            raw = stored.to_bytes(bloom.bit_count // 8, "little")
            for number in range(100):
                others = bloom.bits(bloom.positions(f"other-{attempt}-{number}#T"))
                hits += BitTest(0, bloom.bit_count, others)(1, raw)
                rounds += 1
        assert 0 < hits / rounds < error_percent / 100 * 1.15, (expected_count, error_percent)
