"""UNIQ_KEY, the message id a producer makes: who (address, process, instance), when (within the month), which.

4 or 16 bytes address | int16 pid | int32 instance hash | int32 ms since the month began | int16 counter
"""

from __future__ import annotations

from collections.abc import Callable

MonthOf = Callable[[int], tuple[int, int]]
"""From a time in milliseconds to begin and end of its month, in the time zone of the machine."""


class UniqueKeys:
    """Makes the keys of one producer. Months are looked up only when one ends: this runs for every message."""

    __slots__ = ("_counter", "_month_began_ms", "_month_ends_ms", "_month_of", "_prefix")

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

    def next(self, now_ms: int) -> str:
        """32 upper-case hex digits, 56 for an IPv6 address. No two are the same within 65,536 calls a millisecond."""
        if not self._month_began_ms <= now_ms < self._month_ends_ms:
            self._month_began_ms, self._month_ends_ms = self._month_of(now_ms)
        counter = self._counter
        self._counter = (counter + 1) & 0xFFFF
        elapsed_ms = (now_ms - self._month_began_ms) & 0xFFFFFFFF
        return f"{self._prefix}{elapsed_ms:08X}{counter:04X}"
