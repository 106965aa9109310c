"""Spoils samples: bytes that are nearly right reach further into a decoder than noise does. No I/O.

What is made follows from the random numbers alone, so that it can be made again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

NUMBERS: Final = (
    *(0, 1, 2, 3, 4, 7, 8, 16, 22, 127, 128, 255, 256, 32767, 32768, 65535, 65536),
    *(2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1),
)
STEPS_MAX: Final = 4
SIZE_MAX: Final = 64 * 1024


class Mutator:
    """
    Args:
        samples: what is right.
        words: pieces that mean something to the decoder.
    """

    def __init__(self, samples: Sequence[bytes], words: Sequence[bytes] = ()) -> None:
        assert samples
        self._samples = samples
        self._words = words or (b"\x00",)

    def make(self, random: Random) -> bytes:
        """One sample in forty stays as it is: a decoder that refuses everything finds nothing."""
        data = bytearray(random.choice(self._samples))
        if random.random() >= 0.025:
            for _ in range(random.randint(1, STEPS_MAX)):
                random.choice(_STEPS)(self, random, data)
        return bytes(data[:SIZE_MAX])

    def _flip(self, random: Random, data: bytearray) -> None:
        if data:
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)

    def _remove(self, random: Random, data: bytearray) -> None:
        at = random.randrange(len(data) + 1)
        del data[at : at + random.choice((1, 2, 4, 8, 64))]

    def _insert(self, random: Random, data: bytearray) -> None:
        at = random.randrange(len(data) + 1)
        data[at:at] = random.randbytes(random.choice((1, 2, 4, 8)))

    def _number(self, random: Random, data: bytearray) -> None:
        """Lengths and counts are what decoders trust too much."""
        size = random.choice((1, 2, 4, 8))
        at = random.randrange(len(data) + 1)
        value = random.choice(NUMBERS) & ((1 << 8 * size) - 1)
        data[at : at + size] = value.to_bytes(size, "big")

    def _nudge(self, random: Random, data: bytearray) -> None:
        """A number off by a little: one byte more or less than there is."""
        size = random.choice((1, 2, 4))
        if len(data) >= size:
            at = random.randrange(len(data) - size + 1)
            value = int.from_bytes(data[at : at + size], "big") + random.choice((-8, -1, 1, 8))
            data[at : at + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "big")

    def _word(self, random: Random, data: bytearray) -> None:
        at = random.randrange(len(data) + 1)
        data[at : at + random.choice((0, 0, 1, 4))] = random.choice(self._words)

    def _many_words(self, random: Random, data: bytearray) -> None:
        at = random.randrange(len(data) + 1)
        data[at:at] = random.choice(self._words) * random.choice((2, 10, 100, 1000))

    def _twice(self, random: Random, data: bytearray) -> None:
        at = random.randrange(len(data) + 1)
        data[at:at] = data[at : at + random.randint(1, 64)]

    def _splice(self, random: Random, data: bytearray) -> None:
        other = random.choice(self._samples)
        data[random.randrange(len(data) + 1) :] = other[random.randrange(len(other) + 1) :]

    def _cut(self, random: Random, data: bytearray) -> None:
        del data[random.randrange(len(data) + 1) :]


_STEPS: Final[tuple[Callable[[Mutator, Random, bytearray], None], ...]] = (
    Mutator._flip,
    Mutator._remove,
    Mutator._insert,
    Mutator._number,
    Mutator._nudge,
    Mutator._word,
    Mutator._many_words,
    Mutator._twice,
    Mutator._splice,
    Mutator._cut,
)
