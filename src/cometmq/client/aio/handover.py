"""Lets the client that had a queue before finish with it first.

When a group's members change, the old and the new owner of a queue both learn of it at about the same time. If the
new one started at once, it would begin at a position that the old one is just about to move on, and everything in
work would be consumed twice. There is no request for handing a queue over, but any client can have the broker ask
another one what it is doing (307): the old owner lists a queue until it has committed its position there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from cometmq.base.errors import CometError
from cometmq.client.aio.instance import ClientInstance
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol.bodies.running import ConsumerRunningInfo
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import encode_fields
from cometmq.protocol.headers.admin import GetConsumerRunningInfoHeader
from cometmq.protocol.reply_errors import error_for

logger = logging.getLogger("cometmq.client")

ASK_SECONDS: Final = 0.05
ASK_SECONDS_MAX: Final = 0.5
UNKNOWN_SECONDS: Final = 1.0
"""How long to wait when the old owner cannot be asked: enough for one that does as we do and is not busy."""


class Handover:
    """Who still has which queue; one question at a time to each client, however many queues it concerns."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._instance = instance
        self._group = group
        self._asking: dict[str, asyncio.Task[ConsumerRunningInfo]] = {}

    async def wait(self, queue: MessageQueue, owners: Iterable[str], timeout: float) -> None:
        """Return when those who may have the queue have let go of it, are gone, or have had their time."""
        await asyncio.gather(*(self._wait(queue, owner, timeout) for owner in owners))

    async def _wait(self, queue: MessageQueue, owner: str, timeout: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        delay = ASK_SECONDS
        while loop.time() < deadline:
            try:
                info = await self._ask(queue, owner)
            except CometError as error:
                logger.info(
                    "old owner cannot be asked group=%s queue=%s owner=%s reason=%s",
                    self._group,
                    queue,
                    owner,
                    error,
                )
                await asyncio.sleep(min(UNKNOWN_SECONDS, timeout))
                return
            if queue not in info.mq_table:
                return
            await asyncio.sleep(delay)
            delay = min(delay * 2, ASK_SECONDS_MAX)
        logger.warning(
            "old owner does not let go, taken all the same group=%s queue=%s owner=%s",
            self._group,
            queue,
            owner,
        )

    async def close(self) -> None:
        for task in self._asking.values():
            task.cancel()
        if self._asking:
            await asyncio.wait(self._asking.values())

    async def _ask(self, queue: MessageQueue, owner: str) -> ConsumerRunningInfo:
        task = self._asking.get(owner)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._ask_broker(queue, owner))
            self._asking[owner] = task
            task.add_done_callback(lambda _: self._asking.pop(owner, None))
        return await asyncio.shield(task)

    async def _ask_broker(self, queue: MessageQueue, owner: str) -> ConsumerRunningInfo:
        address = await self._instance.find_broker(queue)
        header = GetConsumerRunningInfoHeader(consumer_group=self._group, client_id=owner)
        request = Command(RequestCode.GET_CONSUMER_RUNNING_INFO, encode_fields(header))
        reply = await self._instance.call(address, request, self._instance.config.call_seconds)
        if reply.code != ResponseCode.SUCCESS:
            raise error_for(reply, address)
        return ConsumerRunningInfo.decode(reply.body)
