"""The log, its disk, and the waits that stand on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from cometmq.base.ports import Clock, Files
from cometmq.broker.schedule.schedule import Delays
from cometmq.broker.timer.timed_messages import TimedMessages
from cometmq.model.names import TIMER_TOPIC
from cometmq.monitor.family import (
    Family,
    Histogram,
    LabelValues,
    Samples,
    Value,
    counter,
    gauge,
    histogram,
    single,
)
from cometmq.store.message_store import MessageStore
from cometmq.store.upkeep.flush_times import EDGES

_STORAGE: Final = ("storage_medium", "storage_type")
_DISK: Final = ("disk", "local")
_TOPIC: Final = (*_STORAGE, "topic")
_BOUNDS_SECONDS: Final = (5, 60, 300, 900, 3600, 14_400, 28_800, 86_400)


class StoreFamilies:
    def __init__(
        self,
        *,
        store: MessageStore,
        files: Files,
        clock: Clock,
        timed: TimedMessages,
        delays: Delays,
    ) -> None:
        self._store = store
        self._files = files
        self._clock = clock
        self._timed = timed
        self._delays = delays

    @property
    def families(self) -> Sequence[Family]:
        return (*self._storage(), *self._timers(), *self._own())

    def _storage(self) -> tuple[Family, ...]:
        store = self._store
        return (
            _disk_gauge("rocketmq_storage_size", self._used_bytes, "bytes"),
            _disk_gauge("rocketmq_storage_flush_behind_bytes", lambda: store.flush_behind_bytes),
            _disk_gauge(
                "rocketmq_storage_dispatch_behind_bytes", lambda: store.dispatch_behind_bytes
            ),
            _disk_gauge("rocketmq_storage_message_reserve_time", self._kept_ms, "milliseconds"),
        )

    def _timers(self) -> tuple[Family, ...]:
        timed, counts = self._timed, self._timed.counts
        return (
            # A message is in the index of timers as soon as it is stored.
            _disk_gauge("rocketmq_timer_enqueue_lag", lambda: 0),
            _disk_gauge("rocketmq_timer_enqueue_latency", lambda: 0, "milliseconds"),
            _disk_gauge("rocketmq_timer_dequeue_lag", lambda: timed.due_within(0)),
            _disk_gauge("rocketmq_timer_dequeue_latency", lambda: timed.late_ms, "milliseconds"),
            counter("rocketmq_timer_enqueue_total", _TOPIC, _by_topic(lambda: counts.taken)),
            counter("rocketmq_timer_dequeue_total", _TOPIC, _by_topic(lambda: counts.given)),
            gauge(
                "rocketmq_timing_messages",
                _TOPIC,
                # The index does not know where a message goes.
                lambda: [((*_DISK, TIMER_TOPIC), float(timed.waiting_count))],
            ),
            gauge(
                "rocketmq_timer_message_snapshot",
                (*_STORAGE, "timer_bound_s"),
                lambda: [
                    ((*_DISK, str(bound)), float(timed.due_within(bound)))
                    for bound in _BOUNDS_SECONDS
                ],
            ),
            histogram(
                "rocketmq_delay_message_latency",
                _TOPIC,
                lambda: [((*_DISK, topic), delays) for topic, delays in counts.delays.items()],
                unit="seconds",
                text="Timer message set latency distribution",
            ),
        )

    def _own(self) -> tuple[Family, ...]:
        store = self._store
        marks = store.watermarks

        def offsets() -> list[tuple[LabelValues, Value]]:
            named = {
                "appended": marks.appended,
                "dispatched": marks.dispatched,
                "flushed": marks.flushed,
                "replicated": marks.replicated,
            }
            return [((name,), float(mark.value)) for name, mark in named.items()]

        return (
            gauge("cometmq_log_offset_bytes", ("mark",), offsets, text="Up to where the log is so"),
            gauge(
                "cometmq_log_start_bytes",
                (),
                single(lambda: float(store.min_physical)),
                text="Where the log begins",
            ),
            histogram(
                "cometmq_flush",
                (),
                self._flushes,
                unit="seconds",
                text="How long it took to bring the end of the log to the disk",
            ),
            gauge(
                "cometmq_disk_used_ratio",
                (),
                single(lambda: store.log_disk_ratio),
                text="Used part of the disk partition with the log",
            ),
            gauge(
                "cometmq_disk_full",
                (),
                single(lambda: float(store.is_disk_full)),
                text="Whether sends are refused because the disk is full",
            ),
            counter(
                "cometmq_damaged_records_total",
                ("state",),
                lambda: [
                    (("found",), float(store.damages.found_count)),
                    (("healed",), float(store.damages.healed_count)),
                ],
                text="Damaged records that were found, and healed from a replica, since the start",
            ),
            gauge(
                "cometmq_delay_level_waiting_messages",
                ("level",),
                lambda: [
                    ((str(level),), float(max(end - offset, 0)))
                    for level, (offset, end) in self._delays.positions().items()
                ],
                text="Messages that wait in each delay level",
            ),
        )

    def _used_bytes(self) -> int:
        total, free = self._files.space(self._store.config.log_path)
        return total - free

    def _kept_ms(self) -> int:
        earliest = self._store.earliest_store_time()
        return self._clock.wall_ms() - earliest if earliest > 0 else 0

    def _flushes(self) -> list[tuple[LabelValues, Value]]:
        times = self._store.flush_times
        shown = Histogram(EDGES)
        shown.counts, shown.sum = list(times.counts), times.seconds
        return [((), shown)]


def _disk_gauge(name: str, value: Callable[[], float], unit: str = "") -> Family:
    return gauge(name, _STORAGE, lambda: [(_DISK, float(value()))], unit=unit)


def _by_topic(counts: Callable[[], Mapping[str, int]]) -> Callable[[], Samples]:
    return lambda: [((*_DISK, topic), float(count)) for topic, count in counts().items()]
