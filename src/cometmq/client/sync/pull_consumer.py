"""The classic pull consumer: reads queues at offsets chosen by the caller. Wraps ``aio.pull.pull_consumer``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from cometmq.base.ports import Clock
from cometmq.client import aio
from cometmq.client.aio.pull.pull_call import PullResult
from cometmq.client.aio.pull.pull_consumer import QueueListener as AsyncQueueListener
from cometmq.client.core.consume.expression import Expression
from cometmq.client.pull_config import PullConsumerConfig
from cometmq.client.sync.client import Queries, check_is_plain
from cometmq.model.message_queue import MessageQueue

QueueListener = Callable[[str, list[MessageQueue], list[MessageQueue]], None]
"""Called with a topic, all of its queues and this consumer's when either list has changed, in a thread."""


class PullConsumer(Queries):
    """``with PullConsumer("group", name_servers=...) as consumer: consumer.pull(queue, offset)``."""

    def __init__(
        self,
        group: str,
        *,
        name_servers: str | Sequence[str] | None = None,
        config: PullConsumerConfig | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Raises UsageError for an invalid group name or address."""
        self._aio = aio.PullConsumer(group, name_servers=name_servers, config=config, clock=clock)
        super().__init__(self._aio)
        self._group = group

    def __repr__(self) -> str:
        return f"<PullConsumer {self._group!r} {self._state}>"

    def start(self) -> None:
        """Connect, and announce this consumer to the brokers. Does nothing if it is already running.

        Raises:
            GroupInUse: a consumer of the group is running with the same client id.
            CorruptFile: the positions of a broadcasting consumer cannot be read.
        """
        self._start(self._aio.start)

    def close(self) -> None:
        """Leave the group and close connections that nobody else uses. A second call does nothing."""
        self._close(self._aio.close)

    def queues(self, topic: str) -> list[MessageQueue]:
        """All readable queues of a topic, sorted. Raises NoRoute."""
        return self._run(self._aio.queues, topic)

    def queues_in_balance(self, topic: str) -> list[MessageQueue]:
        """This consumer's current share of a topic's queues.

        It takes part in the distribution of a topic from the first call of this, or of ``on_queues_changed``, for it.
        """
        return self._run(self._aio.queues_in_balance, topic)

    def on_queues_changed(self, topic: str, listener: QueueListener) -> None:
        """Take part in the distribution of a topic's queues; ``listener`` is called for every change, including the
        first.

        It is called in a thread and may use this consumer.
        """
        self._tell(self._aio.on_queues_changed, topic, in_thread(listener))

    def pull(
        self,
        queue: MessageQueue,
        offset: int,
        expression: Expression = "*",
        *,
        count_max: int = 32,
        wait_seconds: float = 0.0,
    ) -> PullResult:
        """Up to ``count_max`` messages from ``offset`` on.

        Args:
            expression: ``*``, tags joined by ``||``, ``Sql("a > 5")`` or ``FilterFunction("vip")``.
            wait_seconds: if there is nothing, let the broker hold the call for this long until a message arrives.

        Raises:
            UsageError: an argument that no broker would accept.
            BrokerReplyError: the broker refused.
            RemotingError: the network call failed.
        """
        return self._run(
            self._aio.pull,
            queue,
            offset,
            expression,
            count_max=count_max,
            wait_seconds=wait_seconds,
        )

    def commit(self, queue: MessageQueue, offset: int) -> None:
        """Everything below ``offset`` is done for this group or, with broadcasting, for this client."""
        self._run(self._aio.commit, queue, offset)

    def committed(self, queue: MessageQueue) -> int | None:
        """The committed position, or None if there is none."""
        return self._run(self._aio.committed, queue)


def in_thread(listener: QueueListener) -> AsyncQueueListener:
    """The listener for the asyncio consumer: runs in a thread, so that it may wait for the loop."""
    check_is_plain("listener", listener)

    async def call(topic: str, queues: list[MessageQueue], mine: list[MessageQueue]) -> None:
        await asyncio.to_thread(listener, topic, queues, mine)

    return call
