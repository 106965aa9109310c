"""Pieces of a buffer as a column."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("pyarrow")

import numpy as np
import pyarrow as pa

from cometmq.spark.columns.frames import spans


@pytest.mark.parametrize("length_max", [20, 2000])
@pytest.mark.parametrize("is_in_order", [True, False])
def test_pieces_are_what_lies_between_start_and_end(length_max: int, is_in_order: bool) -> None:
    """Short and long ones, empty ones among them, with and without gaps."""
    chance = random.Random(length_max)
    data = chance.randbytes(200 * length_max)
    edges = sorted(chance.choices(range(len(data)), k=400))
    pairs = list(zip(edges[0::2], edges[1::2], strict=True))
    pairs += [(edges[-1], len(data)), (len(data), len(data))]
    if not is_in_order:
        chance.shuffle(pairs)
    starts, ends = np.array(pairs, dtype=np.int64).T
    found = spans(pa.py_buffer(data), starts, ends)
    found.validate(full=True)
    assert found.to_pylist() == [data[start:end] for start, end in pairs]


def test_one_long_piece_and_none() -> None:
    data = bytes(range(256)) * 4
    buffer = pa.py_buffer(data)
    assert spans(buffer, np.array([1]), np.array([1000])).to_pylist() == [data[1:1000]]
    assert spans(buffer, np.array([], np.int64), np.array([], np.int64)).to_pylist() == []
