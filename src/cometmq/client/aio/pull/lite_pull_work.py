"""The state of a lite pull consumer between start and close: its group membership, its pullers, its timers.

All topics and queues here have their wire names, except those passed to a listener.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Collection, Coroutine, Mapping
from typing import Any

import msgspec

from cometmq.base.errors import CometError
from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.aio.instance.periodic import Periodic
from cometmq.client.aio.instance.queries import readable_queues, unwrap_queue
from cometmq.client.aio.offsets.broker_offsets import start_offset
from cometmq.client.aio.offsets.group_offsets import GroupOffsets
from cometmq.client.aio.pull.pull_call import PullCalls
from cometmq.client.aio.pull.pull_consumer import QueueListener
from cometmq.client.aio.pull.pull_role import Positions, PullRole
from cometmq.client.aio.pull.queue_balance import QueueBalance
from cometmq.client.aio.pull.queue_pullers import QueuePullers
from cometmq.client.core.consume.assigned_queues import AssignedQueues
from cometmq.client.core.consume.rebalance import find_strategy, plan
from cometmq.client.lite_pull_config import LitePullConfig
from cometmq.model.consumption import ConsumeFromWhere, MessageModel
from cometmq.model.message_queue import MessageQueue
from cometmq.model.subscription import SubscriptionData

logger = logging.getLogger("cometmq.client")


class Listeners:
    """The user's functions, by the user's topic name."""

    def __init__(self) -> None:
        self.share: QueueListener | None = None
        self.topics: dict[str, QueueListener] = {}


class LitePullWork:
    def __init__(
        self, instance: ClientInstance, group: str, config: LitePullConfig, listeners: Listeners
    ) -> None:
        self.instance = instance
        self.assigned = AssignedQueues(config.limits)
        self._group = instance.wrap_group(group)
        self._config = config
        self._listeners = listeners
        self._timestamp_ms = config.timestamp_ms(instance.clock.wall_ms())
        self._subscriptions: dict[str, SubscriptionData] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._seen_queues: dict[str, list[MessageQueue]] = {}
        self.offsets = GroupOffsets(
            instance,
            self._group,
            local_directory=config.local_offset_directory if config.is_broadcast else None,
        )
        self._calls = PullCalls(instance, self._group)
        self.pullers = QueuePullers(
            self.assigned,
            self._calls,
            config,
            begin=self._begin,
            subscription=self._subscriptions.__getitem__,
            failed=self._pull_failed,
        )
        self._balance = QueueBalance(
            instance,
            self._group,
            strategy=None if config.is_broadcast else find_strategy(config.allocation),
            interval_seconds=config.rebalance_interval_ms / 1000,
            on_share=self._shared,
        )
        commit_seconds = config.auto_commit_interval_ms / 1000
        self._auto_commit = Periodic(
            "auto-commit", self._commit_done, first=commit_seconds, every=commit_seconds
        )
        self.topic_check = Periodic(
            "topic-check",
            self._check_topics,
            first=0,
            every=config.topic_check_interval_ms / 1000,
        )
        self._role = PullRole(
            group=self._group,
            message_model=MessageModel(config.message_model),
            consume_from=ConsumeFromWhere(config.consume_from_where),
            # Queues assigned by hand do not concern the rest of the group.
            wanted=lambda: [self._subscriptions[topic] for topic in self._balance.topics],
            watched=lambda: list(self._subscriptions),
            rebalance=self._balance.soon,
            current=self.assigned.positions,
            reset=self._reset,
        )

    async def start(self) -> None:
        await self.offsets.load()
        self.instance.add_consumer(self._role)
        self._balance.start()
        self.topic_check.start()
        if self._config.auto_commit:
            self._auto_commit.start()

    async def stop(self) -> None:
        for task in (self._balance, self.topic_check, self._auto_commit):
            await task.stop()
        await self.pullers.close()
        if self._background:
            await asyncio.wait(self._background)
        self.instance.remove_consumer(self._role)
        await self.instance.release()

    def subscribe(self, subscription: SubscriptionData) -> None:
        """Take part in the distribution of a topic; a changed subscription applies from the next pull of each queue."""
        topic = self._want(subscription)
        self._balance.add(topic)
        self.instance.refresh_soon()
        self._balance.soon()

    def unsubscribe(self, topic: str) -> None:
        topic = self.instance.wrap_topic(topic)
        self._balance.remove(topic)
        self._hold([], [queue for queue in self.assigned.queues if queue.topic == topic])
        del self._subscriptions[topic]
        self.instance.refresh_soon()

    def assign(
        self, queues: Collection[MessageQueue], subscriptions: Collection[SubscriptionData]
    ) -> None:
        """Own exactly these queues."""
        for subscription in subscriptions:
            self._want(subscription)
        self._hold(queues, self.assigned.queues)
        for topic in set(self._subscriptions) - {queue.topic for queue in queues}:
            del self._subscriptions[topic]

    def held(self, queue: MessageQueue) -> MessageQueue:
        """Returns the queue. Raises UsageError if it is not assigned."""
        self.assigned.position(queue)
        return queue

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Raises UsageError if it is not, or no longer, assigned."""
        self.assigned.seek(queue, offset)
        # A pull that the broker holds at the old position would block the queue.
        self.pullers.start(queue)

    async def commit(self, positions: Mapping[MessageQueue, int]) -> None:
        """Returns when all are stored. Raises the first error otherwise."""
        failures = await self.offsets.commit(positions)
        for queue, offset in positions.items():
            if queue not in failures:
                self.assigned.was_committed(queue, offset)
        for failure in failures.values():
            raise failure

    def commit_soon(self, positions: Mapping[MessageQueue, int]) -> None:
        """Commit in the background; ``stop`` waits for it."""
        if positions:
            self._do(self._commit_logged(positions))

    def _want(self, subscription: SubscriptionData) -> str:
        topic = self.instance.wrap_topic(subscription.topic)
        before = self._subscriptions.get(topic)
        self._subscriptions[topic] = msgspec.structs.replace(subscription, topic=topic)
        if before is not None and not before.asks_for_the_same(self._subscriptions[topic]):
            for queue in self.assigned.queues:
                if queue.topic == topic:
                    self.pullers.start(queue)
        return topic

    def _hold(self, wanted: Collection[MessageQueue], held: Collection[MessageQueue]) -> None:
        change = plan(wanted, held)
        if self._config.auto_commit:
            done = self.assigned.to_commit(handed_is_done=False)
            self.commit_soon({queue: done[queue] for queue in change.drop if queue in done})
        for queue in change.drop:
            self.pullers.stop(queue)
            self.assigned.drop(queue)
            self._calls.forget(queue)
        for queue in change.take:
            self.assigned.add(queue)
            self.pullers.start(queue)

    async def _begin(self, queue: MessageQueue) -> None:
        stored = await self.offsets.read(queue)
        if stored is not None:
            self.assigned.begin(queue, stored)
            self.assigned.was_committed(queue, stored)
            return
        where = ConsumeFromWhere(self._config.consume_from_where)
        offset = await start_offset(
            self.instance, self.offsets.store, queue, where, self._timestamp_ms
        )
        self.assigned.begin(queue, offset)

    async def _shared(
        self, topic: str, queues: list[MessageQueue], mine: list[MessageQueue]
    ) -> None:
        self._hold(mine, [queue for queue in self.assigned.queues if queue.topic == topic])
        if self._listeners.share is not None:
            await self._tell(self._listeners.share, topic, queues, mine)

    async def _check_topics(self) -> None:
        for name, listener in list(self._listeners.topics.items()):
            topic = self.instance.wrap_topic(name)
            try:
                queues = await readable_queues(self.instance, topic)
            except CometError as error:
                logger.info("topic not looked at topic=%s reason=%s", topic, error)
                continue
            seen = self._seen_queues.get(topic)
            self._seen_queues[topic] = queues
            if seen is not None and seen != queues:
                held = [queue for queue in self.assigned.queues if queue.topic == topic]
                await self._tell(listener, topic, queues, held)

    async def _tell(
        self,
        listener: QueueListener,
        topic: str,
        queues: list[MessageQueue],
        mine: list[MessageQueue],
    ) -> None:
        lists = [[unwrap_queue(self.instance, queue) for queue in each] for each in (queues, mine)]
        try:
            outcome = listener(self.instance.unwrap_topic(topic), lists[0], lists[1])
            if inspect.isawaitable(outcome):
                await outcome
        except Exception:
            logger.exception("queue listener failed topic=%s group=%s", topic, self._group)

    async def _reset(self, positions: Positions) -> None:
        """An operator reset the group."""
        for queue, offset in positions.items():
            if queue in self.assigned:
                self.seek(queue, offset)
        await self._commit_logged(positions)

    async def _commit_done(self) -> None:
        await self._commit_logged(self.assigned.to_commit(handed_is_done=False))

    async def _commit_logged(self, positions: Mapping[MessageQueue, int]) -> None:
        try:
            await self.commit(positions)
        except (CometError, OSError) as error:
            logger.warning("positions not committed group=%s reason=%s", self._group, error)

    def _pull_failed(self, queue: MessageQueue, error: CometError) -> None:
        logger.warning("pull failed queue=%s group=%s reason=%s", queue, self._group, error)
        if error.route_is_stale:
            self.instance.forget_route(queue.topic)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
