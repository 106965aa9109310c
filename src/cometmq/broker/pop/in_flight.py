"""What was popped and is not yet acknowledged. Pure; owned by the event loop.

A check-point sits in a revive queue at the offset of its record. Behind the first seat taken lies all that a restart
must read.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from cometmq.broker.pop.check_points import Ack, CheckPoint, Key

_HEAP_SLACK: Final = 1000


class InFlight:
    def __init__(self) -> None:
        self._points: dict[Key, CheckPoint] = {}
        self._seats: dict[int, OrderedDict[int, CheckPoint]] = {}
        self._due: list[tuple[int, int, CheckPoint]] = []
        self._number = 0

    def add(self, point: CheckPoint, seat: int) -> None:
        """Also takes a check-point again that moves to another seat."""
        known = self._points.get(point.key)
        if known is not None:
            self._remove(known)
        point.seat = seat
        self._points[point.key] = point
        self._seats.setdefault(point.revive_queue_id, OrderedDict())[seat] = point
        self._number += 1
        heapq.heappush(self._due, (point.due_ms, self._number, point))

    def get(self, key: Key) -> CheckPoint | None:
        return self._points.get(key)

    def ack(self, ack: Ack) -> bool:
        """Whether the check-point has nothing open any more, and is forgotten."""
        point = self._points.get(ack.key)
        if point is None:
            return False
        point.open.difference_update(ack.offsets)
        if point.open:
            return False
        self._remove(point)
        return True

    def due(self, now_ms: int) -> CheckPoint | None:
        """A check-point whose time is over; it stays until all of it is acknowledged."""
        due = self._due
        while due:
            due_ms, _, point = due[0]
            if self._points.get(point.key) is not point:
                heapq.heappop(due)
            elif due_ms > now_ms:
                return None
            else:
                return point
        return None

    def next_due_ms(self) -> int | None:
        due = self._due
        while due and self._points.get(due[0][2].key) is not due[0][2]:
            heapq.heappop(due)
        return due[0][0] if due else None

    def first(self, revive_queue_id: int) -> CheckPoint | None:
        """The one that has sat in a revive queue for the longest time."""
        return next(iter(self._seats.get(revive_queue_id, {}).values()), None)

    def points(self) -> Iterable[CheckPoint]:
        return self._points.values()

    def _remove(self, point: CheckPoint) -> None:
        del self._points[point.key]
        del self._seats[point.revive_queue_id][point.seat]
        if len(self._due) > 2 * len(self._points) + _HEAP_SLACK:
            # Most are acknowledged long before their time; their entries are not to pile up until then.
            self._due = [one for one in self._due if self._points.get(one[2].key) is one[2]]
            heapq.heapify(self._due)

    def __len__(self) -> int:
        return len(self._points)

    def __repr__(self) -> str:
        return f"<InFlight {len(self)} check-points>"
