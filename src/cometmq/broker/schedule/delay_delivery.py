"""Delivers waiting messages when they are due.

Each delay level is a queue of the schedule topic, and since all of its messages wait equally long, it is in the order
of delivery: only its head has to be watched. So a level is a position and one timer, however many messages wait, and
a level without messages has not even a timer. Delays are counted by the monotonic clock (``due_times``).

    idle --put--> armed for the head --due--> delivering --more, not due--> armed
                                                         --nothing more---> idle
                                                         --refused--------> armed to try again

Owned by the event loop. Before this: ``schedule.put``; next: the store, and whoever waits for the real topic.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from cometmq.base.milliseconds import begun_ms, passed_ms
from cometmq.base.ports import Clock, EventLoop, Timer
from cometmq.broker.schedule.delayed_forms import delivered_form
from cometmq.broker.schedule.due_times import DueTimes
from cometmq.model.messages.record import Record
from cometmq.model.names import SCHEDULE_TOPIC
from cometmq.store.log.new_messages import NewMessage, Stored
from cometmq.store.message_store import MessageStore
from cometmq.store.queues.delay_levels import DelayLevels

log = logging.getLogger("cometmq.broker")

TURN_COUNT_MAX: Final = 64
"""Messages delivered in one turn of the loop; what else is due comes with the next turns, behind other work."""
RETRY_SECONDS: Final = 1.0
"""When the store takes nothing, for example because the disk is full."""

Put = Callable[[NewMessage], None]


class _Level:
    __slots__ = ("due_times", "is_failing", "number", "offset", "timer")

    def __init__(self, number: int, offset: int, due_times: DueTimes) -> None:
        self.number = number
        self.offset = offset
        """The first message that is not yet delivered."""
        self.due_times = due_times
        self.timer: Timer | None = None
        self.is_failing = False

    @property
    def queue_id(self) -> int:
        return self.number - 1

    def __repr__(self) -> str:
        return f"<Level {self.number} at {self.offset}>"


class Delivery:
    """Args: put: takes a message that is due; what it raises is logged, and the message is tried again."""

    def __init__(
        self,
        *,
        store: MessageStore,
        levels: DelayLevels,
        clock: Clock,
        loop: EventLoop,
        put: Put,
    ) -> None:
        self._store = store
        self._delays = levels
        self._clock = clock
        self._loop = loop
        self._put = put
        self._levels: dict[int, _Level] = {}
        self.is_running = False

    @property
    def offsets(self) -> dict[int, int]:
        """By level: the first message not yet delivered, for every level that ever had one."""
        return {number: level.offset for number, level in sorted(self._levels.items())}

    def start(self, offsets: dict[int, int]) -> None:
        """Deliver from these offsets on, by level; from 0 where there is none."""
        self.is_running = True
        self._levels = {}
        # Also levels that the settings no longer have: what waits there was accepted once.
        for queue_id in self._store.queue_ids(SCHEDULE_TOPIC):
            number = queue_id + 1
            level = self._levels[number] = self._new_level(number, offsets.get(number, 0))
            self._arm(level, 0.0)

    def stop(self) -> None:
        self.is_running = False
        for level in self._levels.values():
            if level.timer is not None:
                level.timer.cancel()
                level.timer = None

    def stored(self, number: int, stored: Stored) -> None:
        """A level has a new message. One that is awake already will look when its present head is due."""
        level = self._levels.get(number)
        if level is None:
            # A level that was never awake has nothing before its first message.
            level = self._levels[number] = self._new_level(number, stored.queue_offset)
        now_ms = begun_ms(self._clock)
        level.due_times.stored(stored.queue_offset, stored.store_timestamp, now_ms)
        if level.timer is None and self.is_running:
            self._arm(level, 0.0)

    def _new_level(self, number: int, offset: int) -> _Level:
        is_known = number <= self._delays.level_max
        due_times = DueTimes(
            self._delays.delay_ms(number) if is_known else None,
            wall_ms=self._clock.wall_ms(),
            monotonic_ms=begun_ms(self._clock),
        )
        return _Level(number, offset, due_times)

    def _arm(self, level: _Level, seconds: float) -> None:
        level.timer = self._loop.call_later(seconds, lambda: self._run(level))

    def _run(self, level: _Level) -> None:
        level.timer = None
        try:
            seconds = self._deliver_due(level)
        except Exception as error:  # noqa: BLE001 - a timer's root: the level must go on
            self._note_failure(level, error)
            seconds = RETRY_SECONDS
        else:
            level.is_failing = False
        if seconds is not None and self.is_running:
            self._arm(level, seconds)

    def _deliver_due(self, level: _Level) -> float | None:
        """Deliver what is due, up to a turn's worth. Seconds until the next look; None when nothing waits."""
        first = self._store.min_offset(SCHEDULE_TOPIC, level.queue_id)
        if level.offset < first:
            self._correct(level, first, "the log before it was deleted")
        entries = self._store.entries(SCHEDULE_TOPIC, level.queue_id, level.offset, TURN_COUNT_MAX)
        for physical_offset, _, due_ms in entries:
            left_ms = level.due_times.due_ms(level.offset, due_ms) - passed_ms(self._clock)
            if left_ms > 0:
                return left_ms / 1000
            self._deliver(level, physical_offset)
            level.offset += 1
        return 0.0 if entries else self._seek(level)

    def _deliver(self, level: _Level, physical_offset: int) -> None:
        record = self._waiting(level, physical_offset)
        message = None if record is None else delivered_form(record)
        if message is None:
            log.error(
                "delayed message skipped level=%d queue_offset=%d physical_offset=%d reason=%s",
                level.number,
                level.offset,
                physical_offset,
                "record is gone" if record is None else "it names no destination",
            )
            return
        self._put(message)

    def _waiting(self, level: _Level, physical_offset: int) -> Record | None:
        record = self._store.decoded_at(physical_offset, expected=True)
        if record is None or not record.is_at(SCHEDULE_TOPIC, level.queue_id, level.offset):
            return None
        return record

    def _seek(self, level: _Level) -> float | None:
        """There is no entry at the level's offset: nothing more waits, or the offset lies outside of the queue."""
        found = self._store.get(SCHEDULE_TOPIC, level.queue_id, level.offset, 1)
        if found.next_offset == level.offset:
            return None
        self._correct(level, found.next_offset, found.status)
        return 0.0

    def _correct(self, level: _Level, offset: int, reason: str) -> None:
        log.warning(
            "delay offset corrected level=%d from=%d to=%d reason=%s",
            level.number,
            level.offset,
            offset,
            reason,
        )
        level.offset = offset

    def _note_failure(self, level: _Level, error: Exception) -> None:
        if not level.is_failing:
            level.is_failing = True
            log.error(
                "delayed messages wait level=%d queue_offset=%d reason=%r; they will be tried again",
                level.number,
                level.offset,
                error,
            )

    def __repr__(self) -> str:
        return (
            f"<Delivery {len(self._levels)} levels, {'running' if self.is_running else 'stopped'}>"
        )
