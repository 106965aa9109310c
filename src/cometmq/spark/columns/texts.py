"""Columns of texts with few different values: topic, broker and hosts."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Final

import pyarrow as pa

from cometmq.model.address import host_text
from cometmq.spark.columns.frames import Ints

_STEP: Final = 4096
"""Batches have a few rows more or less; they share what is made in steps of so many."""


def repeated(text: str, count: int) -> pa.Array:
    """The same text in every row."""
    return _many(text, -(-count // _STEP) * _STEP).slice(0, count)


@lru_cache(maxsize=8)
def _many(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), count)


def hosts_v4(stored: Ints) -> pa.Array:
    """Hosts of IPv4 as texts.

    Args:
        stored: the 8 bytes of each, taken for a number as this machine has them: so they are told apart at a fraction
            of the cost.
    """
    encoded = pa.array(stored).dictionary_encode()
    hosts = [
        number.to_bytes(8, sys.byteorder, signed=True) for number in encoded.dictionary.to_pylist()
    ]
    return pa.array(map(host_text, hosts), pa.string()).take(encoded.indices)
