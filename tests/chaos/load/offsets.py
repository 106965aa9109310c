"""A consumer that commits by itself and looks whether its positions stay where it put them."""

from __future__ import annotations

import asyncio
from typing import Final

from tests.chaos.judge.history import Position, Queue
from tests.chaos.load.context import CLIENT, PRODUCER, Context, Senders

from cometmq.base.errors import CometError
from cometmq.client import Message, MessageQueue, PullConsumerConfig, SendResult
from cometmq.client.aio import Producer, PullConsumer

OFFSETS: Final = "offsets"
PAUSE_SECONDS: Final = 0.2


class Offsets:
    name = OFFSETS

    def __init__(self, context: Context) -> None:
        self._context = context
        self._producer = Producer(
            "produce-offsets", name_servers=context.name_servers, config=PRODUCER
        )
        self._senders = Senders(context, OFFSETS, self._send)
        self._consumer = PullConsumer(
            "consume-offsets",
            name_servers=context.name_servers,
            config=PullConsumerConfig(client=CLIENT),
        )
        self._readers: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        await self._producer.start()
        await self._consumer.start()
        queues = await self._consumer.queues(OFFSETS)
        self._readers = [asyncio.create_task(self._run(queue)) for queue in queues]
        self._senders.start()

    async def stop_sending(self) -> None:
        await self._senders.stop()

    async def close(self) -> None:
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        await self._consumer.close()
        await self._producer.close()

    async def _send(self, id: str, message: Message) -> SendResult:
        return await self._producer.send(message)

    async def _run(self, queue: MessageQueue) -> None:
        place: Queue = (queue.broker_name, queue.queue_id)
        positions, now = self._context.history.positions, self._context.now
        while True:
            try:
                # Where the group is, is where it reads on: what went back is read again.
                offset = await self._consumer.committed(queue)
                if offset is not None:
                    positions.append(Position(now(), place, offset, True))
                result = await self._consumer.pull(queue, offset or 0)
                for message in result.messages:
                    self._context.took(OFFSETS, message)
                if result.next_offset > (offset or 0):
                    await self._consumer.commit(queue, result.next_offset)
                    positions.append(Position(now(), place, result.next_offset, False))
            except CometError:
                pass  # Tried again below, as any consumer does.
            await asyncio.sleep(PAUSE_SECONDS)
