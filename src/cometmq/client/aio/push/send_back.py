"""Has a message that could not be consumed delivered again later, or put into the dead letter queue (36, 310)."""

from __future__ import annotations

import logging
import random
from typing import Final

from cometmq.base.errors import CometError
from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.core.send.publish_queues import publish_queues
from cometmq.client.core.send.retry_message import retry_header
from cometmq.client.errors import NoRoute
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.names import retry_topic
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import encode_fields
from cometmq.protocol.headers.send import ConsumerSendMsgBackHeader
from cometmq.protocol.reply_errors import error_for

logger = logging.getLogger("cometmq.client")

SEND_BACK_SECONDS: Final = 5.0
ATTEMPTS_MAX: Final = 3

_STORED: Final = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.FLUSH_DISK_TIMEOUT,
        ResponseCode.FLUSH_SLAVE_TIMEOUT,
        ResponseCode.SLAVE_NOT_AVAILABLE,
    }
)


class SendBack:
    """``reconsume_times_max``: with so many retries behind it a message becomes a dead letter."""

    def __init__(self, instance: ClientInstance, group: str, reconsume_times_max: int) -> None:
        self._instance = instance
        self._group = group
        self._reconsume_times_max = reconsume_times_max

    async def send_back(
        self, message: ReceivedMessage, queue: MessageQueue, delay_level: int
    ) -> bool:
        """Have it delivered again after the time of the level (0: the broker chooses, -1: dead letter at once).

        First the broker that has the message is asked; if it cannot, a copy is sent to whichever broker can take it.
        False when that failed, too: the message is still the caller's.
        """
        try:
            await self._ask_broker(message, queue, delay_level)
        except CometError as error:
            logger.warning(
                "message not taken back, sending a copy group=%s message=%s reason=%s",
                self._group,
                message.message_id,
                error,
            )
        else:
            return True
        times = message.reconsume_times + 1
        # A copy has no way to say "dead letter at once" but that its retries are used up.
        times_max = self._reconsume_times_max if delay_level >= 0 else times - 1
        return await self._send_copy_safely(message, times, times_max)

    async def send_dead_letter(self, message: ReceivedMessage) -> bool:
        """A copy whose retries are used up, as orderly consumption sends it. False when that failed."""
        times = message.reconsume_times
        return await self._send_copy_safely(message, times, min(self._reconsume_times_max, times))

    async def _ask_broker(
        self, message: ReceivedMessage, queue: MessageQueue, delay_level: int
    ) -> None:
        header = ConsumerSendMsgBackHeader(
            offset=message.physical_offset,
            group=self._group,
            delay_level=delay_level,
            origin_msg_id=message.offset_id,
            origin_topic=self._instance.wrap_topic(message.topic),
            unit_mode=self._instance.config.is_unit_mode,
            max_reconsume_times=self._reconsume_times_max,
            broker_name=queue.broker_name,
        )
        # The master alone can write; while it is away the copy goes to another broker.
        address = self._instance.broker_address(queue.broker_name)
        if address is None:
            raise NoRoute(f"no master of {queue.broker_name} is known")
        request = Command(RequestCode.CONSUMER_SEND_MSG_BACK, encode_fields(header))
        reply = await self._instance.call(address, request, SEND_BACK_SECONDS)
        if reply.code != ResponseCode.SUCCESS:
            raise error_for(reply, address)

    async def _send_copy_safely(self, message: ReceivedMessage, times: int, times_max: int) -> bool:
        for attempt in range(ATTEMPTS_MAX):
            try:
                await self._send_copy(message, times, times_max)
            except CometError as error:
                logger.warning(
                    "retry not sent group=%s message=%s attempt=%d reason=%s",
                    self._group,
                    message.message_id,
                    attempt + 1,
                    error,
                )
                if error.route_is_stale:
                    self._instance.forget_route(retry_topic(self._group))
            else:
                return True
        return False

    async def _send_copy(self, message: ReceivedMessage, times: int, times_max: int) -> None:
        topic = retry_topic(self._group)
        queues = publish_queues(topic, await self._instance.publish_route(topic))
        if not queues:
            raise NoRoute(f"topic {topic!r} has no writable queue on any master")
        queue = random.choice(queues)
        header = retry_header(
            message,
            group=self._group,
            origin_topic=self._instance.wrap_topic(message.topic),
            reconsume_times=times,
            reconsume_times_max=times_max,
            now_ms=self._instance.clock.wall_ms(),
        )
        header.queue_id = queue.queue_id
        header.broker_name = queue.broker_name
        request = Command(RequestCode.SEND_MESSAGE_V2, encode_fields(header), message.body)
        address = await self._instance.find_master(queue)
        reply = await self._instance.call(address, request, SEND_BACK_SECONDS)
        if reply.code not in _STORED:
            raise error_for(reply, address)
