"""``spark.readStream.format("rocketmq")`` against a broker of ours."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.restarting_broker import broker_away

from cometmq.client import Message
from cometmq.client.sync import Producer, PullConsumer
from cometmq.model.message_queue import MessageQueue
from cometmq.spark import register
from cometmq.spark.client import open_client
from cometmq.spark.options import ConnectionOptions
from cometmq.testing.cluster import Cluster, cluster
from cometmq.testing.cluster_view import ClusterView

WAIT_SECONDS_MAX = 60.0


@pytest.fixture(scope="module")
def servers(spark: Any, cometmq_servers: Cluster) -> ClusterView:
    register(spark)
    running = cometmq_servers
    return ClusterView(running.name_servers, running.broker_address, suffix="stream")


@pytest.fixture(scope="module")
def producer(servers: ClusterView) -> Iterator[Producer]:
    with Producer("sends", name_servers=servers.name_servers) as running:
        yield running


class Query:
    """A streaming query whose batches are kept as lists of numbers, without those that are empty."""

    def __init__(
        self,
        spark: Any,
        servers: ClusterView,
        checkpoint: Path,
        trigger: dict[str, Any],
        options: dict[str, str],
    ) -> None:
        self.batches: list[list[int]] = []
        self._lock = threading.Lock()
        frame = (
            spark.readStream.format("rocketmq")
            .options(nameServers=servers.name_servers, columns="body,queueId", **options)
            .load()
        )
        self.query = (
            frame.writeStream.foreachBatch(self._take)
            .option("checkpointLocation", str(checkpoint))
            .trigger(**trigger)
            .start()
        )

    def _take(self, frame: Any, _: int) -> None:
        numbers = sorted(int(bytes(row.body)[:9]) for row in frame.select("body").collect())
        if numbers:
            with self._lock:
                self.batches.append(numbers)

    @property
    def numbers(self) -> list[int]:
        with self._lock:
            return sorted(number for batch in self.batches for number in batch)

    def wait_for(self, expected: list[int]) -> None:
        def is_there() -> bool:
            if self.query.exception() is not None:
                raise self.query.exception()
            return len(self.numbers) >= len(expected)

        def is_finished() -> bool:
            # What is not counted yet may be done again after a restart.
            rows: int = sum(one["numInputRows"] for one in self.query.recentProgress)
            return rows >= len(expected)

        wait_until(is_there)
        wait_until(is_finished)
        assert self.numbers == expected

    def __enter__(self) -> Query:
        return self

    def __exit__(self, *_: object) -> None:
        self.query.stop()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


@pytest.fixture
def start(spark: Any, servers: ClusterView, tmp_path: Path) -> Callable[..., Query]:
    def start(trigger: dict[str, Any] | None = None, **options: str) -> Query:
        trigger = trigger or {"processingTime": "0 seconds"}
        return Query(spark, servers, tmp_path / "checkpoint", trigger, options)

    return start


@pytest.fixture
def send(producer: Producer) -> Callable[..., None]:
    def send(topic: str, numbers: range, padding: int = 0) -> None:
        queues = producer.fetch_publish_queues(topic)
        for number in numbers:
            message = Message(topic=topic, body=b"%9d" % number + os.urandom(padding))
            producer.send(message, queue=queues[number % len(queues)])

    return send


def committed(servers: ClusterView, group: str, topic: str) -> dict[int, int | None]:
    with PullConsumer(group, name_servers=servers.name_servers) as consumer:
        return {queue.queue_id: consumer.committed(queue) for queue in consumer.queues(topic)}


def queues_of(servers: ClusterView, topic: str) -> list[MessageQueue]:
    with open_client(ConnectionOptions(name_servers=(servers.name_servers,))) as client:
        return client.queues(topic)


NOW = {"availableNow": True}


def test_rows_come_once_over_restarts_and_the_group_knows(
    servers: ClusterView, start: Callable[..., Query], send: Callable[..., None]
) -> None:
    topic, group = servers.create_topic("restarts", queues=3), servers.group("restarts")
    options = {"topic": topic, "startingOffsets": "earliest", "consumerGroup": group}
    send(topic, range(10))
    with start(**options) as first:
        first.wait_for(list(range(10)))
        send(topic, range(10, 20))
        first.wait_for(list(range(20)))
        # Nothing more comes, and yet the last batch is committed: exactly, no row less or more.
        wait_until(lambda: committed(servers, group, topic) == {0: 7, 1: 7, 2: 6})
        # Tools find a group by its retry topic, which a heartbeat makes.
        assert queues_of(servers, "%RETRY%" + group)
    send(topic, range(20, 30))
    with start(**options) as second:
        second.wait_for(list(range(20, 30)))
        wait_until(lambda: committed(servers, group, topic) == {0: 10, 1: 10, 2: 10})


@pytest.mark.parametrize(("commits", "expected"), [("false", 0), ("true", 10)])
def test_a_group_is_told_nothing_unless_offsets_are_committed(
    servers: ClusterView,
    start: Callable[..., Query],
    send: Callable[..., None],
    commits: str,
    expected: int,
) -> None:
    name = f"commits-{commits}"
    topic, group = servers.create_topic(name, queues=1), servers.group(name)
    send(topic, range(10))
    options = {"topic": topic, "startingOffsets": "earliest", "consumerGroup": group}
    with start(NOW, commitOffsets=commits, **options) as query:
        query.wait_for(list(range(10)))
        assert query.query.awaitTermination(WAIT_SECONDS_MAX)
    # Of a group that it does not know a broker may say 0, while the queue still has its first message.
    assert (committed(servers, group, topic)[0] or 0) == expected


def test_available_now_takes_what_is_there_within_limits(
    servers: ClusterView, start: Callable[..., Query], send: Callable[..., None]
) -> None:
    topic, group = servers.create_topic("now", queues=2), servers.group("now")
    send(topic, range(25))
    options = {
        "topic": topic,
        "startingOffsets": "earliest",
        "maxRowsPerTrigger": "10",
        "minRowsPerTrigger": "8",
        "consumerGroup": group,
    }
    query = start(NOW, **options)
    assert query.query.awaitTermination(WAIT_SECONDS_MAX)
    assert query.numbers == list(range(25))
    assert [len(batch) for batch in query.batches] == [10, 10, 5]
    assert committed(servers, group, topic) == {0: 13, 1: 12}
    # Nothing new: it ends at once, and takes nothing twice.
    again = start(NOW, **options)
    assert again.query.awaitTermination(WAIT_SECONDS_MAX)
    assert again.numbers == []
    send(topic, range(25, 28))
    more = start(NOW, **options)
    assert more.query.awaitTermination(WAIT_SECONDS_MAX)
    assert more.numbers == [25, 26, 27]


def test_bytes_per_trigger_are_limited(
    servers: ClusterView, start: Callable[..., Query], send: Callable[..., None]
) -> None:
    topic = servers.create_topic("bytes", queues=2)
    send(topic, range(12), padding=10_000)
    query = start(NOW, topic=topic, startingOffsets="earliest", maxBytesPerTrigger="45k")
    assert query.query.awaitTermination(WAIT_SECONDS_MAX)
    assert [len(batch) for batch in query.batches] == [4, 4, 4]
    assert query.numbers == list(range(12))


def test_few_rows_wait_for_company_but_not_for_ever(
    servers: ClusterView, start: Callable[..., Query], send: Callable[..., None]
) -> None:
    topic = servers.create_topic("few", queues=1)
    options = {"topic": topic, "startingOffsets": "earliest"}
    send(topic, range(3))
    with start(**options, minRowsPerTrigger="10", maxTriggerDelay="600s") as query:
        wait_until(lambda: query.query.lastProgress is not None or query.query.isActive)
        send(topic, range(3, 10))
        query.wait_for(list(range(10)))
        assert len(query.batches) == 1
    send(topic, range(10, 12))
    with start(**options, minRowsPerTrigger="10", maxTriggerDelay="500ms") as query:
        query.wait_for([10, 11])


def test_queues_and_topics_that_appear_are_read(
    servers: ClusterView, start: Callable[..., Query], send: Callable[..., None]
) -> None:
    first = servers.create_topic("grow-a", queues=1)
    send(first, range(5))
    options = {"topicPattern": "grow-.*", "startingOffsets": "latest", "discoveryInterval": "200ms"}
    with start(**options) as query:
        # The start is the end of what was there.
        wait_until(lambda: query.query.lastProgress is not None)
        send(first, range(5, 7))
        query.wait_for([5, 6])
        servers.create_topic("grow-a", queues=2)
        second = servers.create_topic("grow-b", queues=2)
        send(second, range(100, 110))
        send(first, range(8, 16))
        query.wait_for([5, 6, *range(8, 16), *range(100, 110)])


def test_progress_shows_the_lag(
    servers: ClusterView, start: Callable[..., Query], send: Callable[..., None]
) -> None:
    topic = servers.create_topic("lag", queues=1)
    send(topic, range(10))
    query = start(NOW, topic=topic, startingOffsets="earliest", maxRowsPerTrigger="4")
    assert query.query.awaitTermination(WAIT_SECONDS_MAX)
    sources = [progress["sources"][0] for progress in query.query.recentProgress]
    ends = [_only(source["endOffset"]) for source in sources if source["numInputRows"]]
    latest = [_only(source["latestOffset"]) for source in sources if source["numInputRows"]]
    assert ends == [4, 8, 10]
    assert latest == [10, 10, 10]


def _only(offset: Any) -> int:
    value = json.loads(offset) if isinstance(offset, str) else offset
    (by_broker,) = value.values()
    (by_queue,) = by_broker.values()
    (number,) = by_queue.values()
    assert isinstance(number, int)
    return number


def test_a_loss_ends_the_query_with_a_report_unless_it_may_happen(
    servers: ClusterView, start: Callable[..., Query], send: Callable[..., None]
) -> None:
    topic = servers.create_topic("lost", queues=1)
    send(topic, range(5))
    (queue,) = queues_of(servers, topic)
    beyond = json.dumps({topic: {queue.broker_name: {"0": 70}}})
    options = {"topic": topic, "startingOffsets": beyond}
    with pytest.raises(Exception, match="wanted offsets 70 to 70, available are 0 to 5"):
        start(NOW, **options).query.awaitTermination(WAIT_SECONDS_MAX)
    # The same checkpoint goes on when it may: the queue enters anew.
    with start(**options, failOnDataLoss="false") as query:
        query.wait_for(list(range(5)))


def test_available_now_waits_for_a_broker_that_is_away(spark: Any, tmp_path: Path) -> None:
    register(spark)
    with cluster() as running:
        with Producer("away", name_servers=running.name_servers) as sends:
            for number in range(3):
                sends.send(Message(topic="Away", body=b"%09d" % number))
        view = ClusterView(running.name_servers, running.broker_address, suffix="away")
        options = {"topic": "Away", "startingOffsets": "earliest"}
        with broker_away(running, "Away"):
            query = Query(spark, view, tmp_path / "checkpoint", NOW, options)
            query.query.awaitTermination(WAIT_SECONDS_MAX)
        assert query.numbers == [0, 1, 2]


def test_mistakes_are_named(servers: ClusterView, start: Callable[..., Query]) -> None:
    with pytest.raises(Exception, match=r"option endingOffsets: is for spark\.read"):
        start(NOW, topic="never-made", endingOffsets="latest").query.awaitTermination(
            WAIT_SECONDS_MAX
        )
    with pytest.raises(Exception, match="does not know topic 'never-made'"):
        start(NOW, topic="never-made", readTimeout="1s").query.awaitTermination(WAIT_SECONDS_MAX)
