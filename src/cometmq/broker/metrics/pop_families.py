"""POP consumption."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cometmq.base.ports import Clock
from cometmq.broker.metrics.pop_counts import PopCounts
from cometmq.broker.pop.pop_topics import REVIVE_QUEUE_COUNT
from cometmq.broker.pop.pops import Pops
from cometmq.monitor.family import Family, LabelValues, Value, counter, gauge, single


class PopFamilies:
    def __init__(self, counts: PopCounts, pops: Pops, clock: Clock) -> None:
        self._counts = counts
        self._pops = pops
        self._clock = clock

    @property
    def families(self) -> Sequence[Family]:
        counts = self._counts
        return (
            counter(
                "rocketmq_pop_revive_in_message_total",
                ("consumer_group", "put_status", "revive_message_type", "topic"),
                lambda: [
                    ((group, "PUT_OK", kind, topic), float(count))
                    for (topic, group, kind), count in counts.written.items()
                ],
            ),
            counter(
                "rocketmq_pop_revive_out_message_total",
                ("consumer_group", "queue_id", "revive_message_type", "topic"),
                lambda: [
                    ((group, str(queue_id), kind, topic), float(count))
                    for (topic, group, kind, queue_id), count in counts.taken_up.items()
                ],
            ),
            counter(
                "rocketmq_pop_revive_retry_messages_total",
                ("consumer_group", "put_status", "topic"),
                lambda: [
                    ((group, "PUT_OK", topic), float(count))
                    for (topic, group), count in counts.tried_again.items()
                ],
            ),
            gauge(
                "rocketmq_pop_revive_lag",
                ("queue_id",),
                self._overdue,
                unit="milliseconds",
            ),
            gauge(
                "rocketmq_pop_revive_latency",
                ("queue_id",),
                self._late_ms,
                unit="milliseconds",
            ),
            # Positions that are not safe on the disk yet, and check-points whose messages are out.
            gauge(
                "rocketmq_pop_offset_buffer_size",
                (),
                single(lambda: float(self._pops.positions.waiting_count)),
            ),
            gauge(
                "rocketmq_pop_checkpoint_buffer_size",
                (),
                single(lambda: float(len(self._pops.in_flight))),
            ),
        )

    def _overdue(self) -> list[tuple[LabelValues, Value]]:
        """Check-points whose time is over, by revive queue. Messages, whatever RocketMQ's name says."""
        now_ms = self._clock.wall_ms()
        found = Counter(
            point.revive_queue_id
            for point in self._pops.in_flight.points()
            if point.due_ms <= now_ms
        )
        return [((str(one),), float(found[one])) for one in range(REVIVE_QUEUE_COUNT)]

    def _late_ms(self) -> list[tuple[LabelValues, Value]]:
        now_ms = self._clock.wall_ms()
        late = dict.fromkeys(range(REVIVE_QUEUE_COUNT), 0)
        for point in self._pops.in_flight.points():
            if now_ms - point.due_ms > late[point.revive_queue_id]:
                late[point.revive_queue_id] = now_ms - point.due_ms
        return [((str(one),), float(milliseconds)) for one, milliseconds in late.items()]
