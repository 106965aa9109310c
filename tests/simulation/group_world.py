"""A consumer group in a nutshell: time, a network and a broker that are models, for members that are real.

Everything happens in one heap of events, so the same seed gives the same run. ``group_member`` is the shell that plays
a member's I/O here, ``group_book`` keeps what was consumed and checks what was promised.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from tests.simulation.group_book import Book

from cometmq.broker.clients.queue_locks import QueueLocks
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage

GROUP: Final = "g"
TOPIC, RETRY = "T", "%RETRY%g"
QUEUES: Final = [MessageQueue("b", number, TOPIC) for number in range(3)]
RETRY_QUEUE: Final = MessageQueue("b", 0, RETRY)
ALL_QUEUES: Final = [*QUEUES, RETRY_QUEUE]

CALL_SECONDS: Final = 3.0
PULL_SECONDS: Final = 30.0
HOLD_SECONDS: Final = 15.0
RETRY_SECONDS: Final = 2.0
CLIENT_EXPIRES_SECONDS: Final = 120.0
PULL_MESSAGES: Final = 4
EVENTS_MAX: Final = 200_000
"""More events than this in one run of the clock are a loop without end."""


class World:
    """Args:
    is_healthy: no message is ever lost or late.
    """

    def __init__(self, seed: int, *, is_orderly: bool, is_healthy: bool) -> None:
        self.random = random.Random(seed)
        self.is_healthy = is_healthy
        self.loss = 0.0
        """Chance that a message between a member and the broker is lost."""
        self.lateness = 0.03
        """Seconds that a message may be on its way."""
        self.now = 1000.0
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = itertools.count()
        self.book = Book(is_orderly=is_orderly, is_healthy=is_healthy)
        self.broker = Broker(self)

    def after(self, seconds: float, act: Callable[[], object]) -> None:
        self.at(self.now + seconds, act)

    def at(self, when: float, act: Callable[[], object]) -> None:
        heapq.heappush(self._events, (when, next(self._numbers), act))

    def run(self, seconds: float, is_done: Callable[[], bool] = lambda: False) -> None:
        end = self.now + seconds
        count = 0
        while self._events and self._events[0][0] <= end and not is_done():
            self.now, _, act = heapq.heappop(self._events)
            act()
            count += 1
            assert count < EVENTS_MAX, "something goes round in circles"
        if not is_done():
            self.now = end

    # As a clock for the broker's locks.

    def monotonic(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        return int(self.now * 1000)


class Link:
    """The connection of a member: messages arrive in the order they were sent, or not at all."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._up_at = self._down_at = 0.0
        self.is_cut = False

    def up(self, act: Callable[[], object]) -> None:
        self._up_at = self._send(self._up_at, act)

    def down(self, act: Callable[[], object]) -> None:
        self._down_at = self._send(self._down_at, act)

    def _send(self, last_at: float, act: Callable[[], object]) -> float:
        world = self._world
        arrives_at = max(last_at, world.now + world.random.random() * world.lateness)
        if not self._loses():
            world.at(arrives_at, lambda: None if self.is_cut else act())
        return arrives_at

    def _loses(self) -> bool:
        return self.is_cut or self._world.random.random() < self._world.loss


@dataclass
class Client:
    """What the broker knows of a member."""

    link: Link
    has_queue: Callable[[MessageQueue], bool]
    changed: Callable[[], None]
    reset: Callable[[MessageQueue, int], None]
    seen_at: float


@dataclass
class _Pull:
    offset: int
    reply: Callable[[Any], None]
    expires_at: float


@dataclass
class _Log:
    """The messages of a queue; ``first`` is the offset of the oldest that is still there."""

    bodies: list[bytes] = field(default_factory=list)
    retries: list[int] = field(default_factory=list)
    first: int = 0
    waiting: list[_Pull] = field(default_factory=list)


