"""Delivers the timed messages of one lane when they are due, in the order of their times.

One timer of the event loop, set for the next entry of the index. A turn takes what is due, up to a bound, so that sends
and pulls come in between:

    recall    remembered until its time is past
    message   put into its topic, unless a recall named it
    message that is due later, but has lain in its log file for long: put into the timer topic once more

Owned by the event loop. Before this: ``timed_messages.put``; next: the store, and whoever waits for the real topic.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from cometmq.base.errors import RecordTooLarge
from cometmq.base.ports import Clock, EventLoop
from cometmq.broker.due_timer import DueTimer, seconds_until
from cometmq.broker.timer.lanes import Lane
from cometmq.broker.timer.timed_forms import (
    TimedName,
    delivered_form,
    due_ms,
    recalled_as,
    recalled_by,
    rolled_form,
    wake_ms,
)
from cometmq.model.messages.record import Record
from cometmq.model.messages.timer_properties import PRECISION_MS_MAX
from cometmq.model.names import TIMER_TOPIC
from cometmq.store.log.new_messages import NewMessage, Stored
from cometmq.store.message_store import MessageStore
from cometmq.store.timer.entry import wake_of
from cometmq.store.timer.waiting import RECALL_KEEP_MS

log = logging.getLogger("cometmq.broker")

TURN_COUNT_MAX: Final = 64
"""Entries dealt with in one turn of the loop; what else is due comes with the next turns, behind other work."""
LOOK_SECONDS_MAX: Final = 1.0

Put = Callable[[NewMessage], Stored]


class TimerDelivery:
    """``start`` begins; until then nothing is delivered.

    Args:
        lane: what waits, and the clock it waits for.
        put: takes a message that is due; what it raises is logged, and the message is tried again.
        window_ms: how long a record may wait in its log file.
    """

    def __init__(
        self,
        lane: Lane,
        *,
        store: MessageStore,
        clock: Clock,
        loop: EventLoop,
        put: Put,
        window_ms: Callable[[], int],
    ) -> None:
        self.lane = lane
        self._store = store
        self._clock = clock
        self._put = put
        self._window_ms = window_ms
        self._timer = DueTimer(
            "timed messages",
            self._turn,
            now_ms=lane.now_ms,
            loop=loop,
            look_seconds_max=LOOK_SECONDS_MAX,
        )
        self._delivered: dict[int, int] = {}
        self._recalled: dict[TimedName, int] = {}
        self._recalls: deque[tuple[int, TimedName]] = deque()
        self.recalled_count = 0

    def start(self, delivered: dict[int, int]) -> None:
        """Begin.

        Args:
            delivered: records that the index holds although the log holds their copies, with their times.
        """
        self._delivered = delivered
        self._timer.start()

    def stop(self) -> None:
        self._timer.stop()

    @property
    def is_catching_up(self) -> bool:
        """Whether some of what is in the index is known to be delivered only by what the log says."""
        return bool(self._delivered)

    def add(self, due: int, physical_offset: int, *, is_recall: bool) -> None:
        """Deliver a record that has just been stored, or look at it before its log file goes."""
        wake = wake_ms(due, self.lane.now_ms(), self._window_ms())
        self.lane.waiting.add(wake, physical_offset, is_recall=is_recall)
        self._timer.added(wake)

    def _turn(self) -> float | None:
        """Seconds until the next look; None when nothing waits."""
        waiting = self.lane.waiting
        now_ms = self.lane.now_ms()
        is_loading = waiting.approach(now_ms)
        for _ in range(TURN_COUNT_MAX):
            entry = waiting.due(now_ms)
            if entry is None:
                break
            key, physical_offset = entry
            self._deal_with(wake_of(key), physical_offset)
            waiting.finish(entry)
        else:
            return 0.0
        if is_loading:
            return 0.0
        self._forget(now_ms, wake_of(waiting.done[0]))
        if (wake := waiting.next_wake_ms()) is not None:
            return seconds_until(wake, now_ms)
        return LOOK_SECONDS_MAX if waiting.count else None

    def _deal_with(self, wake: int, physical_offset: int) -> None:
        if self._delivered.pop(physical_offset, None) is not None:
            return
        record = self._store.decoded_at(physical_offset, TIMER_TOPIC, expected=True)
        due = None if record is None else due_ms(record)
        if record is None or due is None:
            _skip(physical_offset, "record is gone" if record is None else "it says no time")
        elif due - wake > PRECISION_MS_MAX:
            stored = self._put(rolled_form(record))
            is_recall = recalled_by(record) is not None
            self.add(due, stored.physical_offset, is_recall=is_recall)
        elif (what := recalled_by(record)) is not None:
            self._recalled[what] = due
            self._recalls.append((due, what))
        elif recalled_as(record) in self._recalled:
            self.recalled_count += 1
        else:
            self._deliver(record)

    def _deliver(self, record: Record) -> None:
        message = delivered_form(record, self._clock.wall_ms())
        if message is None:
            _skip(record.physical_offset, "it names no destination")
            return
        try:
            self._put(message)
        except RecordTooLarge as error:
            # The limit was lowered. To wait for a larger one would hold up all that is due later.
            _skip(record.physical_offset, str(error))

    def _forget(self, now_ms: int, done_ms: int) -> None:
        """Everything that is due has been dealt with."""
        while self._recalls and self._recalls[0][0] < done_ms - RECALL_KEEP_MS:
            due, what = self._recalls.popleft()
            if self._recalled.get(what) == due:
                del self._recalled[what]
        if self._delivered:
            self._delivered = {
                place: wake for place, wake in self._delivered.items() if wake > now_ms
            }

    def __repr__(self) -> str:
        return f"<TimerDelivery {self.lane!r}>"


def _skip(physical_offset: int, reason: str) -> None:
    log.error("timed message skipped physical_offset=%d reason=%s", physical_offset, reason)
