"""Locks that brokers keep of queues which are consumed in order (41, 42): a queue has one consumer at a time."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from cometmq.base.errors import CometError
from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol.bodies.lock import LockBatchBody, LockBatchReply
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.reply_errors import error_for

logger = logging.getLogger("cometmq.client")


@dataclass(frozen=True, slots=True)
class LockAnswer:
    """Queues that are now ours, and those that another client has. A broker that did not answer has said neither."""

    locked: set[MessageQueue]
    refused: set[MessageQueue]


class QueueLocks:
    """A broker forgets a lock that was not renewed for 60 s."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._instance = instance
        self._group = group

    async def lock(self, queues: Iterable[MessageQueue]) -> LockAnswer:
        """Take or renew locks."""
        answer = LockAnswer(set(), set())
        for body in self._by_broker(queues):
            try:
                reply = await self._call(RequestCode.LOCK_BATCH_MQ, body)
                locked = set(LockBatchReply.decode(reply.body).lock_ok_mq_set)
            except CometError as error:
                if error.route_is_stale:
                    self._instance.forget_route(body.mq_set[0].topic)
                logger.warning(
                    "queues not locked group=%s broker=%s reason=%s",
                    self._group,
                    body.mq_set[0].broker_name,
                    error,
                )
                continue
            answer.locked.update(locked.intersection(body.mq_set))
            answer.refused.update(set(body.mq_set) - locked)
        return answer

    async def unlock(self, queues: Iterable[MessageQueue]) -> None:
        """Let others have the queues. A broker that does not answer gives them away after 60 s."""
        for body in self._by_broker(queues):
            try:
                await self._call(RequestCode.UNLOCK_BATCH_MQ, body)
            except CometError as error:
                logger.warning(
                    "queues not unlocked group=%s broker=%s reason=%s",
                    self._group,
                    body.mq_set[0].broker_name,
                    error,
                )

    def _by_broker(self, queues: Iterable[MessageQueue]) -> list[LockBatchBody]:
        by_broker: dict[str, list[MessageQueue]] = {}
        for queue in sorted(queues):
            by_broker.setdefault(queue.broker_name, []).append(queue)
        return [
            LockBatchBody(
                client_id=self._instance.client_id, consumer_group=self._group, mq_set=listed
            )
            for listed in by_broker.values()
        ]

    async def _call(self, code: RequestCode, body: LockBatchBody) -> Command:
        address = await self._instance.find_broker(body.mq_set[0])
        reply = await self._instance.call(
            address, Command(code, body=body.encode()), self._instance.config.call_seconds
        )
        if reply.code != ResponseCode.SUCCESS:
            raise error_for(reply, address)
        return reply
