"""The properties of many records as Arrow columns: the map, and single values out of it.

Texts are ``name 0x01 value 0x02 …``, one behind the other in one buffer. The places of the separators tell everything,
and they are found for the whole buffer at once.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from cometmq.spark.frames import Ints, spans

_NAME_END: Final = 1
_PAIR_END: Final = 2
_BITS: Final = 63
"""So many different names are told apart by the bits of an integer."""


class PropertyColumns:
    """The pairs of some texts. A pair needs a name and a value, parts that have not are skipped, and the last of a name
    wins: what ``model.properties.parse_properties`` says of one text."""

    def __init__(self, texts: pa.Array) -> None:
        """
        Args:
            texts: a binary column without nulls that starts at the first byte of its buffer, known to be UTF-8.
        """
        self._count = len(texts)
        edges, plain = _content(texts)
        starts, middles, ends = _pairs(plain, edges)
        bounds = np.searchsorted(starts, edges)
        buffer = pa.py_buffer(plain)
        names = spans(buffer, starts, middles)
        encoded = names.dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        self._codes_of: dict[bytes, int] = {
            name: code for code, name in enumerate(encoded.dictionary.to_pylist())
        }
        kept = _last_of_each(bounds, codes, len(self._codes_of))
        if kept is not None:
            starts, middles, ends, codes = (part[kept] for part in (starts, middles, ends, codes))
            names = names.take(pa.array(kept))
            bounds = np.searchsorted(starts, edges)
        self._names = names.view(pa.string())
        self._values = spans(buffer, middles + 1, ends).view(pa.string())
        self._bounds = bounds
        """Pairs of row n are those from bound n to the next."""
        self._codes = codes

    def map(self) -> pa.Array:
        """All pairs, as a map column."""
        offsets = pa.array(self._bounds.astype(np.int32))
        return pa.MapArray.from_arrays(offsets, self._names, self._values)

    def value(self, name: str) -> pa.Array:
        """The value of one property, null where it is missing."""
        code = self._codes_of.get(name.encode())
        if code is None:
            return pa.nulls(self._count, pa.string())
        pairs = np.flatnonzero(self._codes == code)
        if len(pairs) == self._count:
            return self._values.take(pa.array(pairs))
        rows = _rows(self._bounds)[pairs]
        places = np.zeros(self._count, dtype=np.int64)
        is_missing = np.ones(self._count, dtype=bool)
        places[rows] = pairs
        is_missing[rows] = False
        return self._values.take(pa.array(places, mask=is_missing))


def _content(texts: pa.Array) -> tuple[Ints, Ints]:
    """Where each text starts and the last one ends, and the bytes of all of them."""
    _, offsets, buffer = texts.buffers()
    if not len(texts) or buffer is None or not buffer.size:
        return np.zeros(len(texts) + 1, dtype=np.int64), np.zeros(0, dtype=np.uint8)
    edges = np.frombuffer(offsets, dtype=np.int32)[: len(texts) + 1].astype(np.int64)
    return edges, np.frombuffer(buffer, dtype=np.uint8)[: edges[-1]]


def _pairs(plain: Ints, edges: Ints) -> tuple[Ints, Ints, Ints]:
    """Start, separator and end of every good pair, in the order of the buffer."""
    separators = np.flatnonzero((plain == _NAME_END) | (plain == _PAIR_END))
    kinds = plain[separators]
    row_ends = edges[1:]
    filled_ends = row_ends[np.diff(edges) > 0]
    middles, ends = separators[0::2], separators[1::2]
    if (
        len(middles) == len(ends)
        and (kinds[0::2] == _NAME_END).all()
        and (kinds[1::2] == _PAIR_END).all()
        and (plain[filled_ends - 1] == _PAIR_END).all()
    ):
        # As RocketMQ 5 and we write it: whole pairs, each with its end. So each starts where another ended.
        starts = np.empty_like(ends)
        starts[:1] = 0
        starts[1:] = ends[:-1] + 1
        if (middles > starts).all() and (ends > middles + 1).all():
            return starts, middles, ends
    return _any_pairs(plain, edges[:-1], row_ends)


def _any_pairs(plain: Ints, row_starts: Ints, row_ends: Ints) -> tuple[Ints, Ints, Ints]:
    pair_ends = np.flatnonzero(plain == _PAIR_END)
    middles = np.flatnonzero(plain == _NAME_END)
    # A part starts with its row or behind a separator, and ends at the next one or with its row.
    starts = np.sort(np.concatenate((row_starts, pair_ends + 1)), kind="stable")
    ends = np.sort(np.concatenate((pair_ends, row_ends)), kind="stable")
    is_filled = ends > starts
    starts, ends = starts[is_filled], ends[is_filled]
    first = np.searchsorted(middles, starts)
    middles = np.append(middles, (len(plain), len(plain)))
    middle, following = middles[first], middles[first + 1]
    is_pair = (middle > starts) & (middle < ends - 1) & (following >= ends)
    return starts[is_pair], middle[is_pair], ends[is_pair]


def _last_of_each(bounds: Ints, codes: Ints, name_count: int) -> Ints | None:
    """The pairs to keep so that no row has a name twice; None when there is nothing to drop."""
    if not len(codes):
        return None
    if name_count <= _BITS:
        row_starts = bounds[:-1][np.diff(bounds) > 0]
        bits = np.left_shift(1, codes.astype(np.int64))
        # Without a repeat the sum of a row's bits is the same as their union.
        if (np.add.reduceat(bits, row_starts) == np.bitwise_or.reduceat(bits, row_starts)).all():
            return None
    places = _rows(bounds) * name_count + codes
    _, from_end = np.unique(places[::-1], return_index=True)
    if len(from_end) == len(places):
        return None
    return np.sort(len(places) - 1 - from_end)


def _rows(bounds: Ints) -> Ints:
    """The row of each pair."""
    return np.repeat(np.arange(len(bounds) - 1, dtype=np.int64), np.diff(bounds))
