"""The classic pull consumer: reads queues at offsets chosen by the caller, and keeps the group's positions.

``pull_schedule`` calls a user's function for each queue; ``lite_pull_consumer`` does all of this automatically.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence

from cometmq.base.errors import UsageError
from cometmq.base.ports import Clock
from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.aio.instance.queries import Queries, readable_queues, unwrap_queue, wrap_queue
from cometmq.client.aio.offsets.group_offsets import GroupOffsets
from cometmq.client.aio.pull.pull_call import PullCalls, PullResult, PullStatus
from cometmq.client.aio.pull.pull_role import Positions, PullRole
from cometmq.client.aio.pull.queue_balance import QueueBalance
from cometmq.client.core.consume.expression import Expression, subscription_to
from cometmq.client.core.consume.rebalance import find_strategy
from cometmq.client.errors import ClientClosed
from cometmq.client.pull_config import PullConsumerConfig
from cometmq.model.consumption import ConsumeFromWhere, MessageModel
from cometmq.model.message_queue import MessageQueue
from cometmq.model.names import check_group
from cometmq.model.subscription import build_subscription

__all__ = ["PullConsumer", "PullResult", "PullStatus", "QueueListener"]

logger = logging.getLogger("cometmq.client")

QueueListener = Callable[[str, list[MessageQueue], list[MessageQueue]], Awaitable[None] | None]
"""Called with a topic, all of its queues and this consumer's when either list has changed; def or async def."""


