"""The classic pull consumer: reads queues at offsets of the caller's choice; ``aio.pull_consumer`` does it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from cometmq.base.ports import Clock
from cometmq.client import aio
from cometmq.client.aio.pull_call import PullResult
from cometmq.client.aio.pull_consumer import QueueListener as AsyncQueueListener
from cometmq.client.core.expression import Expression
from cometmq.client.pull_config import PullConsumerConfig
from cometmq.client.sync.client import Queries, check_is_plain
from cometmq.model.message_queue import MessageQueue

QueueListener = Callable[[str, list[MessageQueue], list[MessageQueue]], None]
"""Called with a topic, all of its queues and this consumer's when either list changed, in a thread of its own."""


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
        """Raises UsageError for what is no group name or no address."""
        self._aio = aio.PullConsumer(group, name_servers=name_servers, config=config, clock=clock)
        super().__init__(self._aio)
        self._group = group

    def __repr__(self) -> str:
        state = "running" if self._is_running else "not running"
        return f"<PullConsumer {self._group!r} {state}>"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> None:
        """Connect, and tell brokers of this consumer. Nothing happens when it runs already.

        Raises:
            GroupInUse: a consumer of the group runs with the same client id.
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
        """This consumer's share of a topic's queues, as the group shares them out at this moment.

        It takes part in the sharing from the first call of this, or of ``on_queues_changed``, with the topic.
        """
        return self._run(self._aio.queues_in_balance, topic)

    def on_queues_changed(self, topic: str, listener: QueueListener) -> None:
        """Take part in sharing out a topic's queues; ``listener`` hears of every change, the first share included.

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
            wait_seconds: when nothing is there, let the broker hold the call so long for a first message.

        Raises:
            UsageError: an argument that no broker would take.
            BrokerReplyError: the broker refused.
            RemotingError: the call failed on its way.
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
        """Everything below ``offset`` is done for this group; a broadcasting consumer: for this client."""
        self._run(self._aio.commit, queue, offset)

    def committed(self, queue: MessageQueue) -> int | None:
        """The position that was committed, or None when there is none."""
        return self._run(self._aio.committed, queue)


def in_thread(listener: QueueListener) -> AsyncQueueListener:
    """The listener as the asyncio twin calls it: beside the loop, so that it may wait for the loop."""
    check_is_plain("listener", listener)

    async def call(topic: str, queues: list[MessageQueue], mine: list[MessageQueue]) -> None:
        await asyncio.to_thread(listener, topic, queues, mine)

    return call
