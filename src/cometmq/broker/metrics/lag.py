"""How far groups are behind, of all that have positions here or are connected: those that are offline, too.

A slave says nothing: its positions are copies of its master's, and would count twice.

Computed when somebody asks, step by step, and kept for a few seconds. With many groups it is a second's work.

    committed     pulled, or popped       end of the queue
        |<-- in flight -->|<---- ready ---->|
        |<------------- lag --------------->|

What a pop gave out is in flight one by one, since it is acknowledged one by one. A queue where a group has no position
counts as read: it will begin at the end, or says where when it comes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Final

from cometmq.base.ports import Clock
from cometmq.broker.clients.client_registry import ClientRegistry
from cometmq.broker.metrics.names import flag, is_system
from cometmq.broker.pop.pop_topics import retry_origin
from cometmq.broker.pop.pops import Pops
from cometmq.model.names import RETRY_PREFIX, is_brokers_own
from cometmq.monitor.family import Family, LabelValues, Value, gauge
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.consumer_offsets import OffsetTable
from cometmq.store.meta.topics import TopicTable

KEPT_SECONDS: Final = 5.0
QUEUES_AT_ONCE: Final = 64
PAIRS_AT_ONCE: Final = 16
_LABELS: Final = ("consumer_group", "is_retry", "is_system", "topic")

Place = tuple[str, str, int]
"""Group, topic, queue."""
Out = dict[Place, tuple[int, int]]
"""What pops have given out and nobody has acknowledged: how many messages, and the offset of the first."""
At = tuple[str, int, int]
"""Topic, queue, offset."""


@dataclass(slots=True)
class Lag:
    """Of one group in one topic."""

    ready: int = 0
    in_flight: int = 0
    committed_ms: int = 0
    """How long ago the first message was stored that is not committed; 0 without one."""
    ready_ms: int = 0
    """The same for the first that is not pulled."""
    worst_queue: int = 0
    """Messages behind in the queue that has most of them."""

    @property
    def total(self) -> int:
        return self.ready + self.in_flight


class ConsumerLag:
    def __init__(
        self,
        *,
        store: MessageStore,
        topics: TopicTable,
        offsets: OffsetTable,
        clients: ClientRegistry,
        pops: Pops,
        clock: Clock,
        is_slave: Callable[[], bool] = lambda: False,
    ) -> None:
        self._is_slave = is_slave
        self._store = store
        self._topics = topics
        self._offsets = offsets
        self._clients = clients
        self._pops = pops
        self._clock = clock
        self._computed_at = float("-inf")
        self._lags: dict[tuple[str, str], Lag] = {}
        # A group that stands still has the same first message each time, which need not be read again.
        self._times: dict[At, int] = {}

    @property
    def families(self) -> Sequence[Family]:
        return (
            self._family("rocketmq_consumer_lag_messages", lambda lag: lag.total),
            self._family("rocketmq_consumer_inflight_messages", lambda lag: lag.in_flight),
            self._family("rocketmq_consumer_ready_messages", lambda lag: lag.ready),
            self._family(
                "rocketmq_consumer_lag_latency", lambda lag: lag.committed_ms, "milliseconds"
            ),
            self._family(
                "rocketmq_consumer_queueing_latency", lambda lag: lag.ready_ms, "milliseconds"
            ),
            self._family(
                "cometmq_consumer_worst_queue_lag_messages",
                lambda lag: lag.worst_queue,
                text="Messages that a group is behind in the queue where it is furthest behind",
            ),
            gauge(
                "cometmq_consumer_group_clients",
                ("consumer_group",),
                self._clients_of_groups,
                text="Connected clients of each group that has positions or clients here",
            ),
        )

    def prepare(self) -> Iterator[None]:
        """Compute anew, unless that was done a moment ago."""
        if monotonic() - self._computed_at < KEPT_SECONDS:
            return
        lags: dict[tuple[str, str], Lag] = {}
        times: dict[At, int] = {}
        if self._is_slave():
            self._lags, self._times = lags, times
            return
        out = yield from self._out()
        for number, (group, topic) in enumerate(self._pairs(out)):
            if number % PAIRS_AT_ONCE == 0:
                yield
            config = self._topics.get(topic)
            if config is None or is_brokers_own(topic) or (group, topic) in lags:
                continue
            lag = lags[group, topic] = Lag()
            for queue_id in range(config.read_queue_nums):
                self._add(lag, (group, topic, queue_id), out, times)
                if queue_id % QUEUES_AT_ONCE == QUEUES_AT_ONCE - 1:
                    yield
        self._lags, self._times = lags, times
        self._computed_at = monotonic()

    def _out(self) -> Generator[None, None, Out]:
        out: Out = {}
        for number, point in enumerate(list(self._pops.in_flight.points())):
            if point.open:
                place = (point.key.group, point.key.topic, point.key.queue_id)
                count, first = out.get(place, (0, 1 << 63))
                out[place] = (count + len(point.open), min(first, min(point.open)))
            if number % 256 == 255:
                yield
        return out

    def _pairs(self, out: Out) -> Iterator[tuple[str, str]]:
        """Group and topic; some come twice."""
        yield from self._offsets.pairs()
        for group, topic, _ in out:
            yield group, topic
        for name, online in list(self._clients.consumers.items()):
            for topic in list(online.subscriptions):
                yield name, topic

    def _add(
        self,
        lag: Lag,
        place: Place,
        out: Out,
        times: dict[At, int],
    ) -> None:
        group, topic, queue_id = place
        end = max(self._store.max_offset(topic, queue_id), 0)
        committed = self._offsets.query(group, topic, queue_id)
        out_count, out_first = out.get(place, (0, end))
        ahead = self._pops.positions.peek(place)
        if ahead is None and not out_count:
            if committed < 0:
                return
            taken = max(self._offsets.pull_offset(group, topic, queue_id), committed)
            committed, taken = min(committed, end), min(taken, end)
            in_flight = taken - committed
        else:
            taken = min(committed if ahead is None else ahead, end)
            in_flight = out_count
            committed = min(out_first, taken)
        ready = end - taken
        lag.ready += ready
        lag.in_flight += in_flight
        lag.worst_queue = max(lag.worst_queue, ready + in_flight)
        if committed < end and ready + in_flight:
            lag.committed_ms = max(
                lag.committed_ms, self._age_ms(topic, queue_id, committed, times)
            )
        if taken < end:
            lag.ready_ms = max(lag.ready_ms, self._age_ms(topic, queue_id, taken, times))

    def _age_ms(self, topic: str, queue_id: int, offset: int, times: dict[At, int]) -> int:
        """How long ago the message there was stored, or the first one behind it that is still kept."""
        key = (topic, queue_id, max(offset, self._store.min_offset(topic, queue_id)))
        stored_ms = times.get(key) or self._times.get(key)
        if stored_ms is None:
            stored_ms = self._store.store_time(topic, queue_id, key[2])
            if stored_ms <= 0:
                return 0
        times[key] = stored_ms
        return max(self._clock.wall_ms() - stored_ms, 0)

    def _family(
        self, name: str, value: Callable[[Lag], int], unit: str = "", text: str = ""
    ) -> Family:
        def read() -> Iterator[tuple[LabelValues, Value]]:
            for (group, topic), lag in self._lags.items():
                yield _labels(group, topic), float(value(lag))

        return gauge(name, _LABELS, read, unit=unit, text=text)

    def _clients_of_groups(self) -> Iterator[tuple[LabelValues, Value]]:
        if self._is_slave():
            return iter(())
        counts = dict.fromkeys((group for group, _ in self._lags), 0)
        for name, online in list(self._clients.consumers.items()):
            counts[name] = len(online.clients)
        return (((group,), float(count)) for group, count in counts.items())


def _labels(group: str, topic: str) -> LabelValues:
    is_retry = flag(topic.startswith(RETRY_PREFIX))
    return group, is_retry, is_system(topic, group), retry_origin(topic, group)
