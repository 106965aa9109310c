"""The messages of one queue between pull and commit: what is unfinished, and how far the group may commit. No I/O.

A puller adds in offset order; consumers finish in any order (``ProcessQueue``), or take and commit from the front
(``OrderlyQueue``). Belongs to one thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from cometmq.model.messages.received_message import ReceivedMessage


class ProcessQueue:
    """``commit_offset`` is the smallest offset that is not finished: all before it is done for the group."""

    __slots__ = ("_next_offset", "_order", "_sizes", "size_bytes")

    def __init__(self, start_offset: int) -> None:
        self._next_offset = start_offset
        # Offsets as they came. Finished ones leave when they reach an end, so both ends are unfinished.
        self._order: deque[int] = deque()
        self._sizes: dict[int, int] = {}
        self.size_bytes = 0
        """Bytes of the bodies that are unfinished."""

    @property
    def next_offset(self) -> int:
        """Where to pull from."""
        return self._next_offset

    @property
    def commit_offset(self) -> int:
        return self._order[0] if self._order else self._next_offset

    @property
    def count(self) -> int:
        return len(self._sizes)

    @property
    def span(self) -> int:
        """Distance between the first and the last unfinished offset."""
        return self._order[-1] - self._order[0] if self._order else 0

    @property
    def max_offset(self) -> int:
        """The last unfinished offset, or one before where to pull from."""
        return self._order[-1] if self._order else self._next_offset - 1

    def add(
        self, messages: Sequence[ReceivedMessage], next_offset: int
    ) -> Sequence[ReceivedMessage]:
        """Take what a pull found, in offset order, and where to pull next; what lies between was filtered out.

        The queue never goes back: returned are those messages that lie behind all that it has seen.
        """
        floor = self._next_offset
        if messages and messages[0].queue_offset < floor:
            messages = [message for message in messages if message.queue_offset >= floor]
        if messages:
            offsets = [message.queue_offset for message in messages]
            sizes = [len(message.body) for message in messages]
            self._order.extend(offsets)
            self._sizes.update(zip(offsets, sizes, strict=True))
            self.size_bytes += sum(sizes)
            floor = offsets[-1] + 1
        self._next_offset = max(floor, next_offset)
        return messages

    def finish(self, offset: int) -> bool:
        """The message needs no more work here; False when it was finished before."""
        size = self._sizes.pop(offset, None)
        if size is None:
            return False
        self.size_bytes -= size
        self._trim()
        return True

    def finish_all(self, messages: Iterable[ReceivedMessage]) -> None:
        """The same for several."""
        take = self._sizes.pop
        for message in messages:
            self.size_bytes -= take(message.queue_offset, 0)
        self._trim()

    def _trim(self) -> None:
        order, sizes = self._order, self._sizes
        while order and order[0] not in sizes:
            order.popleft()
        while order and order[-1] not in sizes:
            order.pop()


class OrderlyQueue(ProcessQueue):
    """Gives messages out from the front; the next ones only after those before are committed or put back."""

    __slots__ = ("_taken", "_waiting")

    def __init__(self, start_offset: int) -> None:
        super().__init__(start_offset)
        self._waiting: deque[ReceivedMessage] = deque()
        self._taken: list[ReceivedMessage] = []

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)

    @property
    def taken(self) -> Sequence[ReceivedMessage]:
        """What is being consumed now."""
        return self._taken

    def add(
        self, messages: Sequence[ReceivedMessage], next_offset: int
    ) -> Sequence[ReceivedMessage]:
        added = super().add(messages, next_offset)
        self._waiting.extend(added)
        return added

    def take(self, count_max: int) -> list[ReceivedMessage]:
        """The next messages, which are then "taken"."""
        assert not self._taken, "commit or put back what was taken before"
        waiting = self._waiting
        self._taken = [waiting.popleft() for _ in range(min(count_max, len(waiting)))]
        return list(self._taken)

    def commit(self, count: int | None = None) -> int:
        """The first ``count`` taken messages (all by default) are done; the others wait again. The commit offset."""
        taken, self._taken = self._taken, []
        count = len(taken) if count is None else count
        assert 0 <= count <= len(taken), (count, len(taken))
        self.finish_all(taken[:count])
        self._waiting.extendleft(reversed(taken[count:]))
        return self.commit_offset
