"""MurmurHash3, the x64 variant with 128 bits: the hash behind RocketMQ's Bloom filters."""

from __future__ import annotations

from typing import Final

_MASK: Final = (1 << 64) - 1
_C1: Final = 0x87C37B91114253D5
_C2: Final = 0x4CF5AD432745937F


def murmur3_x64_128(data: bytes, seed: int = 0) -> tuple[int, int]:
    """The two unsigned 64-bit halves."""
    h1 = h2 = seed
    whole = len(data) & ~15
    for at in range(0, whole, 16):
        k1 = int.from_bytes(data[at : at + 8], "little")
        k2 = int.from_bytes(data[at + 8 : at + 16], "little")
        h1 = (_rotate(h1 ^ _mix1(k1), 27) + h2) * 5 + 0x52DCE729 & _MASK
        h2 = (_rotate(h2 ^ _mix2(k2), 31) + h1) * 5 + 0x38495AB5 & _MASK
    # The rest counts as if padded with zeros, which do not change a hash.
    h1 ^= _mix1(int.from_bytes(data[whole : whole + 8], "little"))
    h2 ^= _mix2(int.from_bytes(data[whole + 8 :], "little"))
    h1 ^= len(data)
    h2 ^= len(data)
    h1 = h1 + h2 & _MASK
    h2 = h2 + h1 & _MASK
    h1 = _finish(h1)
    h2 = _finish(h2)
    h1 = h1 + h2 & _MASK
    return h1, h2 + h1 & _MASK


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK


def _mix1(k: int) -> int:
    return _rotate(k * _C1 & _MASK, 31) * _C2 & _MASK


def _mix2(k: int) -> int:
    return _rotate(k * _C2 & _MASK, 33) * _C1 & _MASK


def _finish(k: int) -> int:
    k = (k ^ k >> 33) * 0xFF51AFD7ED558CCD & _MASK
    k = (k ^ k >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return k ^ k >> 33
