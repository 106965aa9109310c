"""The parts of a push consumer while it runs, put together: sharing out, pulling, calling, saving positions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.aio.instance.periodic import Periodic
from cometmq.client.aio.offsets.broker_offsets import OffsetStore, start_offset
from cometmq.client.aio.pull.pull_call import PullCalls
from cometmq.client.aio.push.concurrent_listener import ConcurrentListener
from cometmq.client.aio.push.consumer_info import ConsumerInfo
from cometmq.client.aio.push.handover import Handover
from cometmq.client.aio.push.listener_call import ListenerCall
from cometmq.client.aio.push.orderly_listener import OrderlyListener
from cometmq.client.aio.push.puller import Puller
from cometmq.client.aio.push.queue_locks import QueueLocks
from cometmq.client.aio.push.queue_work import QueueWork
from cometmq.client.aio.push.rebalancer import Rebalancer
from cometmq.client.aio.push.send_back import SendBack
from cometmq.client.consumer_config import CONCURRENT_RETRIES_MAX, PushConsumerConfig
from cometmq.client.core.consume.flow_limits import FlowLimits, limits_of_queue
from cometmq.client.core.consume.member.held_queue import HeldQueue
from cometmq.client.core.consume.member.instructions import Instructions
from cometmq.client.core.consume.member.member import Member
from cometmq.client.core.consume.member.queue_life import QueueLife
from cometmq.client.core.consume.member.rules import MemberRules
from cometmq.client.core.consume.rebalance import find_strategy
from cometmq.model.consumption import ConsumeFromWhere
from cometmq.model.message_queue import MessageQueue
from cometmq.model.subscription import SubscriptionData
from cometmq.protocol.bodies.running import ConsumerRunningInfo

SWEEPS_PER_TIMEOUT: Final = 15
WORKERS_END_SECONDS: Final = 1.0
JAVA_INT_MAX: Final = 2**31 - 1
ANSWER_SECONDS_MIN: Final = 60.0
CALLS_PER_ANSWER: Final = 10
"""A request may need a route first and wait for its turn, but that never takes longer than this many calls."""


class RunningConsumer:
    """What a started push consumer is made of; its close ends all of it.

    Args:
        subscriptions: by topic as on the wire; the push consumer changes it while this runs.
        is_running: cleared while the consumer is suspended.
        before_rebalance: called before queues are shared out.
    """

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        *,
        config: PushConsumerConfig,
        is_orderly: bool,
        call: ListenerCall,
        offsets: OffsetStore,
        subscriptions: Mapping[str, SubscriptionData],
        is_running: asyncio.Event,
        before_rebalance: Callable[[], Awaitable[None]],
    ) -> None:
        self._instance = instance
        self._group = group
        self._config = config
        self._is_orderly = is_orderly
        self._call = call
        self._offsets = offsets
        self._subscriptions = subscriptions
        self._is_running = is_running
        self._before_rebalance = before_rebalance
        self._limits: dict[str, FlowLimits] = {}
        self._pulls = PullCalls(instance, group)
        self._info = ConsumerInfo(instance.clock.wall_ms())
        self._default_limits = config.limits(orderly=is_orderly)
        self._rules = rules = _rules_of(config, is_orderly=is_orderly)
        self._timestamp_ms = config.timestamp_ms(instance.clock.wall_ms())
        self._listener = self._make_listener()
        self.rebalance_task = Periodic(
            "rebalance",
            self._rebalance,
            first=0.0,
            every=config.rebalance_interval_ms / 1000,
        )
        locks = QueueLocks(instance, group) if rules.has_locks else None
        self._work = QueueWork(
            group,
            clock=instance.clock,
            offsets=offsets,
            start_offset=self._start_offset,
            listener=self._listener,
            make_puller=self._make_puller,
            locks=locks,
            handover=Handover(instance, group) if rules.asks_old_owners else None,
            unwrap_topic=instance.unwrap_topic,
            soon=self.rebalance_task.soon,
            on_left=self._left,
        )
        self.rebalancer = Rebalancer(
            instance,
            group,
            Member(instance.client_id, rules),
            self._work,
            topics=lambda: list(subscriptions),
            locks=locks,
            is_running=is_running,
        )
        timeout = config.consume_timeout_minutes * 60.0
        self._tasks = [
            self.rebalance_task,
            Periodic(
                "offsets",
                self._save,
                first=config.client.persist_offsets_millis / 1000,
                every=config.client.persist_offsets_millis / 1000,
            ),
            Periodic(
                "sweep",
                self._listener.sweep,
                first=timeout / SWEEPS_PER_TIMEOUT,
                every=timeout / SWEEPS_PER_TIMEOUT,
            ),
        ]
        if rules.has_locks:
            self._tasks.append(
                Periodic(
                    "locks",
                    self.rebalancer.renew_locks,
                    first=config.lock_interval_ms / 1000,
                    every=config.lock_interval_ms / 1000,
                )
            )

    def start(self) -> None:
        self._listener.start()
        for task in self._tasks:
            task.start()

    async def close(self, timeout: float) -> None:
        for task in self._tasks:
            await task.stop()
        try:
            await self.rebalancer.close(timeout)
        finally:
            await self._listener.close(WORKERS_END_SECONDS)

    def describe(self) -> ConsumerRunningInfo:
        clock = self._instance.clock
        now = clock.monotonic()
        queues = {**self.rebalancer.leaving, **self.rebalancer.held}
        return self._info.describe(
            config=self._config,
            is_orderly=self._is_orderly,
            lock_is_valid={
                queue: self._rules.has_locks and held.is_locked(now)
                for queue, held in queues.items()
            },
            subscriptions=list(self._subscriptions.values()),
            queues=queues,
            taking=self.rebalancer.taking,
            now_ms=clock.wall_ms(),
            now=now,
        )

    async def _rebalance(self) -> float | None:
        await self._before_rebalance()
        again = await self.rebalancer.run_once()
        self._share_limits()
        return again

    def _share_limits(self) -> None:
        counts: dict[str, int] = {}
        for queue in [*self.rebalancer.held, *self.rebalancer.taking]:
            counts[queue.topic] = counts.get(queue.topic, 0) + 1
        self._limits = {
            topic: limits_of_queue(
                self._default_limits,
                topic_count_max=self._config.pull_threshold_for_topic,
                topic_size_mib_max=self._config.pull_threshold_size_for_topic,
                queue_count=count,
            )
            for topic, count in counts.items()
        }

    def _left(self, held: HeldQueue) -> None:
        self._pulls.forget(held.queue)
        self._info.left(held)

    async def _save(self) -> None:
        held = self.rebalancer.held
        self._info.sample(self._instance.clock.monotonic(), held.values())
        await self._offsets.save(
            {queue: each.process.commit_offset for queue, each in held.items()}
        )

    async def _start_offset(self, queue: MessageQueue) -> int:
        return await start_offset(
            self._instance,
            self._offsets,
            queue,
            ConsumeFromWhere(self._config.consume_from_where),
            self._timestamp_ms,
        )

    def _make_listener(self) -> ConcurrentListener | OrderlyListener:
        config, instance, group = self._config, self._instance, self._group
        times = config.max_reconsume_times
        if self._is_orderly:
            return OrderlyListener(
                self._call,
                self._rules,
                group=group,
                worker_count=config.consume_thread_max,
                batch_max=config.consume_batch_max,
                send_back=SendBack(instance, group, JAVA_INT_MAX if times < 0 else times),
                do=self._do,
                clock=instance.clock,
            )
        retries = CONCURRENT_RETRIES_MAX if times < 0 else times
        return ConcurrentListener(
            self._call,
            group=group,
            worker_count=config.consume_thread_max,
            batch_max=config.consume_batch_max,
            timeout=config.consume_timeout_minutes * 60.0,
            send_back=None if config.is_broadcast else SendBack(instance, group, retries),
            do=self._do,
            clock=instance.clock,
        )

    def _make_puller(self, life: QueueLife) -> Puller:
        topic = life.queue.topic
        return Puller(
            life,
            self._pulls,
            config=self._config,
            subscription=lambda: self._subscriptions.get(topic),
            limits=lambda: self._limits.get(topic, self._default_limits),
            is_running=self._is_running,
            do=self._do,
            clock=self._instance.clock,
        )

    def _do(self, todo: Instructions) -> None:
        self._work.do(todo)


def _rules_of(config: PushConsumerConfig, *, is_orderly: bool) -> MemberRules:
    times = config.max_reconsume_times
    return MemberRules(
        strategy=find_strategy(config.allocation),
        is_orderly=is_orderly,
        is_broadcast=config.is_broadcast,
        handover_seconds=config.handover_ms / 1000,
        answer_seconds=max(ANSWER_SECONDS_MIN, config.client.call_seconds * CALLS_PER_ANSWER),
        lock_valid_seconds=config.lock_valid_ms / 1000,
        pull_interval_seconds=config.pull_interval_ms / 1000,
        pull_error_seconds=config.pull_error_delay_ms / 1000,
        suspend_seconds=config.suspend_queue_ms / 1000,
        reconsume_times_max=None if times < 0 else times,
    )
