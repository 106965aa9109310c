"""Messages with a time of delivery as the rest of the broker sees them: put one, and it comes to its topic at its time.

Parts: ``forms`` (what is stored), ``delivery`` (when it leaves), ``progress`` (what a restart needs to know),
``store.timer`` (the index by time), ``peer`` (what is exchanged with RocketMQ).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from cometmq.base.ports import Clock, Files
from cometmq.broker.live_config import LiveConfig
from cometmq.broker.schedule.delivery import Timers
from cometmq.broker.stats import BrokerStats
from cometmq.broker.timer.delivery import TimerDelivery
from cometmq.broker.timer.forms import recall_form, waiting_form, wake_ms
from cometmq.broker.timer.progress import TimerProgress
from cometmq.model.names import RETRY_PREFIX, TIMER_TOPIC
from cometmq.model.properties import TIMER_DELAY_MS, TIMER_DELAY_SEC
from cometmq.model.recall_handle import RecallHandle
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused
from cometmq.store.message_store import MessageStore
from cometmq.store.put import NewMessage, Stored
from cometmq.store.timer.waiting import Waiting

log = logging.getLogger("cometmq.broker")

WINDOW_MS_MAX: Final = 2 * 86_400_000
"""A message that waits longer is stored anew so often, as RocketMQ does: log files are deleted."""
WINDOW_MS_MIN: Final = 600_000
_HOUR_MS: Final = 3_600_000
_NUMBER_CHARACTERS_MAX: Final = 19


class TimedMessages:
    """``recover`` before the first ``put``, then ``start`` once, ``stop`` once.

    Args:
        restore_topic: makes sure that a topic has an entry, with so many queues at least.
        system_topic: makes sure that a topic of the system's own has an entry.
    """

    def __init__(
        self,
        *,
        live: LiveConfig,
        store: MessageStore,
        stats: BrokerStats,
        files: Files,
        clock: Clock,
        timers: Timers,
        restore_topic: Callable[[str, int], None],
        system_topic: Callable[[str], None],
    ) -> None:
        self._live = live
        self._store = store
        self._stats = stats
        self._clock = clock
        self._restore_topic = restore_topic
        self._system_topic = system_topic
        self._broker_name = live.current.identity.broker_name
        self.tally = stats.topic_put(TIMER_TOPIC)
        """Whoever puts a message counts it here; once it is delivered it counts for its own topic."""
        config = live.current.store
        self._delivery = TimerDelivery(
            store=store, clock=clock, timers=timers, put=self._put, window_ms=self._window_ms
        )
        self._progress = TimerProgress(
            directory=config.path("timer"),
            peer_path=config.path("config/timercheck"),
            store=store,
            files=files,
            clock=clock,
            window_ms=self._window_ms,
        )
        self._waiting: Waiting
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting_count(self) -> int:
        """Messages that wait, recalls among them."""
        return self._waiting.count

    @property
    def recalled_count(self) -> int:
        """Messages that were due since the start, and taken back."""
        return self._delivery.recalled_count

    def deliver_ms(self, timer: tuple[str, str]) -> int:
        """When a message with this timer property is to be delivered; 0 when it may be stored at once.

        Raises:
            Refused: no number, too far ahead, or timers are switched off.
        """
        name, text = timer
        config = self._live.current.timers
        if not config.is_enabled:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                "accurate timer message is not enabled, timerWheelEnable is false",
            )
        max_ms = config.delay_seconds_max * 1000
        now_ms = self._clock.wall_ms()
        if not text.removeprefix("-").isdecimal() or len(text) > _NUMBER_CHARACTERS_MAX:
            raise _illegal(max_ms)
        deliver_ms = int(text)
        if name == TIMER_DELAY_SEC:
            deliver_ms = now_ms + deliver_ms * 1000
        elif name == TIMER_DELAY_MS:
            deliver_ms += now_ms
        if deliver_ms <= now_ms:
            return 0
        if deliver_ms - now_ms > max_ms:
            raise _illegal(max_ms)
        return deliver_ms

    def put(self, message: NewMessage, deliver_ms: int) -> Stored:
        """Store a message so that it reaches its topic and queue at a time. Raises as ``MessageStore.put``."""
        return self._add(waiting_form(message, deliver_ms), deliver_ms, is_recall=False)

    def handle(self, message: NewMessage, deliver_ms: int) -> str | None:
        """By what the sender may take the message back; None when it cannot be taken back."""
        if not message.keys or message.topic.startswith(RETRY_PREFIX):
            return None
        return RecallHandle(message.topic, self._broker_name, deliver_ms, message.keys[0]).encode()

    def recall(self, handle: RecallHandle, producer_group: str | None, born_host: bytes) -> Stored:
        """Take a message back that is not yet due. Raises as ``MessageStore.put``."""
        plain = NewMessage(
            topic=handle.topic,
            queue_id=0,
            body=b"",
            properties=b"",
            born_timestamp=self._clock.wall_ms(),
            born_host=born_host,
        )
        form = recall_form(handle, producer_group, plain)
        return self._add(form, handle.deliver_ms, is_recall=True)

    def start(self) -> None:
        """Go on where the last run of this broker stopped, however it stopped."""
        self.resume()
        self._task = asyncio.create_task(self._save_again_and_again(), name="timers")

    def resume(self) -> None:
        """Recover and deliver, without saving by the clock."""
        if self._store.queue_ids(TIMER_TOPIC):
            # A topic without an entry counts as unused, and could be cleaned away.
            self._system_topic(TIMER_TOPIC)
        self._waiting, delivered = self._progress.recover()
        self._delivery.start(self._waiting, delivered)

    async def stop(self) -> None:
        """Deliver nothing more and save."""
        self._delivery.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._progress.save_at_stop(self._waiting, self._delivery)

    async def save(self) -> None:
        """Note on disk what is new, if anything is."""
        await self._progress.save(self._waiting, self._delivery)

    def _add(self, form: NewMessage, due_ms: int, *, is_recall: bool) -> Stored:
        self._system_topic(TIMER_TOPIC)
        stored = self._store.put(form)
        wake = wake_ms(due_ms, stored.store_timestamp, self._window_ms())
        self._waiting.add(wake, stored.physical_offset, is_recall=is_recall)
        self._delivery.added(wake)
        return stored

    def _put(self, message: NewMessage) -> Stored:
        if message.topic != TIMER_TOPIC:
            self._restore_topic(message.topic, message.queue_id + 1)
        stored = self._store.put(message)
        tally = self._stats.topic_put(message.topic)
        tally.count += 1
        tally.size_bytes += stored.size_bytes
        return stored

    def _window_ms(self) -> int:
        """How long a record may wait in its log file: two thirds of the time that the file is kept."""
        kept_ms = self._live.current.store.retention.reserved_hours * _HOUR_MS
        return min(max(kept_ms * 2 // 3, WINDOW_MS_MIN), WINDOW_MS_MAX)

    async def _save_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(self._live.current.timers.save_interval_ms / 1000)
            try:
                await self.save()
            except Exception:
                log.exception("timers not saved")

    def __repr__(self) -> str:
        return f"<TimedMessages {self._delivery!r}>"


def _illegal(max_ms: int) -> Refused:
    return Refused(
        ResponseCode.MESSAGE_ILLEGAL,
        "timer message illegal, the delay time should not be bigger than the max delay "
        f"{max_ms}ms; or if set del msg, the delay time should be bigger than the current time",
    )
