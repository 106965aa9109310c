"""Gives messages back that were not acknowledged in time: to be tried again, or to the dead letters.

One timer of the event loop, set for the next check-point whose time is over. A turn takes what is due, up to a bound.
The copy of a message and the word that it is dealt with go into the log side by side, so that it does not come back
once more after a crash. Owned by the event loop. Before this: ``pops``; next: the store, and pops that wait.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from cometmq.base.errors import RecordTooLarge
from cometmq.base.ports import Clock, EventLoop
from cometmq.broker.broker_stats import BrokerStats
from cometmq.broker.due_timer import DueTimer, seconds_until
from cometmq.broker.metrics.pop_counts import CHECK_POINT
from cometmq.broker.pop.check_points import Ack, CheckPoint
from cometmq.broker.pop.pop_topics import (
    NORMAL,
    kind_of,
    retry_origin,
    retry_topic_v1,
    retry_topic_v2,
)
from cometmq.broker.pop.popped_forms import dead_form, retry_form
from cometmq.broker.pop.pops import Pops
from cometmq.broker.pop.revive_log import ReviveLog
from cometmq.model.messages.record import Record
from cometmq.model.names import dlq_topic
from cometmq.store.log.new_messages import NewMessage
from cometmq.store.message_store import MessageStore

log = logging.getLogger("cometmq.broker")

TURN_COUNT_MAX: Final = 64
"""Messages given back in one turn of the loop; what else is due comes with the next turns, behind other work."""
LOOK_SECONDS_MAX: Final = 10.0


class Revival:
    """
    Args:
        times_max: how often a message of a group is tried again.
        is_retry_v2: which kind of retry topic to use.
        restore_topic: makes sure that a topic exists, with so many queues.
    """

    def __init__(
        self,
        *,
        store: MessageStore,
        log: ReviveLog,
        clock: Clock,
        loop: EventLoop,
        times_max: Callable[[str], int],
        is_retry_v2: Callable[[], bool],
        restore_topic: Callable[[str, int], None],
        stats: BrokerStats,
    ) -> None:
        self._stats = stats
        self._store = store
        self._log = log
        self._clock = clock
        self._times_max = times_max
        self._is_retry_v2 = is_retry_v2
        self._restore_topic = restore_topic
        self._pops: Pops | None = None
        self._timer = DueTimer(
            "popped messages",
            self._turn,
            now_ms=clock.wall_ms,
            loop=loop,
            look_seconds_max=LOOK_SECONDS_MAX,
        )
        self.revived_count = 0
        self.buried_count = 0

    def start(self, pops: Pops) -> None:
        self._pops = pops
        self._timer.start()

    def stop(self) -> None:
        self._timer.stop()

    def added(self, due_ms: int) -> None:
        """Something new is due at this time."""
        self._timer.added(due_ms)

    def _turn(self) -> float | None:
        """Seconds until the next look; None when nothing is out."""
        pops = self._pops
        assert pops is not None, self
        now_ms = self._clock.wall_ms()
        for _ in range(TURN_COUNT_MAX):
            point = pops.in_flight.due(now_ms)
            if point is None:
                break
            self._revive(pops, point, min(point.open))
        else:
            return 0.0
        next_ms = pops.in_flight.next_due_ms()
        return None if next_ms is None else seconds_until(next_ms, now_ms)

    def _revive(self, pops: Pops, point: CheckPoint, offset: int) -> None:
        word = self._log.ack_message(Ack(point.key, (offset,)), point.revive_queue_id)
        record = self._record(point, offset)
        if record is None:
            _skip(point, offset, "record is gone")
            stored = self._log.put([word])
        else:
            copy = self._copy(point, record)
            self._restore_topic(copy.topic, 1)
            try:
                stored = self._log.put([copy, word])
            except RecordTooLarge as error:
                # The limit was lowered. To wait for a larger one would hold up all that is due later.
                _skip(point, offset, str(error))
                stored = self._log.put([word])
        pops.done(point, offset, stored[-1].queue_offset)
        key = point.key
        self._stats.pop.taken_up[key.topic, key.group, CHECK_POINT, point.revive_queue_id] += 1

    def _copy(self, point: CheckPoint, record: Record) -> NewMessage:
        group, topic = point.key.group, point.key.topic
        origin = retry_origin(topic, group)
        if record.reconsume_times >= self._times_max(group):
            self.buried_count += 1
            self._stats.dead_letter(origin, group)
            log.info(
                "dead letter group=%s topic=%s reconsume_times=%d",
                group,
                origin,
                record.reconsume_times,
            )
            return dead_form(record, dlq_topic(group), origin)
        self.revived_count += 1
        self._stats.pop.tried_again[topic, group] += 1
        if kind_of(topic) == NORMAL:
            topic = (retry_topic_v2 if self._is_retry_v2() else retry_topic_v1)(group, topic)
        return retry_form(record, topic, point.key.pop_time)

    def _record(self, point: CheckPoint, offset: int) -> Record | None:
        key = point.key
        entries = self._store.entries(key.topic, key.queue_id, offset, 1)
        record = self._store.decoded_at(entries[0][0], expected=True) if entries else None
        if record is None or not record.is_at(key.topic, key.queue_id, offset):
            return None
        return record

    def __repr__(self) -> str:
        return f"<Revival revived={self.revived_count} buried={self.buried_count}>"


def _skip(point: CheckPoint, offset: int, reason: str) -> None:
    log.error(
        "popped message skipped group=%s topic=%s queue=%d offset=%d reason=%s",
        point.key.group,
        point.key.topic,
        point.key.queue_id,
        offset,
        reason,
    )
