"""How records of a log are shared out among windows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cometmq.spark.log import log_reader
from cometmq.spark.log.log_reader import GAP_BYTES, WINDOW_BYTES, windows_of

RECORD_BYTES = 1_200


def test_nothing_needs_no_window() -> None:
    assert windows_of(np.array([], dtype=np.int64), np.array([], dtype=np.int64)) == []


@pytest.mark.parametrize(
    "bytes_beyond", [RECORD_BYTES, WINDOW_BYTES // 3, WINDOW_BYTES - 20 * RECORD_BYTES]
)
@pytest.mark.parametrize("windows", [1, 2, 9])
def test_windows_are_of_nearly_the_same_size(windows: int, bytes_beyond: int) -> None:
    records = (windows * WINDOW_BYTES + bytes_beyond) // RECORD_BYTES
    sizes = np.full(records, RECORD_BYTES)

    found = windows_of(np.arange(records) * RECORD_BYTES, sizes)

    counts = [end - first for first, end in found]
    assert len(found) == windows + 1
    assert max(counts) * RECORD_BYTES <= WINDOW_BYTES
    # Each may take one record more than its share, and the last has what they leave.
    assert max(counts) - min(counts) <= windows + 1


@given(
    st.lists(
        st.tuples(st.integers(0, 3 * GAP_BYTES), st.integers(91, 4_000)), min_size=1, max_size=200
    ),
    st.integers(1_000, 20_000),
)
def test_every_record_is_in_one_window_that_has_room_for_it(
    records: list[tuple[int, int]], window_bytes: int
) -> None:
    gaps, lengths = zip(*records, strict=True)
    sizes = np.array(lengths)
    physical = np.cumsum(np.array(gaps) + sizes) - sizes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_reader, "WINDOW_BYTES", window_bytes)
        found = windows_of(physical, sizes)

    assert [first for first, _ in found] == [0, *(end for _, end in found[:-1])]
    assert found[-1][1] == len(records)
    for first, end in found:
        assert end == first + 1 or int(sizes[first:end].sum()) <= window_bytes
