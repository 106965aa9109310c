"""Several topics in strict order: urgent messages first, the rest only when nothing urgent is available.

RocketMQ has no priorities within a queue, so each priority gets its own topic (or queues assigned by hand) and its own
lite pull consumer:

    urgent, normal = LitePullConsumer("work-urgent", ...), LitePullConsumer("work", ...)
    urgent.subscribe("Urgent"); normal.subscribe("Normal")
    async with urgent, normal:
        async for message in ByPriority([urgent, normal]):
            ...
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Protocol

from cometmq.base.errors import UsageError
from cometmq.model.messages.received_message import ReceivedMessage


class Polled(Protocol):
    """The part of a lite pull consumer that is used."""

    async def poll(self, timeout: float | None = None) -> list[ReceivedMessage]: ...


class BlockingPolled(Protocol):
    """The same for the blocking client."""

    def poll(self, timeout: float | None = None) -> list[ReceivedMessage]: ...


class ByPriority:
    """Args:
        consumers: the most urgent one first. Each has its own group and is started and closed by the caller.
            look_seconds: how long to wait for the most urgent one when nothing is available; then the others are
            checked again.

    A steady flow of urgent messages starves the others: that is what strict order means.
    """

    def __init__(self, consumers: Sequence[Polled], *, look_seconds: float = 0.05) -> None:
        if not consumers or look_seconds <= 0:
            raise UsageError("give at least one consumer, and look_seconds above 0")
        self._consumers = list(consumers)
        self._look_seconds = look_seconds

    async def poll(self) -> list[ReceivedMessage]:
        """The next messages of the most urgent consumer that has any; empty after one look at all of them.

        A poll only tells its own consumer that its previous messages are done, so it commits nothing else.
        """
        for consumer in self._consumers:
            if messages := await consumer.poll(0):
                return messages
        return await self._consumers[0].poll(self._look_seconds)

    async def __aiter__(self) -> AsyncIterator[ReceivedMessage]:
        """Message after message. One batch is finished before more urgent ones are looked for: keep
        ``pull_batch_size`` of the less urgent consumers small (1 looks before every message)."""
        while True:
            for message in await self.poll():
                yield message


class BlockingByPriority:
    """The same for consumers from ``cometmq.client.sync``: ``for message in BlockingByPriority([urgent, normal])``."""

    def __init__(self, consumers: Sequence[BlockingPolled], *, look_seconds: float = 0.05) -> None:
        if not consumers or look_seconds <= 0:
            raise UsageError("give at least one consumer, and look_seconds above 0")
        self._consumers = list(consumers)
        self._look_seconds = look_seconds

    def poll(self) -> list[ReceivedMessage]:
        """The next messages of the most urgent consumer that has any; empty after one look at all of them."""
        for consumer in self._consumers:
            if messages := consumer.poll(0):
                return messages
        return self._consumers[0].poll(self._look_seconds)

    def __iter__(self) -> Iterator[ReceivedMessage]:
        while True:
            yield from self.poll()
