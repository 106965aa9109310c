"""The properties of many records as Arrow columns: the map, and single values out of it.

Texts are ``name 0x01 value 0x02 …``, one behind the other in one buffer. The places of the separators tell everything,
and they are found for the whole buffer at once.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from cometmq.spark.columns.frames import Ints, common, spans

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
        self._pairs: _AlikePairs | _AnyPairs = _alike_pairs(plain, edges) or _AnyPairs(plain, edges)

    def map(self) -> pa.Array:
        """All pairs, as a map column."""
        offsets = pa.array(self._pairs.bounds.astype(np.int32))
        return pa.MapArray.from_arrays(offsets, self._pairs.names(), self._pairs.values())

    def value(self, name: str) -> pa.Array:
        """The value of one property, null where it is missing."""
        found = self._pairs.value(name.encode())
        return pa.nulls(self._count, pa.string()) if found is None else found


class _AlikePairs:
    """Of texts that all have the same names in the same order, none twice: what one producer sends. A value is found by
    its place then, and only what is asked for is copied."""

    def __init__(self, plain: Ints, names: list[bytes], middles: Ints, ends: Ints) -> None:
        """
        Args:
            middles: of each pair its separator, a row for each text; ``ends`` where it ends.
        """
        self._buffer = pa.py_buffer(plain)
        self._names = names
        self._middles = middles
        self._ends = ends
        self.bounds = np.arange(len(middles) + 1) * len(names)
        """Pairs of row n are those from bound n to the next."""

    def names(self) -> pa.Array:
        rows = len(self._middles)
        lengths = np.array([len(name) for name in self._names])
        offsets = np.zeros(rows * len(lengths) + 1, dtype=np.int32)
        np.cumsum(np.tile(lengths, rows), out=offsets[1:])
        content = pa.py_buffer(b"".join(self._names) * rows)
        return pa.Array.from_buffers(
            pa.string(), len(offsets) - 1, [None, pa.py_buffer(offsets), content]
        )

    def values(self) -> pa.Array:
        return spans(self._buffer, self._middles.ravel() + 1, self._ends.ravel()).view(pa.string())

    def value(self, name: bytes) -> pa.Array | None:
        if name not in self._names:
            return None
        place = self._names.index(name)
        starts, ends = self._middles[:, place] + 1, self._ends[:, place]
        return spans(self._buffer, starts, ends).view(pa.string())


class _AnyPairs:
    """Of texts of any kind."""

    def __init__(self, plain: Ints, edges: Ints) -> None:
        self._count = len(edges) - 1
        starts, middles, ends = _good_pairs(plain, edges[:-1], edges[1:])
        self.bounds = np.searchsorted(starts, edges)
        buffer = pa.py_buffer(plain)
        names = spans(buffer, starts, middles)
        encoded = names.dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        self._codes_of: dict[bytes, int] = {
            name: code for code, name in enumerate(encoded.dictionary.to_pylist())
        }
        kept = _last_of_each(self.bounds, codes, len(self._codes_of))
        if kept is not None:
            starts, middles, ends, codes = (part[kept] for part in (starts, middles, ends, codes))
            names = names.take(pa.array(kept))
            self.bounds = np.searchsorted(starts, edges)
        self._names = names.view(pa.string())
        self._values = spans(buffer, middles + 1, ends).view(pa.string())
        self._codes = codes

    def names(self) -> pa.Array:
        return self._names

    def values(self) -> pa.Array:
        return self._values

    def value(self, name: bytes) -> pa.Array | None:
        code = self._codes_of.get(name)
        if code is None:
            return None
        pairs = np.flatnonzero(self._codes == code)
        if len(pairs) == self._count:
            return self._values.take(pa.array(pairs))
        rows = _rows(self.bounds)[pairs]
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


def _alike_pairs(plain: Ints, edges: Ints) -> _AlikePairs | None:
    """None when the texts are not alike, or one of them has a part that is no pair."""
    row_starts, row_ends = edges[:-1], edges[1:]
    rows = len(row_ends)
    if not len(plain) or (row_starts == row_ends).any():
        return None
    # Both separators in one pass: of all bytes only 1 and 2 become less than 2, as 0 turns into 255.
    separators: Ints = np.flatnonzero(plain - np.uint8(1) < _PAIR_END)
    each = len(separators) // rows
    if not each or len(separators) != each * rows:
        return None
    pairs = (each + 1) // 2
    in_turn = np.tile(np.array([_NAME_END, _PAIR_END], dtype=np.uint8), pairs)[:each]
    if (plain[separators].reshape(rows, each) != in_turn).any():
        return None
    separators = separators.reshape(rows, each)
    middles = separators[:, 0::2]
    if each == 2 * pairs:
        ends = separators[:, 1::2]
        if (ends[:, -1] != row_ends - 1).any():
            return None
    else:
        # The last pair of each text has no separator behind it: it ends where the text does.
        ends = np.empty((rows, pairs), dtype=np.int64)
        ends[:, :-1] = separators[:, 1::2]
        ends[:, -1] = row_ends
    starts = np.empty_like(ends)
    starts[:, 0] = row_starts
    starts[:, 1:] = ends[:, :-1] + 1
    # Each separator lies behind the one before it, so the pairs are whole and within their texts.
    if (middles <= starts).any() or (ends <= middles + 1).any():
        return None
    names: list[bytes] = []
    for place in range(pairs):
        name = common(plain, starts[:, place], middles[:, place] - starts[:, place])
        if name is None or name in names:
            return None
        names.append(name)
    return _AlikePairs(plain, names, middles, ends)


def _good_pairs(plain: Ints, row_starts: Ints, row_ends: Ints) -> tuple[Ints, Ints, Ints]:
    """Start, separator and end of every good pair, in the order of the buffer."""
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
