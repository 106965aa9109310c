"""The lite pull consumer: pulls its queues in the background, and returns messages when polled.

    async with LitePullConsumer("group", name_servers=...) as consumer:
        consumer.subscribe("Orders")
        async for message in consumer: ...

``core.consume.assigned_queues`` decides what to pull, what to return and what is done; ``queue_pullers`` does the
pulling. Internally, queues have their wire names; users see them without namespace.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from types import TracebackType

from cometmq.base.clock import SystemClock
from cometmq.base.errors import UsageError
from cometmq.base.ports import Clock
from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.aio.instance.queries import Queries, readable_queues, unwrap_queue, wrap_queue
from cometmq.client.aio.pull.lite_pull_work import Listeners, LitePullWork
from cometmq.client.aio.pull.pull_consumer import QueueListener
from cometmq.client.core.consume.expression import Expression, subscription_to
from cometmq.client.errors import ClientClosed
from cometmq.client.lite_pull_config import LitePullConfig
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.names import check_group
from cometmq.model.subscription import SubscriptionData


class LitePullConsumer(Queries):
    """Reads messages with ``poll`` or by iterating. Either ``subscribe`` to topics, whose queues the group shares, or
    ``assign`` queues by hand.

    Only one task may poll or iterate at a time: asking for more means that the previous messages are done.
    """

    def __init__(
        self,
        group: str,
        *,
        name_servers: str | Sequence[str] | None = None,
        config: LitePullConfig | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Raises UsageError for an invalid group name or address."""
        check_group(group)
        self._config = (config or LitePullConfig()).with_name_servers(name_servers)
        self._group = group
        self._clock: Clock = clock or SystemClock()
        self._running: LitePullWork | None = None
        self._subscriptions: dict[str, SubscriptionData] = {}
        self._assigned_by_hand: list[MessageQueue] | None = None
        self._listeners = Listeners()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # If the block is left with an error, the messages of the last poll are not done.
        await self._close(handed_is_done=error is None)

    async def start(self) -> None:
        """Connect, join the group, and start pulling what is subscribed or assigned. Does nothing if it is already
        running.

        Raises:
            GroupInUse: a consumer of the group is running with the same client id.
            CorruptFile: the positions of a broadcasting consumer cannot be read.
        """
        if self._running is not None:
            return
        instance = ClientInstance.acquire(
            self._config.client, clock=self._clock, has_stable_id=self._config.is_broadcast
        )
        running = LitePullWork(instance, self._group, self._config, self._listeners)
        try:
            await instance.start()
            await running.start()
        except BaseException:
            await running.stop()
            raise
        self._running = running
        if self._assigned_by_hand is not None:
            self._assign(running)
        else:
            for subscription in self._subscriptions.values():
                running.subscribe(subscription)

    async def close(self) -> None:
        """Leave the group. With auto commit, everything returned so far is committed as done first."""
        await self._close(handed_is_done=True)

    def subscribe(self, topic: str, expression: Expression = "*") -> None:
        """Take a share of a topic's queues; call it again with another expression to change it.

        Args:
            expression: ``*``, tags joined by ``||``, ``Sql("a > 5")`` or ``FilterFunction("vip")``.

        Raises:
            UsageError: queues are assigned by hand, or an expression that no broker would accept.
        """
        if self._assigned_by_hand is not None:
            raise UsageError("queues are assigned by hand; a consumer either subscribes or assigns")
        subscription = subscription_to(topic, expression, version=self._clock.wall_ms())
        self._subscriptions[topic] = subscription
        if self._running is not None:
            self._running.subscribe(subscription)

    def unsubscribe(self, topic: str) -> None:
        """Give up a topic's queues. Does nothing if it is not subscribed."""
        if self._subscriptions.pop(topic, None) is not None and self._running is not None:
            self._running.unsubscribe(topic)

    def assign(self, queues: Iterable[MessageQueue], expression: Expression = "*") -> None:
        """Read exactly these queues, whoever else reads them; call it again with others to change that.

        Raises:
            UsageError: topics are subscribed, or an expression that no broker would accept.
        """
        if self._subscriptions and self._assigned_by_hand is None:
            raise UsageError("topics are subscribed; a consumer either subscribes or assigns")
        chosen = list(queues)
        version = self._clock.wall_ms()
        self._subscriptions = {
            topic: subscription_to(topic, expression, version=version)
            for topic in {queue.topic for queue in chosen}
        }
        self._assigned_by_hand = chosen
        if self._running is not None:
            self._assign(self._running)

    async def poll(self, timeout: float | None = None) -> list[ReceivedMessage]:
        """The next messages, from one queue and in order; empty if none arrived in time.

        Asking for them means that everything returned before is done, which auto commit then commits.

        Args:
            timeout: seconds; by default 5 (``poll_timeout_ms``).
        """
        if timeout is None:
            timeout = self._config.poll_timeout_ms / 1000
        return await self._take(self._config.pull_batch_size, timeout)

    async def __aiter__(self) -> AsyncIterator[ReceivedMessage]:
        """One message after the other until the consumer is closed. Asking for the next means that one is done."""
        self._ready()
        while self._running is not None:
            for message in await self._take(1, self._config.poll_timeout_ms / 1000):
                yield message

    def assignment(self) -> list[MessageQueue]:
        """The queues that are currently read, sorted."""
        running = self._ready()
        return [unwrap_queue(running.instance, queue) for queue in running.assigned.queues]

    def position(self, queue: MessageQueue) -> int | None:
        """The next offset to return; None while it is not yet known where to start.

        Raises:
            UsageError: the queue is not assigned.
        """
        running = self._ready()
        return running.assigned.position(wrap_queue(running.instance, queue))

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Continue at ``offset``. Nothing pulled before the seek is returned after it.

        Raises:
            UsageError: the queue is not assigned, or the offset is outside it.
        """
        running = self._ready()
        wire = running.held(wrap_queue(running.instance, queue))
        low, high = await asyncio.gather(self.min_offset(queue), self.max_offset(queue))
        if not low <= offset <= high:
            raise UsageError(f"cannot seek {offset} in {queue}: it has {low} to {high}")
        running.seek(wire, offset)

    async def seek_to_begin(self, queue: MessageQueue) -> None:
        """Continue at the first message that still exists. Raises UsageError if the queue is not assigned."""
        running = self._ready()
        wire = running.held(wrap_queue(running.instance, queue))
        running.seek(wire, await self.min_offset(queue))

    async def seek_to_end(self, queue: MessageQueue) -> None:
        """Continue with what arrives after this call. Raises UsageError if the queue is not assigned."""
        running = self._ready()
        wire = running.held(wrap_queue(running.instance, queue))
        running.seek(wire, await self.max_offset(queue))

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Return nothing from these queues until they are resumed. Raises UsageError if one is not assigned."""
        running = self._ready()
        running.assigned.pause([wrap_queue(running.instance, queue) for queue in queues])

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Return messages from paused queues again. Raises UsageError if one is not assigned."""
        running = self._ready()
        running.assigned.resume([wrap_queue(running.instance, queue) for queue in queues])
        running.pullers.wake()
        running.pullers.announce()

    async def commit(self, offsets: Mapping[MessageQueue, int] | None = None) -> None:
        """Commit everything returned so far, or exactly these positions. Returns once it is stored.

        Raises:
            CometError: a position was not confirmed; the others were.
        """
        running = self._ready()
        if offsets is None:
            positions = running.assigned.to_commit(handed_is_done=True)
        else:
            positions = {
                wrap_queue(running.instance, queue): offset for queue, offset in offsets.items()
            }
        await running.commit(positions)

    async def committed(self, queue: MessageQueue) -> int | None:
        """The committed position of a queue; None if there is none."""
        running = self._ready()
        return await running.offsets.read(wrap_queue(running.instance, queue))

    async def queues(self, topic: str) -> list[MessageQueue]:
        """All readable queues of a topic, sorted. Raises NoRoute."""
        return await readable_queues(self._for_queries(), topic)

    def on_assignment_changed(self, listener: QueueListener) -> None:
        """Call ``listener(topic, all queues, this consumer's)`` when the group's distribution of a topic changes."""
        self._listeners.share = listener

    def on_queues_changed(self, topic: str, listener: QueueListener) -> None:
        """Check a topic every 30 s and call ``listener(topic, queues, assigned ones)`` when its queues have changed.

        For consumers that assign by hand. The initial queues are not a change.
        """
        if topic in self._listeners.topics:
            raise UsageError(f"topic {topic!r} has a listener already")
        self._listeners.topics[topic] = listener
        if self._running is not None:
            self._running.topic_check.soon()

    def _assign(self, running: LitePullWork) -> None:
        queues = [wrap_queue(running.instance, queue) for queue in self._assigned_by_hand or ()]
        running.assign(queues, self._subscriptions.values())

    async def _take(self, count_max: int, timeout: float) -> list[ReceivedMessage]:
        running = self._ready()
        assigned = running.assigned
        assigned.finish_handed()
        messages = assigned.take(count_max)
        if not messages:
            loop = asyncio.get_running_loop()
            deadline = loop.time() + timeout
            while not messages and await running.pullers.arrival(deadline - loop.time()):
                if self._running is not running:
                    return []
                messages = assigned.take(count_max)
        if running.pullers.has_sleepers:
            running.pullers.wake()
        return messages

    async def _close(self, *, handed_is_done: bool) -> None:
        running, self._running = self._running, None
        if running is not None:
            if self._config.auto_commit:
                running.commit_soon(running.assigned.to_commit(handed_is_done=handed_is_done))
            await running.stop()

    def _for_queries(self) -> ClientInstance:
        return self._ready().instance

    def _ready(self) -> LitePullWork:
        if self._running is None:
            raise ClientClosed(
                f"consumer of {self._group!r} does not run; use it inside `async with`, or start() it"
            )
        return self._running
