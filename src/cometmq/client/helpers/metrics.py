"""Metrics of producers and consumers, under the names that RocketMQ's gRPC clients push.

    metrics = ClientMetrics()
    producer.add_send_hook(metrics.sends)         # any number of producers and consumers
    consumer.hooks.append(metrics.consumption)
    with metrics.page(port=5558) as page: ...     # http://127.0.0.1:5558/metrics

Without the page, ``families`` can be read by a program that has a page already.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Final

from cometmq.client.aio.trace.consume_hooks import ConsumeContext
from cometmq.client.aio.trace.send_hooks import SendContext
from cometmq.monitor.family import Family, Histogram, LabelValues, Value, histogram
from cometmq.monitor.page_thread import PageThread

TOPICS_MAX: Final = 1000
"""What comes in topics beyond that is counted as of the topic "others"."""
OTHERS: Final = "others"
_SEND_EDGES: Final = (1.0, 5.0, 10.0, 20.0, 50.0, 200.0, 500.0)
_PROCESS_EDGES: Final = (1.0, 5.0, 10.0, 100.0, 1000.0, 10_000.0, 60_000.0)
_SUCCESS: Final = "success"
_FAILURE: Final = "failure"


class ClientMetrics:
    """One per process. Tasks and threads may use it.

    Args:
        client_id: the label of that name; by default host and process.
    """

    def __init__(self, client_id: str = "") -> None:
        self._client_id = client_id or f"{socket.gethostname()}@{os.getpid()}"
        self._lock = threading.Lock()
        self._topics: set[str] = set()
        self._send_cost: dict[LabelValues, Histogram] = {}
        self._delivery: dict[LabelValues, Histogram] = {}
        self._process: dict[LabelValues, Histogram] = {}
        self.sends = _Sends(self)
        """For ``producer.add_send_hook``."""
        self.consumption = _Consumption(self)
        """For ``consumer.hooks``."""

    @property
    def families(self) -> Sequence[Family]:
        return (
            histogram(
                "rocketmq_send_cost_time",
                ("client_id", "invocation_status", "topic"),
                lambda: self._read(self._send_cost),
                text="Milliseconds that sends took",
            ),
            histogram(
                "rocketmq_delivery_latency",
                ("client_id", "consumer_group", "topic"),
                lambda: self._read(self._delivery),
                text="Milliseconds from the store to the listener",
            ),
            histogram(
                "rocketmq_process_time",
                ("client_id", "consumer_group", "invocation_status", "topic"),
                lambda: self._read(self._process),
                text="Milliseconds that listeners took",
            ),
        )

    def page(self, *, host: str = "127.0.0.1", port: int = 0) -> PageThread:
        """A page to be entered with ``with``. Whoever reaches it may read it."""
        return PageThread(self.families, host=host, port=port)

    def sent(self, topic: str, milliseconds: float, *, is_failure: bool) -> None:
        with self._lock:
            labels = (self._client_id, _status(is_failure), self._known(topic))
            _add(self._send_cost, labels, _SEND_EDGES, milliseconds)

    def delivered(self, topic: str, group: str, milliseconds: float, count: int) -> None:
        with self._lock:
            labels = (self._client_id, group, self._known(topic))
            _add(self._delivery, labels, _SEND_EDGES, milliseconds, count)

    def processed(self, topic: str, group: str, milliseconds: float, *, is_failure: bool) -> None:
        with self._lock:
            labels = (self._client_id, group, _status(is_failure), self._known(topic))
            _add(self._process, labels, _PROCESS_EDGES, milliseconds)

    def _known(self, topic: str) -> str:
        if topic not in self._topics:
            if len(self._topics) >= TOPICS_MAX:
                return OTHERS
            self._topics.add(topic)
        return topic

    def _read(self, table: dict[LabelValues, Histogram]) -> Iterator[tuple[LabelValues, Value]]:
        with self._lock:
            found = []
            for labels, one in table.items():
                copy = Histogram(one.edges)
                copy.merge(one)
                found.append((labels, copy))
        yield from found


class _Sends:
    def __init__(self, metrics: ClientMetrics) -> None:
        self._metrics = metrics

    def before(self, context: SendContext) -> None:
        pass

    def after(self, context: SendContext) -> None:
        is_failure = context.error is not None
        self._metrics.sent(context.queue.topic, context.elapsed_ms, is_failure=is_failure)


class _Consumption:
    def __init__(self, metrics: ClientMetrics) -> None:
        self._metrics = metrics

    def before(self, context: ConsumeContext) -> None:
        first = context.messages[0]
        late_ms = max(time.time() * 1000 - first.store_timestamp, 0.0)
        topic, count = context.queue.topic, len(context.messages)
        self._metrics.delivered(topic, context.group, late_ms, count)

    def after(self, context: ConsumeContext) -> None:
        is_failure = context.consumed_count < len(context.messages)
        self._metrics.processed(
            context.queue.topic, context.group, context.elapsed_ms, is_failure=is_failure
        )


def _status(is_failure: bool) -> str:
    return _FAILURE if is_failure else _SUCCESS


def _add(
    table: dict[LabelValues, Histogram],
    labels: LabelValues,
    edges: tuple[float, ...],
    value: float,
    count: int = 1,
) -> None:
    one = table.get(labels)
    if one is None:
        one = table[labels] = Histogram(edges)
    one.add(value, count)
