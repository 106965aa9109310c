"""When the messages of one delay level are due by the monotonic clock. Pure.

A queue entry says when its message is due by the wall clock: the time it was stored plus the delay. Somebody may set
that clock while the message waits, and then the log's own times, which never go back, stand still until it has caught
up. So it is noted at which moment of the monotonic clock a message of which time was stored, whenever that changes:

    anchor    from this queue offset on the times of the log are ``ahead_ms`` ahead of the monotonic clock

Without a jump there is one anchor. While the log's time stands still there are a thousand at most, since a delay is
kept to a thousandth. Messages of an earlier life of the broker have none: the wall clock of the start counts, and none
waits for longer than its delay from then on.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

ANCHORS_MAX: Final = 10_000
"""For a clock that is set all the time. Beyond it messages come early rather than late."""
PRECISION_MS: Final = 20
"""Differences up to this are no jump: it takes a moment to read two clocks."""


class Anchor(NamedTuple):
    queue_offset: int
    ahead_ms: int


class DueTimes:
    """Times are in milliseconds. Args: delay_ms: of the level; None when the settings no longer have it."""

    def __init__(self, delay_ms: int | None, *, wall_ms: int, monotonic_ms: int) -> None:
        self._ahead_ms = wall_ms - monotonic_ms
        self._latest_ms = None if delay_ms is None else monotonic_ms + delay_ms
        self._precision_ms = max(PRECISION_MS, (delay_ms or 0) // 1000)
        self.anchors: deque[Anchor] = deque()

    def stored(self, queue_offset: int, store_timestamp: int, monotonic_ms: int) -> None:
        """A message has just been stored."""
        ahead_ms = store_timestamp - monotonic_ms
        last = self.anchors[-1] if self.anchors else None
        if last is None or (
            abs(ahead_ms - last.ahead_ms) > self._precision_ms and len(self.anchors) < ANCHORS_MAX
        ):
            self.anchors.append(Anchor(queue_offset, ahead_ms))
        elif ahead_ms > last.ahead_ms:
            # Less time has passed between the reading of the two clocks.
            self.anchors[-1] = last._replace(ahead_ms=ahead_ms)

    def due_ms(self, queue_offset: int, wall_due_ms: int) -> int:
        """When a message is due by the monotonic clock. Messages are asked about in the order of the queue."""
        anchors = self.anchors
        while len(anchors) > 1 and anchors[1].queue_offset <= queue_offset:
            anchors.popleft()
        if anchors and anchors[0].queue_offset <= queue_offset:
            return wall_due_ms - anchors[0].ahead_ms
        due_ms = wall_due_ms - self._ahead_ms
        return due_ms if self._latest_ms is None else min(due_ms, self._latest_ms)
