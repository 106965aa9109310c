"""A clock that only moves when told to."""

from __future__ import annotations


class FakeClock:
    """Implements ``base.ports.Clock``.

    ``advance`` lets time pass; ``jump`` sets the wall clock, which the monotonic clock does not notice.
    """

    def __init__(self, wall_ms: int = 1_700_000_000_000) -> None:
        self._wall_ms = wall_ms
        self._elapsed_ms = 0

    def wall_ms(self) -> int:
        return self._wall_ms

    def monotonic(self) -> float:
        return self._elapsed_ms / 1000

    def advance(self, seconds: float) -> None:
        assert seconds >= 0, seconds
        moved_ms = round(seconds * 1000)
        self._wall_ms += moved_ms
        self._elapsed_ms += moved_ms

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward, or back with a negative number."""
        self._wall_ms += round(seconds * 1000)

    def __repr__(self) -> str:
        return f"<FakeClock wall_ms={self._wall_ms}>"
