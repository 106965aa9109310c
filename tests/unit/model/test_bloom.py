from __future__ import annotations

from cometmq.model.bloom import BloomFilter, bloom_filter
from cometmq.model.murmur3 import murmur3_x64_128


def test_murmur3() -> None:
    fox = b"The quick brown fox jumps over the lazy dog"
    assert murmur3_x64_128(fox) == (0xE34BBC7BBC071B6C, 0x7A433CA9C49A9347)
    assert murmur3_x64_128(b"") == (0, 0)
    # One, two and no bytes behind the last whole block, and a rest longer than half of one.
    assert len({murmur3_x64_128(fox[:length]) for length in range(44)}) == 44


def test_bits_of_a_group_and_topic() -> None:
    bloom = bloom_filter(32, 20)
    assert bloom == BloomFilter(hash_count=3, bit_count=112)
    assert bloom.positions("group1#TopicTest") == [79, 5, 68]
    assert bloom.positions("CG_sql#TopicSql") == [74, 76, 33]
