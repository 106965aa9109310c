"""What the logs hold in the end: every queue is read from its beginning to its end, past every consumer's position."""

from __future__ import annotations

import asyncio
from typing import Final

from tests.chaos.judge.history import read_body

from cometmq.base.errors import CometError
from cometmq.client import PullConsumerConfig
from cometmq.client.aio import PullConsumer, PullStatus

AUDIT_SECONDS_MAX: Final = 60.0
PAUSE_SECONDS: Final = 0.5


async def stored_ids(name_servers: str, topics: list[str]) -> dict[str, set[str]]:
    """Ids of intact messages, by topic. Raises TimeoutError if the brokers do not let it come to an end."""
    async with (
        asyncio.timeout(AUDIT_SECONDS_MAX),
        PullConsumer("audit", name_servers=name_servers, config=PullConsumerConfig()) as consumer,
    ):
        return {topic: await _ids(consumer, topic) for topic in topics}


async def _ids(consumer: PullConsumer, topic: str) -> set[str]:
    ids: set[str] = set()
    for queue in await consumer.queues(topic):
        offset = 0
        while True:
            try:
                result = await consumer.pull(queue, offset, count_max=32)
            except CometError:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            for message in result.messages:
                id, is_intact = read_body(message.body)
                if is_intact:
                    ids.add(id)
            is_moved = result.next_offset > offset
            offset = max(offset, result.next_offset)
            if not is_moved or (
                result.status is not PullStatus.FOUND and offset >= result.max_offset
            ):
                break
    return ids
