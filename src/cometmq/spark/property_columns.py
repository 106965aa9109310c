"""The properties of many records as Arrow columns: the map, and single values out of it.

Texts are ``name 0x01 value 0x02 …``, one behind the other in one buffer. The places of the separators tell everything,
and they are found for the whole buffer at once.
"""

from __future__ import annotations

from typing import Any, Final

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
        _, offsets, buffer = texts.buffers()
        edges = np.frombuffer(offsets, dtype=np.int32)[: self._count + 1] if offsets else _NONE
        edges = edges.astype(np.int64)
        plain = np.frombuffer(buffer, dtype=np.uint8) if buffer and buffer.size else _NO_BYTES
        plain = plain[: edges[-1]] if len(edges) else plain
        starts, middles, ends = _pairs(plain, edges[:-1], edges[1:])
        rows = np.searchsorted(edges, starts, side="right") - 1
        names = spans(buffer, starts, middles) if len(starts) else pa.array([], pa.binary())
        encoded = names.dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        self._codes_of: dict[bytes, int] = {
            name: code for code, name in enumerate(encoded.dictionary.to_pylist())
        }
        kept = _last_of_each(rows, codes, len(self._codes_of))
        if kept is not None:
            starts, middles, ends, rows, codes = (
                part[kept] for part in (starts, middles, ends, rows, codes)
            )
            names = names.take(pa.array(kept))
        self._names = names
        self._rows = rows
        self._codes = codes
        values = spans(buffer, middles + 1, ends) if len(starts) else pa.array([], pa.binary())
        self._values = values.view(pa.string())

    def map(self) -> pa.Array:
        """All pairs, as a map column."""
        offsets = np.zeros(self._count + 1, dtype=np.int32)
        np.cumsum(np.bincount(self._rows, minlength=self._count), out=offsets[1:])
        return pa.MapArray.from_arrays(
            pa.array(offsets), self._names.view(pa.string()), self._values
        )

    def value(self, name: str) -> pa.Array:
        """The value of one property, null where it is missing."""
        code = self._codes_of.get(name.encode())
        if code is None:
            return pa.nulls(self._count, pa.string())
        pairs = np.flatnonzero(self._codes == code)
        if len(pairs) == self._count:
            return self._values.take(pa.array(pairs))
        places = np.zeros(self._count, dtype=np.int64)
        is_missing = np.ones(self._count, dtype=bool)
        places[self._rows[pairs]] = pairs
        is_missing[self._rows[pairs]] = False
        return self._values.take(pa.array(places, mask=is_missing))


_NONE: Final[Ints] = np.zeros(1, dtype=np.int32)
_NO_BYTES: Final[Ints] = np.zeros(0, dtype=np.uint8)


def _pairs(plain: Ints, row_starts: Ints, row_ends: Ints) -> tuple[Ints, Ints, Ints]:
    """Start, separator and end of every good pair, in the order of the buffer."""
    pair_ends = np.flatnonzero(plain == _PAIR_END)
    middles = np.flatnonzero(plain == _NAME_END)
    # A part starts with its row or behind a separator, and ends at the next one or with its row.
    starts = np.sort(np.concatenate((row_starts, pair_ends + 1)), kind="stable")
    ends = np.sort(np.concatenate((pair_ends, row_ends)), kind="stable")
    is_filled = ends > starts
    starts, ends = starts[is_filled], ends[is_filled]
    if len(middles) != len(starts) or _any(middles <= starts) or _any(middles >= ends - 1):
        first = np.searchsorted(middles, starts)
        behind = np.append(middles, (len(plain), len(plain)))
        middle, following = behind[first], behind[first + 1]
        is_pair = (middle > starts) & (middle < ends - 1) & (following >= ends)
        starts, middles, ends = starts[is_pair], middle[is_pair], ends[is_pair]
    return starts, middles, ends


def _last_of_each(rows: Ints, codes: Ints, name_count: int) -> Ints | None:
    """The pairs to keep so that no row has a name twice; None when there is nothing to drop."""
    if not len(rows):
        return None
    if name_count <= _BITS:
        row_starts = np.flatnonzero(np.diff(rows, prepend=-1))
        bits = np.left_shift(1, codes.astype(np.int64))
        # Without a repeat the sum of a row's bits is the same as their union.
        if (np.add.reduceat(bits, row_starts) == np.bitwise_or.reduceat(bits, row_starts)).all():
            return None
    places: Any = rows * name_count + codes
    _, from_end = np.unique(places[::-1], return_index=True)
    if len(from_end) == len(places):
        return None
    return np.sort(len(places) - 1 - from_end)


def _any(mask: Ints) -> bool:
    return bool(mask.any())
