"""Distributes queues among a group of pull consumers: recomputed periodically and whenever the group changes."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from cometmq.base.errors import CometError
from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.aio.instance.periodic import Periodic
from cometmq.client.core.consume.rebalance import share_of
from cometmq.client.core.send.publish_queues import subscribe_queues
from cometmq.model.allocation import Strategy
from cometmq.model.message_queue import MessageQueue

logger = logging.getLogger("cometmq.client")

AGAIN_SECONDS: Final = 1.0
"""Time until the next round if a topic could not be distributed."""

OnShare = Callable[[str, list[MessageQueue], list[MessageQueue]], Awaitable[None]]
"""Topic, all of its queues, this client's: called when one of the lists has changed."""


class QueueBalance:
    """Topics, groups and queues have their wire names.

    Args:
        strategy: None for a broadcasting group, in which every consumer reads every queue.
    """

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        *,
        strategy: Strategy | None,
        interval_seconds: float,
        on_share: OnShare,
    ) -> None:
        self._instance = instance
        self._group = group
        self._strategy = strategy
        self._on_share = on_share
        self._shares: dict[str, tuple[list[MessageQueue], list[MessageQueue]] | None] = {}
        self._unannounced: set[str] = set()
        self._task = Periodic("balance", self._round, first=0, every=interval_seconds)

    @property
    def topics(self) -> list[str]:
        return list(self._shares)

    def add(self, topic: str) -> None:
        """Also distribute the queues of this topic, from the next round on."""
        if topic not in self._shares:
            self._shares[topic] = None
            self._unannounced.add(topic)

    def remove(self, topic: str) -> None:
        self._shares.pop(topic, None)

    def start(self) -> None:
        self._task.start()

    def soon(self) -> None:
        self._task.soon()

    async def stop(self) -> None:
        await self._task.stop()

    async def share(self, topic: str) -> tuple[list[MessageQueue], list[MessageQueue]]:
        """All readable queues of a topic, and this client's.

        Raises:
            NoRoute: the topic has no broker.
            CometError: the group's consumers could not be determined.
        """
        queues = subscribe_queues(topic, await self._instance.route(topic))
        if self._strategy is None or not queues:
            return queues, queues
        client_ids = await self._instance.consumer_ids(topic, self._group)
        return queues, share_of(self._strategy, self._instance.client_id, queues, client_ids)

    async def announce(self) -> None:
        """Announce this client to the brokers of added topics: only then does it get a share."""
        if self._strategy is None or not self._unannounced:
            return
        is_new = False
        for topic in list(self._unannounced):
            try:
                await self._instance.route(topic)
            except CometError as error:
                logger.info("no route yet topic=%s reason=%s", topic, error)
                continue
            self._unannounced.discard(topic)
            is_new = True
        if is_new:
            await self._instance.heartbeat()

    async def _round(self) -> float | None:
        await self.announce()
        is_complete = True
        for topic in self.topics:
            try:
                found = await self.share(topic)
            except CometError as error:
                logger.info(
                    "queues not shared out topic=%s group=%s reason=%s", topic, self._group, error
                )
                is_complete = False
                continue
            # It may have been given up while its share was being determined.
            if topic in self._shares and self._shares[topic] != found:
                await self._on_share(topic, *found)
                if topic in self._shares:
                    self._shares[topic] = found
        return None if is_complete else AGAIN_SECONDS
