"""The committed positions of a pull consumer: at the brokers for its group, or in a file with broadcasting."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from cometmq.base.errors import UsageError
from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.aio.offsets.broker_offsets import BrokerOffsets
from cometmq.client.aio.offsets.local_offsets import LocalOffsets
from cometmq.model.message_queue import MessageQueue


class GroupOffsets:
    """Queues are named as on the wire.

    Args:
        local_directory: where a broadcasting client keeps its file; None for a clustering group.
    """

    def __init__(
        self, instance: ClientInstance, group: str, *, local_directory: str | None
    ) -> None:
        self._brokers = BrokerOffsets(instance, group)
        self._local: LocalOffsets | None = None
        if local_directory is not None:
            self._local = LocalOffsets(instance.client_id, group, local_directory)

    @property
    def store(self) -> BrokerOffsets | LocalOffsets:
        return self._local or self._brokers

    async def load(self) -> None:
        """Raises CorruptFile if there is a file of positions that cannot be read."""
        if self._local is not None:
            await self._local.load()

    async def read(self, queue: MessageQueue) -> int | None:
        """The committed position; None if there is none. Raises CometError if that cannot be determined."""
        return await self.store.read(queue)

    async def commit(
        self, positions: Mapping[MessageQueue, int]
    ) -> dict[MessageQueue, BaseException]:
        """Store them. On return all are stored except those returned, each with its error.

        Raises:
            UsageError: a negative offset; nothing was stored.
            OSError: the file could not be written; nothing was stored.
        """
        for queue, offset in positions.items():
            if offset < 0:
                raise UsageError(f"expected an offset of at least 0 in {queue}, got {offset}")
        if self._local is not None:
            await self._local.commit(positions)
            return {}
        outcomes = await asyncio.gather(
            *(self._brokers.commit_one(queue, offset) for queue, offset in positions.items()),
            return_exceptions=True,
        )
        return {
            queue: outcome
            for queue, outcome in zip(positions, outcomes, strict=True)
            if outcome is not None
        }