class Broker:
    """Does what brokers do: keeps messages, positions, locks and the list of members."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._logs = {queue: _Log() for queue in ALL_QUEUES}
        self._locks = QueueLocks(world)
        self._clients: dict[str, Client] = {}
        self.committed: dict[MessageQueue, int] = {}
        self._bodies = itertools.count()
        world.after(1.0, self._sweep)

    # Messages.

    def end(self, queue: MessageQueue) -> int:
        return len(self._logs[queue].bodies)

    def first(self, queue: MessageQueue) -> int:
        return self._logs[queue].first

    def produce(self, queue: MessageQueue) -> None:
        body = b"%d" % next(self._bodies)
        self._world.book.sent(queue, self.end(queue), body)
        self._append(queue, body, 0)

    def send_back(self, message: ReceivedMessage, queue: MessageQueue) -> bool:
        """It comes again in the retry topic."""
        self._world.book.sent_back(queue, message.queue_offset)
        times = message.reconsume_times + 1
        body = message.body

        def append() -> None:
            self._world.book.sent(RETRY_QUEUE, self.end(RETRY_QUEUE), body)
            self._append(RETRY_QUEUE, body, times)

        self._world.after(RETRY_SECONDS, append)
        return True

    def bury(self, message: ReceivedMessage, queue: MessageQueue) -> bool:
        self._world.book.buried(queue, message.queue_offset)
        return True

    def delete_consumed(self, queue: MessageQueue) -> None:
        """Old messages go; those below the group's position are old here."""
        log = self._logs[queue]
        log.first = max(log.first, min(self.committed.get(queue, 0), len(log.bodies)))

    def pull(
        self, queue: MessageQueue, offset: int, position: int | None, reply: Callable[[Any], None]
    ) -> None:
        """Answers (None, next offset) for an offset that is not there, otherwise (messages, next offset)."""

        def process() -> None:
            if position is not None:
                self.commit(queue, position)
            log = self._logs[queue]
            if offset < log.first or offset > len(log.bodies):
                reply((None, log.first if offset < log.first else len(log.bodies)))
            elif offset < len(log.bodies):
                reply(self._found(queue, offset))
            else:
                log.waiting.append(_Pull(offset, reply, self._world.now + HOLD_SECONDS))

        # A broker looks at pulls when it gets round to it, maybe after a commit that was sent later.
        self._world.after(self._world.random.random() * 0.1, process)

    def _append(self, queue: MessageQueue, body: bytes, times: int) -> None:
        log = self._logs[queue]
        log.bodies.append(body)
        log.retries.append(times)
        waiting, log.waiting = log.waiting, []
        for pull in waiting:
            pull.reply(self._found(queue, pull.offset))

    def _found(self, queue: MessageQueue, offset: int) -> tuple[list[ReceivedMessage], int]:
        log = self._logs[queue]
        end = min(offset + PULL_MESSAGES, len(log.bodies))
        messages = [
            ReceivedMessage(
                topic=queue.topic,
                body=log.bodies[at],
                queue_id=queue.queue_id,
                queue_offset=at,
                reconsume_times=log.retries[at],
            )
            for at in range(offset, end)
        ]
        return messages, end

    # Positions and locks.

    def commit(self, queue: MessageQueue, offset: int, *, is_last: bool = False) -> bool:
        self._world.book.committed(queue, offset, is_last=is_last)
        self.committed[queue] = offset
        return True

    def position(self, queue: MessageQueue) -> int:
        return self.committed.get(queue, 0)

    def lock(self, client_id: str, queues: list[MessageQueue]) -> set[MessageQueue]:
        return set(self._locks.lock(GROUP, client_id, queues))

    def unlock(self, client_id: str, queue: MessageQueue) -> bool:
        self._locks.unlock(GROUP, client_id, [queue])
        return True

    # Members.

    def members(self) -> list[str]:
        return list(self._clients)

    def heartbeat(self, client_id: str, client: Client) -> bool:
        is_new = client_id not in self._clients
        self._clients[client_id] = client
        client.seen_at = self._world.now
        if is_new:
            self._tell_all()
        return True

    def unregister(self, client_id: str) -> bool:
        if self._clients.pop(client_id, None) is not None:
            self._tell_all()
        return True

    def ask_owner(self, owner: str, reply: Callable[[Any], None]) -> None:
        """Answers with a function that says whether the owner has a queue, or False when it cannot be asked."""
        client = self._clients.get(owner)
        if client is None:
            reply(False)
            return

        def answer() -> None:
            listed = {queue for queue in ALL_QUEUES if client.has_queue(queue)}
            client.link.up(lambda: reply(listed.__contains__))

        client.link.down(answer)

    def reset(self, queue: MessageQueue, offset: int) -> None:
        self._world.book.reset(queue, offset, self.end(queue))
        for client in self._clients.values():
            client.link.down(partial(client.reset, queue, offset))

    def _tell_all(self) -> None:
        for client in self._clients.values():
            client.link.down(client.changed)

    def _sweep(self) -> None:
        now = self._world.now
        for queue, log in self._logs.items():
            expired = [pull for pull in log.waiting if pull.expires_at <= now]
            log.waiting = [pull for pull in log.waiting if pull.expires_at > now]
            for pull in expired:
                pull.reply(self._found(queue, pull.offset))
        gone = [
            client_id
            for client_id, client in self._clients.items()
            if now - client.seen_at > CLIENT_EXPIRES_SECONDS
        ]
        for client_id in gone:
            self.unregister(client_id)
        self._world.after(1.0, self._sweep)
