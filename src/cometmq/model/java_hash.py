"""Java's ``String.hashCode``: tags, index keys and allocation depend on it.

The hash of n UTF-16 units is the sum of ``unit[i] * 31**(n-1-i)`` in 32 wrapping bits. Summing products of two
ready sequences keeps the loop in C: about 1.2 us for 32 characters against 3 us for Horner's rule in Python.
"""

from __future__ import annotations

from operator import mul

_WRAP = 0xFFFFFFFF
_POWERS: list[tuple[int, ...]] = [()]


def _powers(count: int) -> tuple[int, ...]:
    """31**(count-1) … 31**0, wrapped. Kept for every length met; a key is bounded by its property text (32 KiB)."""
    while len(_POWERS) <= count:
        longest = _POWERS[-1]
        highest = (longest[0] * 31) & _WRAP if longest else 1
        _POWERS.append((highest, *longest))
    return _POWERS[count]


def java_hash(text: str) -> int:
    """The signed 32-bit hash of a string."""
    return to_signed(unsigned_hash(text))


def unsigned_hash(text: str) -> int:
    """The same 32 bits, unsigned."""
    if not text.isascii():
        raw = text.encode("utf-16-be", "surrogatepass")
        units: bytes | list[int] = [raw[i] << 8 | raw[i + 1] for i in range(0, len(raw), 2)]
    else:
        units = text.encode("ascii")
    if len(units) > 256:
        return _horner(units)
    total: int = sum(map(mul, units, _powers(len(units))))
    return total & _WRAP


def power_of_31(count: int) -> int:
    """31**count, wrapped: ``hash(a + b) == hash(a) * power_of_31(len(b)) + hash(b)``."""
    return pow(31, count, 1 << 32)


def to_signed(bits: int) -> int:
    return bits - 0x1_0000_0000 if bits & 0x8000_0000 else bits


def _horner(units: bytes | list[int]) -> int:
    # Long texts are rare; they must not fill the table of powers.
    value = 0
    for unit in units:
        value = (31 * value + unit) & _WRAP
    return value
