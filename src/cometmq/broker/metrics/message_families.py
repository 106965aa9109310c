"""Messages in, out and given up: read off the tallies that the data path keeps anyway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cometmq.broker.broker_stats import BrokerStats, PutTally, Tally
from cometmq.broker.metrics.names import flag, is_system
from cometmq.broker.pop.pop_topics import retry_origin
from cometmq.model.messages.counted_row import SIZE_EDGES
from cometmq.model.names import DLQ_PREFIX, RETRY_PREFIX
from cometmq.monitor.family import Family, Histogram, LabelValues, Value, counter, histogram

_IN: Final = ("is_system", "message_type", "topic")
_OUT: Final = ("consumer_group", "is_retry", "is_system", "topic")


class MessageFamilies:
    def __init__(self, stats: BrokerStats) -> None:
        self._stats = stats

    @property
    def messages(self) -> tuple[Family, ...]:
        return (
            counter("rocketmq_messages_in_total", _IN, self._count_in),
            counter("rocketmq_throughput_in_total", _IN, self._bytes_in),
            histogram("rocketmq_message_size", _IN, self._sizes, text="Incoming messages size"),
            counter("rocketmq_messages_out_total", _OUT, self._count_out),
            counter("rocketmq_throughput_out_total", _OUT, self._bytes_out),
        )

    @property
    def dead_letters(self) -> Family:
        return counter(
            "rocketmq_send_to_dlq_messages_total",
            ("consumer_group", "is_system", "topic"),
            lambda: [
                ((group, is_system(topic, group), topic), float(tally.count))
                for topic, group, tally in self._stats.dead_letters()
            ],
        )

    def _puts(self) -> Iterator[tuple[LabelValues, PutTally]]:
        """What came in from outside: retries and dead letters have come before."""
        for topic, puts in list(self._stats.puts.items()):
            if topic.startswith((RETRY_PREFIX, DLQ_PREFIX)):
                continue
            for kind, tally in list(puts.kinds.items()):
                if tally.count:
                    yield (is_system(topic), kind, topic), tally

    def _count_in(self) -> Iterator[tuple[LabelValues, Value]]:
        return ((labels, float(tally.count)) for labels, tally in self._puts())

    def _bytes_in(self) -> Iterator[tuple[LabelValues, Value]]:
        return ((labels, float(tally.size_bytes)) for labels, tally in self._puts())

    def _sizes(self) -> Iterator[tuple[LabelValues, Value]]:
        for labels, tally in self._puts():
            sizes = Histogram(SIZE_EDGES)
            sizes.counts = tally.by_size
            sizes.sum = float(tally.size_bytes)
            yield labels, sizes

    def _taken(self) -> Iterator[tuple[LabelValues, Tally]]:
        for topic, group, tally in self._stats.taken():
            origin = retry_origin(topic, group)
            is_retry = flag(topic.startswith(RETRY_PREFIX))
            yield (group, is_retry, is_system(topic, group), origin), tally

    def _count_out(self) -> Iterator[tuple[LabelValues, Value]]:
        return ((labels, float(tally.count)) for labels, tally in self._taken())

    def _bytes_out(self) -> Iterator[tuple[LabelValues, Value]]:
        return ((labels, float(tally.size_bytes)) for labels, tally in self._taken())
