"""UNIQ_KEY, the message id that a producer creates: who (address, process, instance), when (within the month), which.

4 or 16 bytes address | int16 pid | int32 instance hash | int32 ms since the month began | int16 counter
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

MonthOf = Callable[[int], tuple[int, int]]
"""From a time in milliseconds to the start and end of its month, in the machine's time zone."""


_HEX: Final = tuple(f"{value:02X}" for value in range(256))


class UniqueKeys:
    """Creates the keys of one producer. This runs for every message, so what stays the same for a while is cached."""

    __slots__ = (
        "_counter",
        "_last_ms",
        "_month_began_ms",
        "_month_ends_ms",
        "_month_of",
        "_prefix",
        "_stem",
    )

    def __init__(
        self, *, address: bytes, process_id: int, instance_hash: int, month_of: MonthOf
    ) -> None:
        assert len(address) in (4, 16), address
        who = (
            address
            + (process_id & 0xFFFF).to_bytes(2, "big")
            + (instance_hash & 0xFFFFFFFF).to_bytes(4, "big")
        )
        self._prefix = who.hex().upper()
        self._counter = 0
        self._month_of = month_of
        self._month_began_ms = self._month_ends_ms = 0
        self._last_ms = -1
        self._stem = ""

    def next(self, now_ms: int) -> str:
        """32 upper-case hex digits, 56 for an IPv6 address. Unique for up to 65,536 calls per millisecond."""
        if now_ms != self._last_ms:
            self._take_time(now_ms)
        counter = self._counter
        self._counter = (counter + 1) & 0xFFFF
        return self._stem + _HEX[counter >> 8] + _HEX[counter & 0xFF]

    def _take_time(self, now_ms: int) -> None:
        if not self._month_began_ms <= now_ms < self._month_ends_ms:
            self._month_began_ms, self._month_ends_ms = self._month_of(now_ms)
        self._last_ms = now_ms
        self._stem = f"{self._prefix}{(now_ms - self._month_began_ms) & 0xFFFFFFFF:08X}"
