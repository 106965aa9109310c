"""Read-ahead: one read that is likely to come next, done before it is requested.

A consumer that catches up asks for the messages after those it just got. While it is busy with them, there may be idle
time: with the next 32 messages ready, the broker's part of a pull took 32 instead of 59 us. One read is kept, not one
per reader: with several readers there is no idle time.

Thread rule: the owner of the store.
"""

from __future__ import annotations

from collections.abc import Callable

from cometmq.store.queues.consume_queue import ConsumeQueue
from cometmq.store.read.read_results import GetResult

Asked = tuple[ConsumeQueue, int, int, int]
"""Queue, offset, and the maximum number of messages and bytes."""


class ReadAhead:
    """
    Args:
        read: does the read, or returns None if it is not a simple one.
    """

    __slots__ = ("_expected", "_read", "_ready")

    def __init__(self, read: Callable[[Asked], GetResult | None]) -> None:
        self._read = read
        self._expected: Asked | None = None
        self._ready: tuple[Asked, GetResult] | None = None

    def expect(self, asked: Asked) -> None:
        """This read is expected next; replaces an earlier expectation."""
        self._expected = asked

    def run(self) -> None:
        """Do the expected read, if there is one."""
        asked, self._expected = self._expected, None
        if asked is None:
            return
        found = self._read(asked)
        if found is not None:
            # A copy: the log file may be gone by the time it is requested.
            found.parts = [memoryview(b"".join(found.parts))]
            self._ready = asked, found

    def take(self, asked: Asked) -> GetResult | None:
        """The result of this read, once; the queue's bounds are as ``read`` left them."""
        ready = self._ready
        if ready is None or ready[0] != asked:
            return None
        self._ready = None
        return ready[1]

    def forget(self) -> None:
        self._expected = self._ready = None
