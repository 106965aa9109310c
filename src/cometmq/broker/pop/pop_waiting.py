"""Pops that found nothing and wait for a message, for as long as they said.

    park --message of its topic, or to be tried again--> rerun, which may park it again for the time left
         --time over-----------------------------------> rerun, the last time
         --connection closed---------------------------> forgotten

One message wakes one pop of each group: the next one is for the next. Owned by the event loop.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container
from itertools import count
from typing import Final

from cometmq.base.ports import Clock, EventLoop, Timer
from cometmq.broker.pop.pop_topics import ANY_QUEUE, retry_topic_v1, retry_topic_v2
from cometmq.broker.pull.parked_request import ParkedRequest, Portions
from cometmq.protocol.command import Command
from cometmq.remoting.bounds.reached import Reached
from cometmq.remoting.connection import Connection

_TIMER_SECONDS_MIN: Final = 0.01
_HEAP_SLACK: Final = 1000


class Waiter(ParkedRequest):
    """A pop that waits.

    Args:
        deadline: on the monotonic clock.
    """

    __slots__ = ("deadline", "group")

    def __init__(
        self,
        connection: Connection,
        command: Command,
        *,
        group: str,
        topic: str,
        queue_id: int,
        deadline: float,
        tags: Container[int] | None = None,
        wants: Callable[[bytes], bool] | None = None,
    ) -> None:
        super().__init__(
            connection, command, topic=topic, queue_id=queue_id, tags=tags, wants=wants
        )
        self.group = group
        self.deadline = deadline

    def wakes_for(self, topic: str, queue_id: int, tags_code: int, properties: bytes) -> bool:
        if topic != self.topic:
            return True
        return self.queue_id in (ANY_QUEUE, queue_id) and self.accepts(tags_code, properties)

    def __repr__(self) -> str:
        return f"<Waiter {self.group} for {self.topic}/{self.queue_id} of {self.connection.peer}>"


class PopWaiting:
    """Args: rerun: called with a pop that is woken or out of time; the second argument tells that it is the latter."""

    def __init__(
        self,
        rerun: Callable[[Waiter, bool], None],
        *,
        clock: Clock,
        loop: EventLoop,
        reached: Reached,
    ) -> None:
        self._reached = reached
        self._rerun = rerun
        self._clock = clock
        self._loop = loop
        self._waiters: dict[tuple[str, str], dict[Waiter, None]] = {}
        self._by_topic: dict[str, set[tuple[str, str]]] = {}
        self._connections: dict[Connection, set[Waiter]] = {}
        self._deadlines: list[tuple[float, int, Waiter]] = []
        self._numbers = count()
        self._ready = Portions(self._run, loop)
        self._timer: Timer | None = None
        self._count = 0
        self._bytes = 0
        self.count_max = 0
        self.of_group_max = 0
        self.of_connection_max = 0
        self.bytes_max = 0

    def park(self, waiter: Waiter) -> bool:
        """False when there is no room."""
        key = (waiter.group, waiter.topic)
        of_group = self._waiters.get(key)
        bound = None
        if self._count >= self.count_max:
            bound = "maxPopPollingSize"
        elif len(of_group or ()) >= self.of_group_max:
            bound = "popPollingSize"
        elif self._bytes + waiter.size_bytes > self.bytes_max:
            bound = "parkedRequestBytesMax"
        elif len(self._connections.get(waiter.connection, ())) >= self.of_connection_max:
            bound = "clientParkedRequestsMax"
        if bound is not None:
            self._reached.count(bound)
            return False
        if of_group is None:
            of_group = self._waiters[key] = {}
            for topic in _woken_by(*key):
                self._by_topic.setdefault(topic, set()).add(key)
        of_group[waiter] = None
        waiter.is_parked = True
        self._connections.setdefault(waiter.connection, set()).add(waiter)
        self._count += 1
        self._bytes += waiter.size_bytes
        if len(self._deadlines) > 2 * self._count + _HEAP_SLACK:
            # Most are answered long before their time; their entries are not to pile up until then.
            self._deadlines = [entry for entry in self._deadlines if entry[2].is_parked]
            heapq.heapify(self._deadlines)
        heapq.heappush(self._deadlines, (waiter.deadline, next(self._numbers), waiter))
        if self._deadlines[0][2] is waiter or self._timer is None:
            self._arm()
        return True

    def wake_soon(self, waiter: Waiter) -> None:
        """Run a parked one again in the next turn."""
        self._run_soon(waiter, is_over=False)

    def is_waiting_for(self, topics: list[str], queue_ids: list[int]) -> bool:
        return bool(self._by_topic) and not self._by_topic.keys().isdisjoint(topics)

    def arrived(
        self,
        topic: str,
        queue_id: int,
        max_offset: int,
        tags_code: int,
        store_timestamp: int,
        properties: bytes,
    ) -> None:
        """The store appended a message."""
        keys = self._by_topic.get(topic)
        if keys is None:
            return
        for key in list(keys):
            for waiter in self._waiters[key]:
                if waiter.wakes_for(topic, queue_id, tags_code, properties):
                    self.wake_soon(waiter)
                    break

    def count(self, group: str, topic: str, queue_id: int) -> int:
        """How many pops of a group wait for this queue (or, with -1, for any of the topic)."""
        waiting = self._waiters.get((group, topic), ())
        return sum(waiter.queue_id == queue_id for waiter in waiting)

    def forget(self, connection: Connection) -> None:
        """Drop what a closed connection waits for."""
        for waiter in list(self._connections.get(connection, ())):
            self._take(waiter)

    def answer_all(self) -> None:
        """The broker stops: everybody's time is over."""
        for waiters in list(self._waiters.values()):
            for waiter in list(waiters):
                self._take(waiter)
                self._rerun(waiter, True)
        for waiter, _ in self._ready.take_all():
            self._rerun(waiter, True)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def release_all(self) -> None:
        """Answer everybody soon, in portions, because this broker pops no more."""
        for waiter in [one for waiters in self._waiters.values() for one in waiters]:
            self._run_soon(waiter, is_over=True)

    def _run_soon(self, waiter: Waiter, *, is_over: bool) -> None:
        self._take(waiter)
        self._ready.add([(waiter, is_over)])

    def _run(self, ready: tuple[Waiter, bool]) -> None:
        waiter, is_over = ready
        if not waiter.connection.is_closed:
            self._rerun(waiter, is_over)

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        seconds = self._deadlines[0][0] - self._clock.monotonic()
        self._timer = self._loop.call_later(max(seconds, _TIMER_SECONDS_MIN), self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        while (deadlines := self._deadlines) and (
            deadlines[0][0] <= now or not deadlines[0][2].is_parked
        ):
            _, _, waiter = heapq.heappop(deadlines)
            if waiter.is_parked and waiter.deadline <= now:
                self._run_soon(waiter, is_over=True)
        if self._deadlines and self._timer is None:
            self._arm()

    def _take(self, waiter: Waiter) -> None:
        key = (waiter.group, waiter.topic)
        of_group = self._waiters[key]
        del of_group[waiter]
        if not of_group:
            del self._waiters[key]
            for topic in _woken_by(*key):
                keys = self._by_topic[topic]
                keys.discard(key)
                if not keys:
                    del self._by_topic[topic]
        mine = self._connections[waiter.connection]
        mine.discard(waiter)
        if not mine:
            del self._connections[waiter.connection]
        waiter.is_parked = False
        self._count -= 1
        self._bytes -= waiter.size_bytes

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<PopWaiting {self._count} pops>"


def _woken_by(group: str, topic: str) -> tuple[str, str, str]:
    return topic, retry_topic_v1(group, topic), retry_topic_v2(group, topic)
