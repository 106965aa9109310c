"""UNIQ_KEY, the message id a producer makes: who (address, process, instance), when (within the month), which.

4 or 16 bytes address | int16 pid | int32 instance hash | int32 ms since the month began | int16 counter
"""

from __future__ import annotations

import struct

_TAIL = struct.Struct(">IH")


class UniqueKeys:
    """Makes the keys of one producer. The caller says what time it is and when its month began."""

    __slots__ = ("_counter", "_prefix")

    def __init__(self, *, address: bytes, process_id: int, instance_hash: int) -> None:
        assert len(address) in (4, 16), address
        self._prefix = (
            address
            + (process_id & 0xFFFF).to_bytes(2, "big")
            + (instance_hash & 0xFFFFFFFF).to_bytes(4, "big")
        )
        self._counter = 0

    def next(self, ms_since_month_began: int) -> str:
        """32 upper-case hex digits, 56 for an IPv6 address."""
        counter = self._counter
        self._counter = (counter + 1) & 0xFFFF
        tail = _TAIL.pack(ms_since_month_began & 0xFFFFFFFF, counter)
        return (self._prefix + tail).hex().upper()
