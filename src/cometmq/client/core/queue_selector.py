"""Round robin over publish queues that turns away from a broker that just failed. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from cometmq.model.message_queue import MessageQueue


class RoundRobin:
    """One per producer. ``start`` is random in use, so that a thousand producers do not all begin with queue 0."""

    __slots__ = ("_index",)

    def __init__(self, start: int = 0) -> None:
        self._index = start

    def select(
        self, queues: Sequence[MessageQueue], failed_broker: str | None = None
    ) -> MessageQueue:
        """The next queue; on a retry the next one of another broker, if there is any."""
        assert queues, "a route without queues must be refused before"
        for _ in queues:
            self._index += 1
            queue = queues[self._index % len(queues)]
            if queue.broker_name != failed_broker:
                return queue
        self._index += 1
        return queues[self._index % len(queues)]
