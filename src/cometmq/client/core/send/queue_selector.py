"""Chooses the queue of a send. No I/O.

A selector is anything that takes the topic's queues and the message and returns one of the queues. A send with a
selector goes to that queue and no other; without one, ``RoundRobin`` rotates and avoids a broker that just failed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from cometmq.base.errors import UsageError
from cometmq.model.java_hash import java_hash
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message

Selector = Callable[[Sequence[MessageQueue], Message], MessageQueue]

RandomBelow = Callable[[int], int]
"""``random.randrange`` or a substitute: an integer from 0 to below its argument."""

ROOM_SEPARATOR = "@"
"""Between the machine room and the rest of a broker's name: ``room1@broker-a``."""


class RoundRobin:
    """One per topic of a producer. ``start`` is random in use, so that not all producers start with queue 0."""

    __slots__ = ("_index",)

    def __init__(self, start: int = 0) -> None:
        self._index = start

    def select(
        self, queues: Sequence[MessageQueue], failed_broker: str | None = None
    ) -> MessageQueue:
        """The next queue; on a retry the next one of another broker, if there is one."""
        if failed_broker is not None:
            found = self.select_where(queues, lambda queue: queue.broker_name != failed_broker)
            if found is not None:
                return found
        self._index += 1
        return queues[self._index % len(queues)]

    def select_where(
        self, queues: Sequence[MessageQueue], accepted: Callable[[MessageQueue], bool]
    ) -> MessageQueue | None:
        """The next queue that is accepted; None if there is none."""
        for _ in queues:
            self._index += 1
            queue = queues[self._index % len(queues)]
            if accepted(queue):
                return queue
        return None


def by_hash(key: str) -> Selector:
    """The queue that Java's ``SelectMessageQueueByHash`` selects for the same text."""

    def select(queues: Sequence[MessageQueue], message: Message) -> MessageQueue:
        return queues[hash_index(key, len(queues))]

    return select


def hash_index(key: str, count: int) -> int:
    """Index of a key among ``count`` queues."""
    hashed = abs(java_hash(key))
    # The absolute value of Java's smallest integer is negative again, which its selector turns into 0.
    return 0 if hashed == 1 << 31 else hashed % count


def by_random(random_below: RandomBelow) -> Selector:
    """Any queue: ``by_random(random.randrange)``."""

    def select(queues: Sequence[MessageQueue], message: Message) -> MessageQueue:
        return queues[random_below(len(queues))]

    return select


def by_machine_room(rooms: Collection[str]) -> Selector:
    """Rotates over the queues of brokers in these rooms; over all queues while the topic has none there.

    Raises:
        UsageError: no room is given.
    """
    if isinstance(rooms, str) or not rooms:
        raise UsageError(f"expected a collection of machine rooms like ['room1'], got {rooms!r}")
    wanted = frozenset(rooms)
    robin = RoundRobin()

    def is_near(queue: MessageQueue) -> bool:
        room, separator, _ = queue.broker_name.partition(ROOM_SEPARATOR)
        return bool(separator) and room in wanted

    def select(queues: Sequence[MessageQueue], message: Message) -> MessageQueue:
        return robin.select_where(queues, is_near) or robin.select(queues)

    return select


def wanted_queue(
    topic: str,
    queues: Sequence[MessageQueue],
    message: Message,
    queue: MessageQueue | None,
    selector: Selector | None,
) -> MessageQueue | None:
    """The queue that a caller asks for, directly, by selector or by sharding key; None if any will do.

    Raises:
        UsageError: it is not a queue of the topic.
    """
    if queue is None:
        if selector is not None:
            queue = selector(queues, message)
            if not isinstance(queue, MessageQueue):
                raise UsageError(f"the selector must give a MessageQueue, not {queue!r}")
        elif message.sharding_key is not None:
            return queues[hash_index(message.sharding_key, len(queues))]
        else:
            return None
    if queue.topic != topic:
        raise UsageError(f"a message to {topic!r} cannot go to {queue}")
    return queue
