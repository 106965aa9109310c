"""What a push consumer tells an operator about itself: its queues, its rates, its settings (307)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cometmq.base.settings import render, rows, value_of
from cometmq.client.consumer_config import PushConsumerConfig
from cometmq.client.core.consume.consume_rates import Counters, RateWindow
from cometmq.client.core.consume.flow_limits import MIB
from cometmq.client.core.consume.member.held_queue import HeldQueue
from cometmq.client.core.consume.process_queue import OrderlyQueue
from cometmq.model.message_queue import MessageQueue
from cometmq.model.subscription import SubscriptionData
from cometmq.protocol.bodies.running import (
    ConsumerRunningInfo,
    ConsumeStatus,
    ProcessQueueInfo,
)

# Not for other people's eyes.
_SECRET_KEYS = frozenset({"accessKey", "secretKey", "securityToken"})


class ConsumerInfo:
    """Keeps totals over queues that come and go."""

    def __init__(self, started_ms: int) -> None:
        self._started_ms = started_ms
        self._past: dict[str, Counters] = {}
        self._windows: dict[str, RateWindow] = {}

    def left(self, held: HeldQueue) -> None:
        """A queue was let go; its counts stay in its topic's totals."""
        topic = held.queue.topic
        self._past[topic] = self._past.get(topic, Counters()).plus(_counters(held))

    def sample(self, now: float, held: Iterable[HeldQueue]) -> None:
        for topic, counters in self._totals(held).items():
            self._windows.setdefault(topic, RateWindow()).sample(now, counters)

    def _totals(self, held: Iterable[HeldQueue]) -> dict[str, Counters]:
        totals = dict(self._past)
        for each in held:
            topic = each.queue.topic
            totals[topic] = totals.get(topic, Counters()).plus(_counters(each))
        return totals

    def describe(
        self,
        *,
        config: PushConsumerConfig,
        is_orderly: bool,
        lock_is_valid: Mapping[MessageQueue, bool],
        subscriptions: list[SubscriptionData],
        queues: Mapping[MessageQueue, HeldQueue],
        taking: Iterable[MessageQueue],
        now_ms: int,
        now: float,
    ) -> ConsumerRunningInfo:
        properties = {
            row.key: render(value_of(config, row))
            for row in rows(type(config))
            if row.path[0] != "client" and row.key not in _SECRET_KEYS
        }
        properties["PROP_CONSUMEORDERLY"] = render(is_orderly)
        properties["PROP_THREADPOOL_CORE_SIZE"] = str(config.consume_thread_max)
        properties["PROP_CONSUMER_START_TIMESTAMP"] = str(self._started_ms)
        # A queue that is being taken is listed, too: another member that wants to take it must know of us.
        table = {queue: ProcessQueueInfo() for queue in taking}
        for queue, held in queues.items():
            table[queue] = _queue_info(held, lock_is_valid.get(queue, False), now_ms, now)
        totals = self._totals(queues.values())
        return ConsumerRunningInfo(
            properties=properties,
            subscription_set=subscriptions,
            mq_table=table,
            status_table={
                topic: _status(self._windows.get(topic, RateWindow()), counters)
                for topic, counters in totals.items()
            },
        )


def _counters(held: HeldQueue) -> Counters:
    return Counters(
        held.pulled_count, held.consumed_count, held.consumed_seconds, held.failed_count
    )


def _status(window: RateWindow, totals: Counters) -> ConsumeStatus:
    rates = window.rates()
    return ConsumeStatus(
        pull_tps=rates.pulled,
        consume_rt=rates.consume_ms,
        consume_ok_tps=rates.consumed,
        consume_failed_tps=rates.failed,
        consume_failed_msgs=totals.failed,
    )


def _queue_info(held: HeldQueue, is_locked: bool, now_ms: int, now: float) -> ProcessQueueInfo:
    process = held.process
    info = ProcessQueueInfo(
        commit_offset=process.commit_offset,
        cached_msg_count=process.count,
        cached_msg_size_in_mib=process.size_bytes // MIB,
        locked=is_locked,
        droped=held.is_dropped,
        last_pull_timestamp=now_ms - int((now - held.last_pull) * 1000),
        last_consume_timestamp=now_ms - int((now - held.last_consume) * 1000),
    )
    if process.count:
        info.cached_msg_min_offset = process.commit_offset
        info.cached_msg_max_offset = process.max_offset
    if held.locked_at is not None:
        info.last_lock_timestamp = now_ms - int((now - held.locked_at) * 1000)
    if isinstance(process, OrderlyQueue) and process.taken:
        info.transaction_msg_min_offset = process.taken[0].queue_offset
        info.transaction_msg_max_offset = process.taken[-1].queue_offset
        info.transaction_msg_count = len(process.taken)
    return info
