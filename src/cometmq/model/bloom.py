"""RocketMQ's Bloom filter over consumer groups: which bits represent a group's filter for a topic."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cometmq.model.murmur3 import murmur3_x64_128


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """``bit_count`` bits, of which ``hash_count`` represent one string."""

    hash_count: int
    bit_count: int

    def positions(self, text: str) -> list[int]:
        """The bits of a string, in the order of their hashes; the same bit may occur twice."""
        first, _ = murmur3_x64_128(text.encode())
        low, high = _int32(first), _int32(first >> 32)
        positions = []
        for number in range(1, self.hash_count + 1):
            combined = _int32(low + number * high)
            positions.append((~combined if combined < 0 else combined) % self.bit_count)
        return positions

    def bits(self, positions: Iterable[int]) -> int:
        """These positions as one number; its bytes, lowest first, are what a file holds."""
        bits = 0
        for position in positions:
            bits |= 1 << position
        return bits

    def is_of(self, bit_count: int, positions: Sequence[int]) -> bool:
        """Whether positions can come from a filter of this shape."""
        return (
            bit_count == self.bit_count
            and len(positions) == self.hash_count
            and all(0 <= position < bit_count for position in positions)
        )


def bloom_filter(expected_count: int, error_percent: int) -> BloomFilter:
    """A filter for this many strings with at most this rate of false positives; its size is a whole number of bytes."""
    error = error_percent / 100
    bits = math.ceil(expected_count * math.log2(1 / error) * math.log2(math.e))
    return BloomFilter(math.ceil(math.log2(1 / error)), -(-bits // 8) * 8)


def _int32(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value
