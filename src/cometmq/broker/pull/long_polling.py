"""Pulls that wait for a message: parked under their queue, woken by the append, by their time limit, or dropped.

    parked --arrival that fits--> ready --same turn of the loop--> run again
    parked --time limit---------> ready
    parked, ready --connection closed--> dropped

A pull is not run inside the append that wakes it but right after the loop's present callback. So the sends that
arrived in one chunk are answered first and the pull takes all of their messages in one reply.
Owned by the event loop. Next on a message's way: ``processors.pull``.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import Final, TypeVar

from cometmq.base.ports import Clock, EventLoop
from cometmq.broker.config.config_slices import PollingConfig
from cometmq.broker.pull.parked_request import ParkedRequest, Portions
from cometmq.protocol.command import Command
from cometmq.remoting.bounds.reached import Reached
from cometmq.remoting.connection import Connection

K = TypeVar("K")

TICK_SECONDS: Final = 0.25
"""Time limits are kept to this precision. RocketMQ looks every 5 s."""


class ParkedPull(ParkedRequest):
    """It waits for a message at ``offset`` or later."""

    __slots__ = ("deadline_tick", "offset")

    def __init__(
        self,
        connection: Connection,
        command: Command,
        *,
        topic: str,
        queue_id: int,
        offset: int,
        tags: Container[int] | None,
        wants: Callable[[bytes], bool] | None = None,
    ) -> None:
        super().__init__(
            connection, command, topic=topic, queue_id=queue_id, tags=tags, wants=wants
        )
        self.offset = offset
        self.deadline_tick = 0

    def __repr__(self) -> str:
        return f"<ParkedPull {self.topic}/{self.queue_id} from {self.offset} of {self.connection.peer}>"


class LongPolling:
    """Parks pulls. ``rerun`` is called once for each that was woken or ran out of time.

    Args:
        limits: most pulls parked at once.
    """

    def __init__(
        self,
        rerun: Callable[[ParkedPull], None],
        *,
        clock: Clock,
        loop: EventLoop,
        limits: PollingConfig,
        reached: Reached,
    ) -> None:
        self._rerun = rerun
        self._clock = clock
        self._loop = loop
        self.limits = limits
        self._reached = reached
        self._queues: dict[tuple[str, int], dict[ParkedPull, None]] = {}
        self._connections: dict[Connection, dict[ParkedPull, None]] = {}
        self._ticks: dict[int, dict[ParkedPull, None]] = {}
        self._ready = Portions(self._run, loop)
        self._count = 0
        self._bytes = 0
        self._is_ticking = False

    def park(self, pull: ParkedPull, seconds: float) -> bool:
        """Hold a pull for so long; False when there is no room, and it must be answered now."""
        if (bound := self._bound(pull)) is not None:
            self._reached.count(bound)
            return False
        # Rounded up: a pull is never answered before its time.
        pull.deadline_tick = int((self._clock.monotonic() + seconds) / TICK_SECONDS) + 1
        self._queues.setdefault((pull.topic, pull.queue_id), {})[pull] = None
        self._connections.setdefault(pull.connection, {})[pull] = None
        self._ticks.setdefault(pull.deadline_tick, {})[pull] = None
        self._count += 1
        self._bytes += pull.size_bytes
        pull.is_parked = True
        if not self._is_ticking:
            self._is_ticking = True
            self._loop.call_later(TICK_SECONDS, self._tick)
        return True

    def is_waiting_for(self, topics: list[str], queue_ids: list[int]) -> bool:
        queues = self._queues
        return bool(queues) and not queues.keys().isdisjoint(zip(topics, queue_ids, strict=True))

    def arrived(
        self,
        topic: str,
        queue_id: int,
        max_offset: int,
        tags_code: int,
        store_timestamp: int,
        properties: bytes,
    ) -> None:
        """The store appended a message; ``max_offset`` is the queue's end after it."""
        waiting = self._queues.get((topic, queue_id))
        if waiting is None:
            return
        woken = [
            pull
            for pull in waiting
            if max_offset > pull.offset and pull.accepts(tags_code, properties)
        ]
        self._wake((topic, queue_id), woken)

    def wake(self, topic: str, queue_id: int, group: str) -> None:
        """Run the pulls of a group on a queue again, because its position was moved."""
        key = (topic, queue_id)
        waiting = self._queues.get(key, {})
        self._wake(
            key,
            [pull for pull in waiting if (pull.command.ext or {}).get("consumerGroup") == group],
        )

    def forget(self, connection: Connection) -> None:
        """Drop the pulls of a closed connection."""
        for pull in list(self._connections.get(connection, ())):
            self._take(pull)

    def forget_topic(self, topic: str) -> None:
        """Answer the pulls of a topic that is going away."""
        self._answer([key for key in self._queues if key[0] == topic])

    def release_all(self) -> None:
        """Answer every pull soon, in portions: its reader may find more elsewhere."""
        self._ready.add([pull for pulls in self._queues.values() for pull in pulls])

    def answer_all(self) -> None:
        """Answer every pull because the broker stops. Java's client does not notice a closed connection in time:
        a pull left unanswered would keep its queue waiting for 30 s."""
        self._answer(list(self._queues))
        self._ready.run_all()

    def _bound(self, pull: ParkedPull) -> str | None:
        """The bound that one more pull would exceed."""
        limits = self.limits
        if self._count >= limits.parked_max:
            return "pullThreadPoolQueueCapacity"
        if self._bytes + pull.size_bytes > limits.parked_bytes_max:
            return "parkedRequestBytesMax"
        if len(self._connections.get(pull.connection, ())) >= limits.parked_of_connection_max:
            return "clientParkedRequestsMax"
        if len(self._queues.get((pull.topic, pull.queue_id), ())) >= limits.parked_of_queue_max:
            return "queueParkedPullsMax"
        return None

    def _answer(self, keys: list[tuple[str, int]]) -> None:
        for key in keys:
            for pull in list(self._queues[key]):
                self._take(pull)
                self._rerun(pull)

    def _wake(self, key: tuple[str, int], woken: list[ParkedPull]) -> None:
        waiting = self._queues.get(key, {})
        if len(woken) == len(waiting):
            self._queues.pop(key, None)
        else:
            for pull in woken:
                del waiting[pull]
        self._ready.add(woken)

    def _run(self, pull: ParkedPull) -> None:
        if self._take(pull) and not pull.connection.is_closed:
            self._rerun(pull)

    def _tick(self) -> None:
        now_tick = int(self._clock.monotonic() / TICK_SECONDS)
        for tick in [tick for tick in self._ticks if tick <= now_tick]:
            self._ready.add(self._ticks.pop(tick))
        self._ready.run_portion()
        self._is_ticking = bool(self._count)
        if self._is_ticking:
            self._loop.call_later(TICK_SECONDS, self._tick)

    def _take(self, pull: ParkedPull) -> bool:
        """False when it was taken before: its time can be over while it is ready, or its connection closed."""
        if not pull.is_parked:
            return False
        pull.is_parked = False
        _discard(self._queues, (pull.topic, pull.queue_id), pull)
        _discard(self._connections, pull.connection, pull)
        _discard(self._ticks, pull.deadline_tick, pull)
        self._count -= 1
        self._bytes -= pull.size_bytes
        return True

    def by_queue(self) -> Iterator[str]:
        """How many wait for each queue, for people."""
        for (topic, queue_id), pulls in self._queues.items():
            yield f"{topic}/{queue_id}: {len(pulls)} pulls"

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<LongPolling {self._count} pulls on {len(self._queues)} queues>"


def _discard(table: dict[K, dict[ParkedPull, None]], key: K, pull: ParkedPull) -> None:
    pulls = table.get(key)
    if pulls is not None:
        pulls.pop(pull, None)
        if not pulls:
            del table[key]
