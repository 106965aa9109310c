"""Messages that are in the log and not shown to readers yet, because the log could still lose them.

A consumer that reads a record which a power loss takes away again is past the offset that another message gets then,
and never sees that one. So whoever promises more than the log's memory hides what he has not made safe, and shows it in
the order of the log when it is (``broker.durability`` decides). While nothing is hidden this costs a test per read.

Thread rule: the owner of the store.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cometmq.store.queues.consume_queue import ConsumeQueue

ANNOUNCED_MAX: Final = 100_000
"""Hidden messages whose announcement is kept. Of more, readers who wait learn when they ask again."""

Announce = Callable[[], None]


@dataclass(slots=True, eq=False)
class HiddenGroup:
    """Messages that were appended together."""

    end_offset: int
    """Where they end in the log."""
    ends: dict[ConsumeQueue, int]
    """Where their queues end with them."""
    count: int
    announce: Announce
    deadline: float = 0.0
    """For ``on_hide``: until when to wait for replicas."""


class Hidden:
    def __init__(self) -> None:
        self.is_on = False
        """Whether new messages are hidden."""
        self.on_hide: Callable[[HiddenGroup], None] = _nothing
        """Called when messages were hidden, and when more were added to the last group."""
        self._groups: deque[HiddenGroup] = deque()
        self._count = 0
        self.starts: dict[ConsumeQueue, int] = {}
        """The queues with hidden entries, and where these start."""

    def __len__(self) -> int:
        """How many messages are hidden and will be announced."""
        return self._count

    @property
    def first(self) -> HiddenGroup | None:
        return self._groups[0] if self._groups else None

    def end_of(self, queue: ConsumeQueue) -> int:
        """Where a queue ends for its readers."""
        return self.starts.get(queue, queue.next_offset) if self.starts else queue.next_offset

    def hide(
        self,
        end_offset: int,
        queues: list[ConsumeQueue],
        queue_offsets: list[int],
        announce: Announce,
    ) -> None:
        """Hide messages that were just entered into their queues.

        Args:
            announce: tells those who wait that they can be read.
        """
        ends: dict[ConsumeQueue, int] = {}
        for queue, offset in zip(queues, queue_offsets, strict=True):
            self.starts.setdefault(queue, offset)
            ends[queue] = offset + 1
        self._hide(end_offset, ends, len(queues), announce)

    def hide_ends(
        self,
        end_offset: int,
        queues: list[tuple[ConsumeQueue, int, int]],
        count: int,
        announce: Announce,
    ) -> None:
        """``hide`` of ``count`` messages by their queues: each with the offsets where they begin and end in it."""
        for queue, start, _ in queues:
            self.starts.setdefault(queue, start)
        self._hide(end_offset, {queue: end for queue, _, end in queues}, count, announce)

    def _hide(
        self, end_offset: int, ends: dict[ConsumeQueue, int], count: int, announce: Announce
    ) -> None:
        if self._count >= ANNOUNCED_MAX:
            group = self._groups[-1]
            group.end_offset = end_offset
            group.ends |= ends
        else:
            group = HiddenGroup(end_offset, ends, count, announce)
            self._groups.append(group)
            self._count += group.count
        self.on_hide(group)

    def show_first(self) -> None:
        """Show the oldest group."""
        group = self._groups.popleft()
        self._count -= group.count
        if self._groups:
            for queue, end in group.ends.items():
                if end < queue.next_offset:
                    self.starts[queue] = end
                else:
                    del self.starts[queue]
        else:
            self.starts.clear()
        group.announce()

    def show_all(self) -> None:
        while self._groups:
            self.show_first()

    def forget(self) -> None:
        """The queues are about to be closed."""
        self._groups.clear()
        self.starts.clear()
        self._count = 0

    def __repr__(self) -> str:
        return f"<Hidden {'on' if self.is_on else 'off'} groups={len(self._groups)} messages={self._count}>"


def _nothing(_: HiddenGroup) -> None:
    return None
