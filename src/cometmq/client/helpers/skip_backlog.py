"""Leaves old messages behind: message by message while consuming, or all at once by moving a group's positions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cometmq.base.errors import UsageError
from cometmq.base.ports import Clock
from cometmq.base.system import SystemClock
from cometmq.client.aio.instance import ClientInstance
from cometmq.client.aio.pull_consumer import PullConsumer
from cometmq.client.config import ClientConfig
from cometmq.client.core.outcome import Outcome
from cometmq.client.helpers.listeners import is_async
from cometmq.client.pull_config import PullConsumerConfig
from cometmq.model.message_queue import MessageQueue
from cometmq.model.received_message import ReceivedMessage
from cometmq.protocol.reply_errors import SystemFault

logger = logging.getLogger("cometmq.client")

NOBODY: Final = "no consumer for this group"


@dataclass(slots=True)
class SkipOld:
    """Around a listener: messages stored longer ago than ``seconds`` count as consumed without it.

        skip = SkipOld(seconds=300)
        PushConsumer("prices", listener=skip.around(handle), ...)

    ``skipped`` counts them; ``on_skip`` is called with each. Clocks of brokers and this machine should agree.
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
    """Consumers of the group run: they hold its positions and would write theirs over new ones."""


async def jump(
    group: str,
    topic: str,
    *,
    to_time_ms: int | None = None,
    name_servers: str | Sequence[str] | None = None,
    config: ClientConfig | None = None,
) -> dict[MessageQueue, int]:
    """Set a group's positions in a topic to its end, or to a time. Returns where each queue goes on.

    All consumers of the group must be stopped: positions in their memory win over those at the broker. For a group
    that runs, ``mqadmin resetOffsetByTime`` tells its consumers.

    Raises:
        GroupIsOnline: some run.
        CometError: a broker could not be asked or told; the positions of other queues may be set already.
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


async def _check_offline(client: ClientConfig, group: str, topic: str) -> None:
    instance = ClientInstance.acquire(client)
    try:
        await instance.start()
        wire_topic = instance.wrap_topic(topic)
        await instance.route(wire_topic)
        members = await instance.consumer_ids(wire_topic, instance.wrap_group(group))
    except SystemFault as error:
        # The way in which brokers of all makes say that nobody is there.
        if NOBODY not in str(error):
            raise
        members = []
    finally:
        await instance.release()
    if members:
        raise GroupIsOnline(
            f"group {group!r} has {len(members)} consumers running ({', '.join(members[:3])}); stop them first"
        )