class PullConsumer(Queries):
    """``async with PullConsumer("group", name_servers=...) as consumer: await consumer.pull(queue, offset)``."""

    def __init__(
        self,
        group: str,
        *,
        name_servers: str | Sequence[str] | None = None,
        config: PullConsumerConfig | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Raises UsageError for an invalid group name or address."""
        check_group(group)
        self._config = (config or PullConsumerConfig()).with_name_servers(name_servers)
        self._group = group
        self._clock = clock
        self._running: _Running | None = None
        self._listeners: dict[str, QueueListener] = {}

    async def start(self) -> None:
        """Connect, and announce this consumer to the brokers. Does nothing if it is already running.

        Raises:
            GroupInUse: a consumer of the group is running with the same client id.
            CorruptFile: the positions of a broadcasting consumer cannot be read.
        """
        if self._running is not None:
            return
        config = self._config
        instance = ClientInstance.acquire(
            config.client, clock=self._clock, has_stable_id=config.is_broadcast
        )
        running = _Running(instance, self._group, config, self._shared)
        try:
            await instance.start()
            await running.start()
        except BaseException:
            await running.stop()
            raise
        self._running = running
        for topic in self._listeners:
            running.watch(topic)

    async def close(self) -> None:
        """Leave the group and close connections that nobody else uses. A second call does nothing."""
        running, self._running = self._running, None
        if running is not None:
            await running.stop()

    async def queues(self, topic: str) -> list[MessageQueue]:
        """All readable queues of a topic, sorted. Raises NoRoute."""
        return await readable_queues(self._for_queries(), topic)

    async def queues_in_balance(self, topic: str) -> list[MessageQueue]:
        """This consumer's current share of a topic's queues.

        It takes part in the distribution of a topic from the first call of this, or of ``on_queues_changed``, for it.
        """
        running = self._ready()
        running.watch(topic)
        await running.balance.announce()
        _, mine = await running.balance.share(running.instance.wrap_topic(topic))
        return [unwrap_queue(running.instance, queue) for queue in mine]

    def on_queues_changed(self, topic: str, listener: QueueListener) -> None:
        """Take part in the distribution of a topic's queues; ``listener`` is called initially and on every change."""
        if topic in self._listeners:
            raise UsageError(f"topic {topic!r} has a listener already")
        self._listeners[topic] = listener
        if self._running is not None:
            self._running.watch(topic)

    async def pull(
        self,
        queue: MessageQueue,
        offset: int,
        expression: Expression = "*",
        *,
        count_max: int = 32,
        wait_seconds: float = 0.0,
    ) -> PullResult:
        """Up to ``count_max`` messages from ``offset`` on.

        Args:
            expression: ``*``, tags joined by ``||``, ``Sql("a > 5")`` or ``FilterFunction("vip")``.
            wait_seconds: if there is nothing, let the broker hold the call for this long until a message arrives.

        Raises:
            UsageError: an argument that no broker would accept.
            BrokerReplyError: the broker refused.
            RemotingError: the network call failed.
        """
        running = self._ready()
        config = self._config
        suspend_seconds_max = config.suspend_ms_max / 1000
        if not 0 <= wait_seconds <= suspend_seconds_max:
            raise UsageError(
                f"wait_seconds must be 0 to {suspend_seconds_max:g}, not {wait_seconds}"
            )
        if offset < 0 or count_max < 1:
            raise UsageError(f"cannot pull {count_max} messages from offset {offset} of {queue}")
        subscription = subscription_to(
            queue.topic, expression, version=running.instance.clock.wall_ms()
        )
        timeout_ms = config.suspended_timeout_ms if wait_seconds > 0 else config.pull_timeout_ms
        return await running.calls.pull(
            wrap_queue(running.instance, queue),
            offset,
            subscription,
            count_max=count_max,
            wait_seconds=wait_seconds,
            timeout=timeout_ms / 1000,
        )

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Everything below ``offset`` is done for this group or, with broadcasting, for this client.

        Raises:
            UsageError: a negative offset.
            CometError: the broker did not confirm it.
        """
        running = self._ready()
        await running.commit({wrap_queue(running.instance, queue): offset})

    async def committed(self, queue: MessageQueue) -> int | None:
        """The committed position, or None if there is none."""
        running = self._ready()
        return await running.offsets.read(wrap_queue(running.instance, queue))

    def _for_queries(self) -> ClientInstance:
        return self._ready().instance

    def _ready(self) -> _Running:
        if self._running is None:
            raise ClientClosed(
                f"consumer of {self._group!r} does not run; use it inside `async with`, or start() it"
            )
        return self._running

    async def _shared(
        self, topic: str, queues: list[MessageQueue], mine: list[MessageQueue]
    ) -> None:
        running = self._running
        if running is None:
            return
        name = running.instance.unwrap_topic(topic)
        listener = self._listeners.get(name)
        if listener is None:
            return
        lists = [
            [unwrap_queue(running.instance, queue) for queue in each] for each in (queues, mine)
        ]
        try:
            outcome = listener(name, lists[0], lists[1])
            if inspect.isawaitable(outcome):
                await outcome
        except Exception:
            logger.exception("queue listener failed topic=%s group=%s", name, self._group)


class _Running:
    """The state of a consumer between start and close."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        config: PullConsumerConfig,
        on_share: Callable[[str, list[MessageQueue], list[MessageQueue]], Awaitable[None]],
    ) -> None:
        wire_group = instance.wrap_group(group)
        self.instance = instance
        self.calls = PullCalls(instance, wire_group)
        self.offsets = GroupOffsets(
            instance,
            wire_group,
            local_directory=config.local_offset_directory if config.is_broadcast else None,
        )
        self.balance = QueueBalance(
            instance,
            wire_group,
            strategy=None if config.is_broadcast else find_strategy(config.allocation),
            interval_seconds=config.rebalance_interval_ms / 1000,
            on_share=on_share,
        )
        self._role = PullRole(
            group=wire_group,
            message_model=MessageModel(config.message_model),
            consume_from=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
            wanted=lambda: [build_subscription(topic, "*") for topic in self.balance.topics],
            watched=lambda: self.balance.topics,
            rebalance=self.balance.soon,
            current=dict,
            # An operator reset the group. Where to pull is up to the user; we only commit the position.
            reset=self.commit,
        )

    async def start(self) -> None:
        await self.offsets.load()
        self.instance.add_consumer(self._role)
        self.balance.start()

    async def stop(self) -> None:
        await self.balance.stop()
        self.instance.remove_consumer(self._role)
        await self.instance.release()

    def watch(self, topic: str) -> None:
        wire_topic = self.instance.wrap_topic(topic)
        if wire_topic not in self.balance.topics:
            self.balance.add(wire_topic)
            self.instance.refresh_soon()
            self.balance.soon()

    async def commit(self, positions: Positions) -> None:
        failures = await self.offsets.commit(positions)
        for failure in failures.values():
            raise failure
