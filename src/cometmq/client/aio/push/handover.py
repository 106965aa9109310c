"""Asks other members which queues they have.

When a group's members change, the old and the new owner of a queue both learn of it at about the same time. If the
new one started at once, it would begin at a position that the old one is just about to move on, and everything in
work would be consumed twice. There is no request for handing a queue over, but any client can have the broker ask
another one what it is doing (307): the old owner lists a queue until it has committed its position there.

Whom to ask, how often and for how long is decided in ``core.consume.member.old_owners``.
"""

from __future__ import annotations

import asyncio

from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol.bodies.running import ConsumerRunningInfo
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import encode_fields
from cometmq.protocol.headers.admin import GetConsumerRunningInfoHeader
from cometmq.protocol.reply_errors import error_for


class Handover:
    """One question at a time to each client, however many queues it is about."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._instance = instance
        self._group = group
        self._asking: dict[str, asyncio.Task[ConsumerRunningInfo]] = {}

    async def has_queue(self, owner: str, queue: MessageQueue) -> bool:
        """Whether another client has the queue. Raises CometError when that cannot be found out."""
        task = self._asking.get(owner)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._ask(owner, queue))
            self._asking[owner] = task
            task.add_done_callback(lambda _: self._asking.pop(owner, None))
        return queue in (await asyncio.shield(task)).mq_table

    async def close(self) -> None:
        for task in self._asking.values():
            task.cancel()
        if self._asking:
            await asyncio.wait(self._asking.values())

    async def _ask(self, owner: str, queue: MessageQueue) -> ConsumerRunningInfo:
        address = await self._instance.find_broker(queue)
        header = GetConsumerRunningInfoHeader(consumer_group=self._group, client_id=owner)
        request = Command(RequestCode.GET_CONSUMER_RUNNING_INFO, encode_fields(header))
        reply = await self._instance.call(address, request, self._instance.config.call_seconds)
        if reply.code != ResponseCode.SUCCESS:
            raise error_for(reply, address)
        return ConsumerRunningInfo.decode(reply.body)
