"""How far the groups have popped, and how far the revive topic is done with.

A position says that everything before it is taken care of. It may only be saved when that holds on the disk, too: a
check-point that a crash of the machine loses must not leave its messages behind a saved position. So a change waits
here until the log is flushed up to where it was decided; all of them in order, so that what is saved fits together.
"""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import NamedTuple

from cometmq.store.meta.consumer_offsets import OffsetTable

Place = tuple[str, str, int]
"""Group, topic, queue."""


class _Ahead(NamedTuple):
    """A position that the table does not have yet."""

    offset: int
    in_table: int
    """What the table said when it was decided, or when it took over an earlier one."""
    epoch: int
    """Which changes belong to it: those before a reset do not."""


class _Change(NamedTuple):
    log_end: int
    place: Place
    offset: int
    epoch: int


class PopPositions:
    """Owned by the event loop."""

    def __init__(self, offsets: OffsetTable) -> None:
        self._offsets = offsets
        self._ahead: dict[Place, _Ahead] = {}
        self._changes: deque[_Change] = deque()
        self._epochs = count()

    @property
    def is_waiting(self) -> bool:
        return bool(self._changes)

    @property
    def waiting_count(self) -> int:
        """Changes that are not safe yet."""
        return len(self._changes)

    def forget(self) -> None:
        """Go by the table alone again."""
        self._ahead.clear()
        self._changes.clear()

    def peek(self, place: Place) -> int | None:
        """Where the group is that pops there, if that is not in the table yet. Changes nothing."""
        ahead = self._ahead.get(place)
        return None if ahead is None else ahead.offset

    def query(self, place: Place) -> int:
        """-1 when there is none."""
        if (reset := self._offsets.take_reset(*place)) is not None:
            # It may be what the table said before, and yet not where we were.
            self._ahead.pop(place, None)
            return reset
        in_table = self._offsets.query(*place)
        ahead = self._ahead.get(place)
        if ahead is None:
            return in_table
        if in_table != ahead.in_table:
            # Somebody has set it: an operator's reset counts for more than where we were.
            del self._ahead[place]
            return in_table
        return ahead.offset

    def move(self, place: Place, offset: int, log_end: int) -> None:
        """Go on at ``offset``; to be saved when the log is flushed up to ``log_end``."""
        if self.query(place) == offset:
            return
        ahead = self._ahead.get(place)
        if ahead is None:
            ahead = _Ahead(offset, self._offsets.query(*place), next(self._epochs))
        else:
            ahead = ahead._replace(offset=offset)
        self._ahead[place] = ahead
        self._changes.append(_Change(log_end, place, offset, ahead.epoch))

    def settle(self, flushed: int) -> None:
        """Hand over what is safe now."""
        changes = self._changes
        while changes and changes[0].log_end <= flushed:
            _, place, offset, epoch = changes.popleft()
            ahead = self._ahead.get(place)
            if ahead is None or ahead.epoch != epoch:
                continue
            if self._offsets.is_reset(*place) or self._offsets.query(*place) != ahead.in_table:
                del self._ahead[place]
                continue
            self._offsets.commit(*place, offset)
            if ahead.offset == offset:
                del self._ahead[place]
            else:
                self._ahead[place] = ahead._replace(in_table=offset)

    def __repr__(self) -> str:
        return f"<PopPositions {len(self._changes)} not yet safe>"
