"""What pulls and pops that wait have in common: the request that is kept, and how those that are woken are run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable
from time import monotonic
from typing import Final, Generic, TypeVar

from cometmq.base.ports import EventLoop
from cometmq.protocol.command import Command
from cometmq.remoting.connection import Connection
from cometmq.remoting.times.request_times import RequestTimes, Wait

PORTION: Final = 256
"""Requests that are run in one turn of the loop: some milliseconds."""
Item = TypeVar("Item")


class ParkedRequest:
    """A request and the messages that it waits for.

    Args:
        tags: the tag hash of a message must be in there; None: any.
        wants: judges the text of its properties; None: any.
    """

    __slots__ = (
        "command",
        "connection",
        "is_parked",
        "queue_id",
        "since",
        "size_bytes",
        "tags",
        "topic",
        "wants",
    )

    def __init__(
        self,
        connection: Connection,
        command: Command,
        *,
        topic: str,
        queue_id: int,
        tags: Container[int] | None,
        wants: Callable[[bytes], bool] | None,
    ) -> None:
        self.connection = connection
        self.command = command
        self.topic = topic
        self.queue_id = queue_id
        self.tags = tags
        self.wants = wants
        self.size_bytes = len(command.body) + sum(map(len, (command.ext or {}).values()))
        """What it takes as long as it is kept, roughly."""
        self.is_parked = False
        self.since = monotonic()
        """When it came."""

    def took(self, times: RequestTimes, answer: int) -> None:
        """It is answered now."""
        seconds = monotonic() - self.since
        times.took(self.command.code, answer, seconds, Wait.MESSAGE, peer=self.connection.peer)

    def accepts(self, tags_code: int, properties: bytes) -> bool:
        return (self.tags is None or tags_code in self.tags) and (
            self.wants is None or self.wants(properties)
        )


class Portions(Generic[Item]):
    """Runs what is ready after the loop's present callback: in portions, between which others are served.

    What is made ready meanwhile has its turn in the next portion. Owned by the event loop.
    """

    def __init__(self, run: Callable[[Item], None], loop: EventLoop) -> None:
        self._run = run
        self._loop = loop
        self._ready: deque[Item] = deque()

    def add(self, items: Iterable[Item]) -> None:
        was_idle = not self._ready
        self._ready += items
        if was_idle and self._ready:
            self._loop.call_soon(self._run_ready)

    def run_portion(self) -> None:
        for _ in range(min(PORTION, len(self._ready))):
            self._run(self._ready.popleft())

    def run_all(self) -> None:
        while self._ready:
            self.run_portion()

    def take_all(self) -> Iterable[Item]:
        """What is ready, and will not be run here."""
        ready, self._ready = self._ready, deque()
        return ready

    def _run_ready(self) -> None:
        self.run_portion()
        if self._ready:
            self._loop.call_soon(self._run_ready)
