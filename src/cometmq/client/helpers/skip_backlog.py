"""Skips old messages: one by one while consuming, or all at once by moving a group's positions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cometmq.base.clock import SystemClock
from cometmq.base.errors import UsageError
from cometmq.base.ports import Clock
from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.aio.pull.pull_consumer import PullConsumer
from cometmq.client.client_config import ClientConfig
from cometmq.client.core.consume.outcome import Outcome
from cometmq.client.helpers.listeners import is_async
from cometmq.client.pull_config import PullConsumerConfig
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.protocol.bodies.offsets import ResetOffsets
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import encode_fields
from cometmq.protocol.headers.admin import ResetOffsetHeader
from cometmq.protocol.reply_errors import SystemFault, error_for

logger = logging.getLogger("cometmq.client")

NOBODY: Final = "no consumer for this group"
NO_POSITION: Final = "not exist"
"""Part of a broker's reply for a queue in which the group has no position."""
POSITION_SECONDS_MAX: Final = 15.0
"""Consumers save their positions every five seconds; before that there is nothing for a broker to move."""
POSITION_AGAIN_SECONDS: Final = 0.2
TO_THE_END: Final = -1


@dataclass(slots=True)
class SkipOld:
    """Wraps a listener: messages stored longer ago than ``seconds`` count as consumed without calling it.

        skip = SkipOld(seconds=300)
        PushConsumer("prices", listener=skip.around(handle), ...)

    ``skipped`` counts them; ``on_skip`` is called with each. The clocks of the brokers and this machine should agree.
    """

    seconds: float
    on_skip: Callable[[ReceivedMessage], None] | None = None
    clock: Clock | None = None
    skipped: int = 0

    def is_old(self, message: ReceivedMessage) -> bool:
        clock = self.clock or SystemClock()
        return clock.wall_ms() - message.store_timestamp > self.seconds * 1000

    def around(
        self, listener: Callable[[ReceivedMessage], Any]
    ) -> Callable[[ReceivedMessage], Any]:
        """For listeners of single messages, def or async def."""
        if is_async(listener):

            async def skipping_async(message: ReceivedMessage) -> Any:
                return self._skip(message) or await listener(message)

            return skipping_async

        def skipping(message: ReceivedMessage) -> Any:
            return self._skip(message) or listener(message)

        return skipping

    def _skip(self, message: ReceivedMessage) -> Outcome | None:
        if not self.is_old(message):
            return None
        self.skipped += 1
        if self.on_skip is not None:
            self.on_skip(message)
        return Outcome.consumed


class GroupIsOnline(UsageError):
    """Consumers of the group are running: they would overwrite the new positions with their own."""


class GroupIsOffline(UsageError):
    """No consumer of the group is running, so there is nobody to tell."""


async def jump(
    group: str,
    topic: str,
    *,
    to_time_ms: int | None = None,
    name_servers: str | Sequence[str] | None = None,
    config: ClientConfig | None = None,
) -> dict[MessageQueue, int]:
    """Set a group's positions in a topic to the end, or to a time. Returns where each queue continues.

    All consumers of the group must be stopped: positions in their memory override those at the broker. For a running
    group, use ``jump_running``.

    Raises:
        GroupIsOnline: some are running.
        CometError: a request to a broker failed; the positions of other queues may have been set already.
    """
    client = (config or ClientConfig()).with_name_servers(name_servers)
    await _check_offline(client, group, topic)
    async with PullConsumer(group, config=PullConsumerConfig(client=client)) as consumer:
        positions: dict[MessageQueue, int] = {}
        for queue in await consumer.queues(topic):
            if to_time_ms is None:
                offset = await consumer.max_offset(queue)
            else:
                offset = await consumer.offset_by_time(queue, to_time_ms)
            await consumer.commit(queue, offset)
            positions[queue] = offset
    logger.info("positions set group=%s topic=%s queues=%d", group, topic, len(positions))
    return positions


async def jump_running(
    group: str,
    topic: str,
    *,
    to_time_ms: int | None = None,
    name_servers: str | Sequence[str] | None = None,
    config: ClientConfig | None = None,
) -> dict[MessageQueue, int]:
    """Make a running group continue at the end of a topic, or at a time. Returns where each queue continues.

    Its consumers learn of it from the brokers: they finish what they are doing, discard what they have pulled, and
    continue there. This has started when the call returns; Java consumers before RocketMQ 5 take ten seconds or more.

    Raises:
        GroupIsOffline: none is running; use ``jump``.
        CometError: a request to a broker failed, or it still knows no position of the group in some queue after a
            while; consumers may already have been told about the queues of other brokers.
    """
    client = (config or ClientConfig()).with_name_servers(name_servers)
    instance = ClientInstance.acquire(client)
    try:
        await instance.start()
        header = ResetOffsetHeader(
            topic=instance.wrap_topic(topic),
            group=instance.wrap_group(group),
            timestamp=TO_THE_END if to_time_ms is None else to_time_ms,
            is_force=True,
        )
        route = await instance.route(header.topic)
        # Brokers that announce a reset in the next pull do not check whether anybody is connected.
        if not await _members(instance, header.topic, header.group):
            raise _offline(group)
        positions: dict[MessageQueue, int] = {}
        for data in route.broker_datas:
            address = instance.broker_address(data.broker_name)
            if address is not None:
                table = await _tell(instance, address, header)
                for queue, offset in table.items():
                    positions[MessageQueue(queue.broker_name, queue.queue_id, topic)] = offset
    finally:
        await instance.release()
    logger.info("consumers told group=%s topic=%s queues=%d", group, topic, len(positions))
    return positions


async def _tell(
    instance: ClientInstance, address: str, header: ResetOffsetHeader
) -> dict[MessageQueue, int]:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + POSITION_SECONDS_MAX
    while True:
        request = Command(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, encode_fields(header))
        reply = await instance.call(address, request, instance.config.call_seconds)
        if reply.code == ResponseCode.SUCCESS:
            return ResetOffsets.decode(reply.body).offset_table
        if reply.code == ResponseCode.CONSUMER_NOT_ONLINE:
            raise _offline(header.group)
        if NO_POSITION not in (reply.remark or "") or loop.time() > deadline:
            raise error_for(reply, address)
        await asyncio.sleep(POSITION_AGAIN_SECONDS)


async def _check_offline(client: ClientConfig, group: str, topic: str) -> None:
    instance = ClientInstance.acquire(client)
    try:
        await instance.start()
        wire_topic = instance.wrap_topic(topic)
        await instance.route(wire_topic)
        members = await _members(instance, wire_topic, instance.wrap_group(group))
    finally:
        await instance.release()
    if members:
        raise GroupIsOnline(
            f"group {group!r} has {len(members)} consumers running ({', '.join(members[:3])}); stop them first"
        )


async def _members(instance: ClientInstance, wire_topic: str, wire_group: str) -> list[str]:
    try:
        return await instance.consumer_ids(wire_topic, wire_group)
    except SystemFault as error:
        # This is how all brokers say that nobody is connected.
        if NOBODY not in str(error):
            raise
        return []


def _offline(group: str) -> GroupIsOffline:
    return GroupIsOffline(f"no consumer of group {group!r} runs; use jump() while none does")
