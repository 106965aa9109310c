"""The committed positions of a pull consumer: at the brokers for its group, or in a file for a broadcasting client."""

from __future__ import annotations

from cometmq.base.errors import UsageError
from cometmq.client.aio.instance import ClientInstance
from cometmq.client.aio.local_offsets import LocalOffsets
from cometmq.client.aio.offsets import BrokerOffsets
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
        """Raises CorruptFile when there is a file of positions that cannot be read."""
        if self._local is not None:
            await self._local.load()

    async def read(self, queue: MessageQueue) -> int | None:
        """The committed position, None when there is none. Raises CometError when that cannot be found out."""
        return await self.store.read(queue)

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Returns when everything below ``offset`` counts as done.

        Raises:
            UsageError: a negative offset.
            CometError: the broker did not confirm it.
            OSError: the file could not be written.
        """
        if offset < 0:
            raise UsageError(f"expected an offset of at least 0 in {queue}, got {offset}")
        if self._local is not None:
            await self._local.commit({queue: offset})
        else:
            await self._brokers.commit_one(queue, offset)
