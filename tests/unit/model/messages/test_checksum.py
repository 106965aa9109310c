from __future__ import annotations

import zlib

from hypothesis import given
from hypothesis import strategies as st

from cometmq.model.messages.checksum import crc32


@given(st.binary(max_size=5000), st.integers(0, 2**32 - 1))
def test_the_checksum_is_that_of_zlib(data: bytes, begin: int) -> None:
    assert crc32(memoryview(data), begin) == zlib.crc32(data, begin)
