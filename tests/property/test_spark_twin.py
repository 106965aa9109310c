"""The compiled columns against those made in Python: the same rows, or left to Python, whatever the bytes are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

import numpy as np
from tests.property.test_spark_decode import alike, records
from tests.spark.log_stores import unpack_golden

from cometmq.native.choice import twin
from cometmq.spark.columns.compiled import Wanted, batch_of
from cometmq.spark.columns.decode import UndecodableRecord, decode_python
from cometmq.spark.columns.frames import locate
from cometmq.spark.columns.schema import COLUMNS, LOG_COLUMNS
from cometmq.store.files.record_walk import RecordWalk

pytestmark = pytest.mark.skipif(twin("rows") is None, reason="the twin is not compiled")

EVERY = COLUMNS + LOG_COLUMNS
OFFSETS = st.none() | st.integers(-(2**63), 2**63 - 1)


def outcome(data: bytes, places: Any, wanted: Wanted, physical: Any = None) -> Any:
    """What Python makes of the records, after a look at what the twin makes of them."""
    starts, sizes = np.array(places, dtype=np.int64).reshape(-1, 2).T
    made = batch_of(data, starts, sizes, wanted, physical)
    try:
        expected = decode_python(data, starts, sizes, wanted, physical_offsets=physical)
    except UndecodableRecord as error:
        assert made is None, made
        return error
    if made is not None:
        made.validate(full=True)
        assert made.schema == expected.schema
        # Not as Python's rows: its times do not reach as far.
        assert made.equals(expected), (made, expected)
    return made


def laid_out(stored: list[bytes], gap: bytes = b"") -> tuple[bytes, list[tuple[int, int]]]:
    places = []
    data = b""
    for record in stored:
        data += gap
        places.append((len(data), len(record)))
        data += record
    return data, places


@given(
    st.lists(records(), max_size=8) | alike(),
    st.binary(max_size=3),
    st.sets(st.sampled_from(EVERY), min_size=1),
    OFFSETS,
    OFFSETS,
    st.none() | st.lists(st.sampled_from(["a", "b", "", "标"]), min_size=1, max_size=2),
    st.randoms(),
)
def test_any_records_and_wishes(
    stored: list[bytes],
    gap: bytes,
    chosen: set[str],
    first: int | None,
    last: int | None,
    tags: list[str] | None,
    random: Any,
) -> None:
    data, places = laid_out(stored, gap)
    random.shuffle(places)
    columns = tuple(name for name in EVERY if name in chosen)
    outcome(data, places, Wanted(columns, "broker-ä", first, last, tags))


@given(alike())
def test_what_one_producer_sends_is_compiled_unless_it_has_a_name_twice(
    stored: list[bytes],
) -> None:
    made = outcome(*laid_out(stored), Wanted(EVERY, "b"))
    assert (made is None) == any(has_name_twice(record) for record in stored)


def has_name_twice(record: bytes) -> bool:
    frames = locate(record, np.array([0]), np.array([len(record)]))
    pairs = [part.split(b"\x01") for part in record[int(frames.properties_at[0]) :].split(b"\x02")]
    names = [pair[0] for pair in pairs if len(pair) == 2 and all(pair)]
    return len(set(names)) < len(names)


@given(
    st.lists(records(), min_size=1, max_size=4) | alike(),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4),
    st.integers(-2, 2),
)
def test_damage_is_left_to_python_or_harmless(
    stored: list[bytes], changes: list[tuple[int, int]], shift: int
) -> None:
    plain, places = laid_out(stored)
    damaged = bytearray(plain)
    for at, value in changes:
        damaged[at % len(damaged)] = value
    start, size = places[-1]
    places[-1] = (start + (shift if shift > 0 else 0), size + shift)
    outcome(bytes(damaged), places, Wanted(EVERY, "b"))


@given(alike(), st.integers(-1, 1))
def test_a_record_at_another_place_is_left_to_python(stored: list[bytes], shift: int) -> None:
    physical = np.arange(len(stored)) + shift
    found = outcome(*laid_out(stored), Wanted(("queueId",), "b"), physical)
    assert isinstance(found, UndecodableRecord) == bool(shift)


@pytest.mark.parametrize("version", ["4.9.7", "5.5.0"])
def test_stores_of_rocketmq(version: str, tmp_path: Path) -> None:
    compiled = 0
    for file in sorted((unpack_golden(version, tmp_path) / "commitlog").iterdir()):
        data = file.read_bytes()
        walk = RecordWalk(data, len(data))
        assert walk.starts
        for place in zip(walk.starts, walk.sizes, strict=True):
            compiled += outcome(data, [place], Wanted(EVERY, "golden")) is not None
        outcome(data, list(zip(walk.starts, walk.sizes, strict=True)), Wanted(EVERY, "golden"))
    assert compiled > 10
