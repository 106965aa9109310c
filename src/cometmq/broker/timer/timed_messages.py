"""Messages with a time of delivery as the rest of the broker sees them: put one, and it comes to its topic at its time.

Parts: ``timed_forms`` (what is stored), ``lanes`` (by which clock it waits), ``timer_delivery`` (when it leaves),
``timer_progress`` (what a restart needs to know), ``store.timer`` (the index by time), ``rocketmq_timercheck`` (what is
exchanged with RocketMQ).

Between ``start`` and ``stop`` a message that is put enters the index at once. Outside of that it is only stored: the
next start reads the timer topic from where the index ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from cometmq.base.ports import Clock, EventLoop, Files
from cometmq.broker.broker_stats import DELAY, BrokerStats
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.metrics.timer_counts import TimerCounts
from cometmq.broker.timer.lanes import WALL, Lane, Lanes
from cometmq.broker.timer.rocketmq_timercheck import CHECKPOINT_BYTES, checkpoint_file
from cometmq.broker.timer.timed_forms import delay_ms, recall_form, waiting_form
from cometmq.broker.timer.timer_delivery import TimerDelivery
from cometmq.broker.timer.timer_progress import TimerProgress
from cometmq.model.messages.properties import TIMER_DELAY_MS, TIMER_DELAY_SEC, parse_properties
from cometmq.model.messages.recall_handle import RecallHandle
from cometmq.model.names import RETRY_PREFIX, TIMER_TOPIC
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused
from cometmq.store.log.new_messages import NewMessage, Stored
from cometmq.store.message_store import MessageStore

log = logging.getLogger("cometmq.broker")

WINDOW_MS_MAX: Final = 2 * 86_400_000
"""A message that waits longer is stored anew so often, as RocketMQ does: log files are deleted."""
WINDOW_MS_MIN: Final = 600_000
_HOUR_MS: Final = 3_600_000
_NONE: Final[Mapping[int, int]] = {}
_NUMBER_CHARACTERS_MAX: Final = 19
_PEER_FILE: Final = "config/timercheck"


class TimedMessages:
    """Delivers between ``start`` and ``stop``, any number of times. ``put`` always works; what it took waits meanwhile.

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
        loop: EventLoop,
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
        self.tally = stats.topic_put(TIMER_TOPIC, DELAY)
        """Whoever puts a message counts it here; once it is delivered it counts for its own topic."""
        self.counts = TimerCounts()
        self._files = files
        self._loop = loop
        self._progress: TimerProgress | None = None
        """Of this run; None outside of ``start`` and ``stop``."""
        self._deliveries: dict[int, TimerDelivery] = {}
        self._is_delivering = False
        self._recalled_before = 0
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting_count(self) -> int:
        """Messages in the index, recalls among them; 0 while it is stopped."""
        return sum(lane.waiting.count for lane in self._lanes)

    def due_within(self, seconds: int) -> int:
        """Messages in the index that are due by then, to the precision of ``Waiting.due_before``."""
        return sum(lane.waiting.due_before(lane.now_ms() + seconds * 1000) for lane in self._lanes)

    @property
    def late_ms(self) -> int:
        """How long the first message that is not delivered has been due."""
        return max(
            (lane.now_ms() - lane.waiting.done_before_ms(lane.now_ms()) for lane in self._lanes),
            default=0,
        )

    @property
    def recalled_count(self) -> int:
        """Messages that were due since the start, and taken back."""
        return self._recalled_before + sum(
            delivery.recalled_count for delivery in self._deliveries.values()
        )

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
        pairs = parse_properties(message.properties.decode())
        form = waiting_form(message, pairs, deliver_ms)
        stored = self._store_waiting(form)
        self.counts.take(message.topic, (deliver_ms - self._clock.wall_ms()) / 1000)
        if self._progress is not None:
            lanes = self._progress.lanes
            is_delay = delay_ms(pairs) is not None
            lane = lanes.for_delay() if is_delay else lanes.for_time(deliver_ms)
            self._delivery_of(lane).add(deliver_ms, stored.physical_offset, is_recall=False)
        return stored

    def handle(self, message: NewMessage, deliver_ms: int) -> str | None:
        """By what the sender may take the message back; None when it cannot be taken back."""
        if not message.keys or message.topic.startswith(RETRY_PREFIX):
            return None
        return RecallHandle(message.topic, self._broker_name, deliver_ms, message.keys[0]).encode()

    def clock_range(self) -> tuple[int, int]:
        """What the clocks show that messages wait for: the one that is behind the others, and the one ahead."""
        times = [lane.now_ms() for lane in self._lanes] or [self._clock.wall_ms()]
        return min(times), max(times)

    def checkpoint(self) -> bytes | None:
        """How far delivery has come, in RocketMQ's form; None while it is stopped."""
        return None if self._progress is None else self._progress.for_slave()[:CHECKPOINT_BYTES]

    def take_over(self, checkpoint: bytes) -> Callable[[], None] | None:
        """The disk part of noting how far the master has delivered, for the next start; None if there is no need.

        Raises:
            RemoteProtocolError: it is no checkpoint.
        """
        content = checkpoint_file(checkpoint)
        if self._progress is not None or not self._store.queue_ids(TIMER_TOPIC):
            # It delivers itself, or there is nothing to deliver.
            return None
        path = self._live.current.store.path(_PEER_FILE)
        return lambda: self._files.replace(path, content)

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
        stored = self._store_waiting(recall_form(handle, producer_group, plain))
        # Nothing tells by which clock that message waits. Its time is the same by all of them.
        for lane in self._lanes:
            if lane.waiting.count or lane.number == WALL:
                delivery = self._delivery_of(lane)
                delivery.add(handle.deliver_ms, stored.physical_offset, is_recall=True)
        return stored

    def start(self) -> None:
        """Go on where delivery stopped last, however it stopped."""
        if self._task is not None:
            return
        self.resume()
        self._task = asyncio.create_task(self._save_again_and_again(), name="timers")

    def resume(self) -> None:
        """Recover and deliver, without saving by the clock."""
        if self._progress is not None:
            return
        if self._store.queue_ids(TIMER_TOPIC):
            # A topic without an entry counts as unused, and could be cleaned away.
            self._system_topic(TIMER_TOPIC)
        config = self._live.current.store
        progress = TimerProgress(
            directory=config.path("timer"),
            peer_path=config.path(_PEER_FILE),
            store=self._store,
            files=self._files,
            clock=self._clock,
            window_ms=self._window_ms,
        )
        delivered = progress.recover()
        self._progress = progress
        self._is_delivering = True
        for lane in progress.lanes:
            self._delivery_of(lane, delivered)

    async def stop(self) -> None:
        """Deliver nothing more and save."""
        if self._progress is None:
            return
        self._is_delivering = False
        for delivery in self._deliveries.values():
            delivery.stop()
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        # What is put before the save still enters the index; nothing is awaited between the save and its end.
        await self._progress.save_at_stop(is_catching_up=self._is_catching_up)
        self._progress = None
        self._forget(self._deliveries.keys())

    async def save(self) -> None:
        """Note on disk what is new, if anything is."""
        if self._progress is None:
            return
        await self._progress.save(is_catching_up=self._is_catching_up)
        self._forget(self._deliveries.keys() - {lane.number for lane in self._progress.lanes})

    def _forget(self, lanes: Iterable[int]) -> None:
        for number in list(lanes):
            gone = self._deliveries.pop(number)
            gone.stop()
            self._recalled_before += gone.recalled_count

    @property
    def _lanes(self) -> Lanes | tuple[()]:
        return () if self._progress is None else self._progress.lanes

    @property
    def _is_catching_up(self) -> bool:
        return any(delivery.is_catching_up for delivery in self._deliveries.values())

    def _store_waiting(self, form: NewMessage) -> Stored:
        self._system_topic(TIMER_TOPIC)
        return self._store.put(form)

    def _delivery_of(self, lane: Lane, delivered: Mapping[int, int] = _NONE) -> TimerDelivery:
        """What delivers the messages of a lane; unless that is stopped it begins to when it is first asked for."""
        delivery = self._deliveries.get(lane.number)
        if delivery is None:
            delivery = self._deliveries[lane.number] = TimerDelivery(
                lane,
                store=self._store,
                clock=self._clock,
                loop=self._loop,
                put=self._put,
                window_ms=self._window_ms,
            )
            if self._is_delivering:
                delivery.start(dict(delivered))
        return delivery

    def _put(self, message: NewMessage) -> Stored:
        if message.topic != TIMER_TOPIC:
            self._restore_topic(message.topic, message.queue_id + 1)
        stored = self._store.put(message)
        self._stats.topic_put(message.topic, DELAY).add(stored.size_bytes)
        if message.topic != TIMER_TOPIC:
            self.counts.give(message.topic)
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
        return f"<TimedMessages {self._lanes!r}>"


def _illegal(max_ms: int) -> Refused:
    return Refused(
        ResponseCode.MESSAGE_ILLEGAL,
        "timer message illegal, the delay time should not be bigger than the max delay "
        f"{max_ms}ms; or if set del msg, the delay time should be bigger than the current time",
    )
