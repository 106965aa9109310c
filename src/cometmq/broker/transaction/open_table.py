"""The transactions nobody has ended yet. In memory; ``recovery`` fills it after a start.

A transaction is known by its identity, the place of its first half message in the half queue. What counts is its newest
copy, for earlier ones are marked. The table is in the order of the newest copies, hence its head tells how much of the
half queue, and of the marks, nobody needs any more.
"""

from __future__ import annotations

from typing import Final

import msgspec

OPEN_MAX: Final = 1_000_000
"""Transactions open at once; beyond it half messages are refused. An entry takes about 200 bytes."""


class OpenHalf(msgspec.Struct, frozen=True, gc=False):
    """The newest copy of a half message whose transaction is open."""

    identity: int
    queue_offset: int
    physical_offset: int
    born_ms: int
    immunity_ms: int
    """How long after its birth nobody asks what became of it; -1 leaves it to the settings."""
    check_count: int
    group: str
    """Whose producers can tell what became of it."""
    marks_before: int
    """Where the queue of marks ended when this was stored: its own mark comes later."""
    topic: str = ""
    """Where it goes when it is committed."""


class OpenTable:
    def __init__(self) -> None:
        self._halves: dict[int, OpenHalf] = {}
        # Only those that have been copied: the others are where their identity says.
        self._copied: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._halves)

    @property
    def is_full(self) -> bool:
        return len(self._halves) >= OPEN_MAX

    def add(self, half: OpenHalf) -> None:
        """A new half message, or a newer copy of one: that takes the place of the older."""
        if (older := self.find(half.identity)) is not None:
            self.close(older)
        assert not self._halves or half.queue_offset > next(reversed(self._halves)), half
        self._halves[half.queue_offset] = half
        if half.identity != half.queue_offset:
            self._copied[half.identity] = half.queue_offset

    def find(self, identity: int) -> OpenHalf | None:
        """None when the transaction has ended."""
        half = self._halves.get(self._copied.get(identity, identity))
        return half if half is not None and half.identity == identity else None

    def is_open(self, half: OpenHalf) -> bool:
        """Whether this very copy is still the newest of an open transaction."""
        return self._halves.get(half.queue_offset) is half

    def close(self, half: OpenHalf) -> None:
        del self._halves[half.queue_offset]
        self._copied.pop(half.identity, None)

    def all(self) -> list[OpenHalf]:
        """In the order of the half queue; a copy."""
        return list(self._halves.values())

    def head(self) -> OpenHalf | None:
        """The one that lies first in the half queue."""
        return next(iter(self._halves.values()), None)

    def __repr__(self) -> str:
        return f"<OpenTable {len(self._halves)} transactions, head {self.head()}>"
