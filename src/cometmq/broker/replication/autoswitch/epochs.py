"""Whose reign each part of a log is from, and up to where two logs are the same. No I/O.

Each election has a number, the epoch. A master notes where its log ended when its reign began; its slaves copy the note
with the log. In one epoch one broker appends, so two logs with the same beginning of an epoch are the same from there
up to where the first of them ends it.

    own     1 from 0, 2 from 4160            log ends at 9000
    master  1 from 0, 2 from 4160, 3 from 7000
    -> the same up to 7000; from there on this log has what its master never got
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from cometmq.base.errors import UsageError

NO_EPOCH: Final = -1
"""What a log without any epoch says in the place of its last one."""
ENTRIES_MAX: Final = 1000
"""RocketMQ's brokers tell no more of them. The oldest go first: their part of the log is usually deleted long since."""


class Epoch(NamedTuple):
    number: int
    start: int
    """Where the log ended when this reign began."""


class EpochTable:
    """The epochs of one log, in order."""

    def __init__(self, entries: Iterable[Epoch] = ()) -> None:
        """Raises UsageError when they are not in order."""
        self._entries: list[Epoch] = []
        for entry in entries:
            if self._entries and not (
                entry.number > self._entries[-1].number and entry.start > self._entries[-1].start
            ):
                raise UsageError(f"epochs must rise, but {entry} comes after {self._entries[-1]}")
            self._entries.append(entry)

    def __iter__(self) -> Iterator[Epoch]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def last(self) -> Epoch | None:
        return self._entries[-1] if self._entries else None

    @property
    def last_number(self) -> int:
        return self._entries[-1].number if self._entries else NO_EPOCH

    def begin(self, epoch: Epoch) -> bool:
        """A reign begins. Whether that changed anything: it is known already when slaves are told of it again.

        A reign in which nothing was stored gives its place to the next. RocketMQ keeps the old number then; a broker
        that stored something in that reign, and nobody else got it, would take the new master's log for its own.

        Raises:
            UsageError: it began before the last one.
        """
        last = self.last
        if epoch == last:
            return False
        if last is not None:
            if epoch.number <= last.number or epoch.start < last.start:
                raise UsageError(f"epochs must rise, but {epoch} comes after {last}")
            if epoch.start == last.start:
                self._entries.pop()
        self._entries.append(epoch)
        del self._entries[:-ENTRIES_MAX]
        return True

    def at(self, offset: int) -> tuple[Epoch, int | None] | None:
        """The epoch that the byte at ``offset`` is from or will be from, and its end if it has one; None: not known."""
        end: int | None = None
        for entry in reversed(self._entries):
            if entry.start <= offset:
                return entry, end
            end = entry.start
        return None

    def cut(self, end: int) -> bool:
        """The log was cut at ``end``. Whether that changed anything."""
        return self._keep([entry for entry in self._entries if entry.start < end])

    def fit(self, end: int) -> bool:
        """The log was found to end at ``end``: reigns that began behind it left nothing. Whether anything changed."""
        return self._keep([entry for entry in self._entries if entry.start <= end])

    def drop_before(self, start: int) -> bool:
        """The log begins at ``start``, older files were deleted. Whether that changed anything."""
        ends = [entry.start for entry in self._entries[1:]]
        gone = sum(end <= start for end in ends)
        return self._keep(self._entries[gone:])

    def _keep(self, entries: list[Epoch]) -> bool:
        is_changed = len(entries) != len(self._entries)
        self._entries = entries
        return is_changed

    def __repr__(self) -> str:
        return f"<EpochTable {' '.join(f'{one.number}-{one.start}' for one in self._entries)}>"


def common_end(own: EpochTable, own_end: int, master: EpochTable, master_end: int) -> int | None:
    """Up to where two logs are the same, as their epochs tell; None: they have nothing in common."""
    starts = {entry.number: entry.start for entry in master}
    end = own_end
    for entry in reversed(list(own)):
        if starts.get(entry.number) == entry.start:
            found = master.at(entry.start)
            assert found is not None
            return min(end, master_end if found[1] is None else found[1])
        end = entry.start
    # Both begin with nothing, and each went its own way from there.
    begins = [next(iter(table)).start for table in (own, master) if len(table)]
    return 0 if begins == [0, 0] else None
