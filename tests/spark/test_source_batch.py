"""``spark.read.format("rocketmq")`` against a broker of ours."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from cometmq.client import Message
from cometmq.client.sync import Producer, PullConsumer
from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient
from cometmq.spark import register
from cometmq.spark.bodies import JsonBody, decode
from cometmq.spark.columns.schema import COLUMNS
from cometmq.testing.cluster import Cluster
from cometmq.testing.cluster_view import ClusterView


@pytest.fixture(scope="module")
def servers(spark: Any, cometmq_servers: Cluster) -> ClusterView:
    register(spark)
    running = cometmq_servers
    return ClusterView(running.name_servers, running.broker_address, suffix="batch")


@pytest.fixture(scope="module")
def producer(servers: ClusterView) -> Iterator[Producer]:
    with Producer("sends", name_servers=servers.name_servers) as running:
        yield running


@pytest.fixture(scope="module")
def orders(servers: ClusterView, producer: Producer) -> str:
    """Numbers 0 to 59 in three queues, 20 each; tags a and b in turn, a property size."""
    topic = servers.create_topic("orders", queues=3)
    queues = producer.fetch_publish_queues(topic)
    for number in range(60):
        message = Message(
            topic=topic,
            body=b"%d" % number,
            tags="ab"[number % 2],
            keys=[f"k{number}"],
            properties={"size": str(number)},
        )
        producer.send(message, queue=queues[number % 3])
    return topic


def read(spark: Any, servers: ClusterView, topic: str, /, **options: str) -> Any:
    options = {"nameServers": servers.name_servers, "topic": topic, **options}
    return spark.read.format("rocketmq").options(**options).load()


def numbers(frame: Any) -> list[int]:
    return sorted(int(bytes(row.body)) for row in frame.select("body").collect())


def complaint(frame: Any) -> str:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - Spark's own, with our words in it
        frame.collect()
    return str(caught.value)


def test_rows_have_all_columns(spark: Any, servers: ClusterView, orders: str) -> None:
    frame = read(spark, servers, orders)
    assert tuple(frame.columns) == COLUMNS
    rows = frame.collect()
    assert sorted(int(bytes(row.body)) for row in rows) == list(range(60))
    assert sorted((row.queueId, row.queueOffset) for row in rows) == [
        (queue, offset) for queue in range(3) for offset in range(20)
    ]
    row = next(row for row in rows if bytes(row.body) == b"7")
    assert (row.topic, row.tags, row.keys, row.properties["size"]) == (orders, "b", "k7", "7")
    assert row.msgId == row.properties["UNIQ_KEY"]


def test_several_topics_and_a_pattern(
    spark: Any, servers: ClusterView, producer: Producer, orders: str
) -> None:
    other = servers.create_topic("bills", queues=1)
    producer.send(Message(topic=other, body=b"1000"))
    both = [*range(60), 1000]
    assert numbers(read(spark, servers, f"{orders}, {other}")) == both
    options = {"nameServers": servers.name_servers, "topicPattern": "(orders|bills)-.*"}
    assert numbers(spark.read.format("rocketmq").options(**options).load()) == both
    options["topicPattern"] = "no such.*"
    assert spark.read.format("rocketmq").options(**options).load().count() == 0


def test_the_topic_may_be_what_is_loaded(spark: Any, servers: ClusterView, orders: str) -> None:
    reader = spark.read.format("rocketmq").option("nameServers", servers.name_servers)
    assert reader.load(orders).count() == 60


def test_filters_are_evaluated_at_the_broker(spark: Any, servers: ClusterView, orders: str) -> None:
    assert numbers(read(spark, servers, orders, tags="b")) == list(range(1, 60, 2))
    assert numbers(read(spark, servers, orders, sql="size >= 50 AND TAGS = 'a'")) == [
        50,
        52,
        54,
        56,
        58,
    ]


def test_a_body_that_does_not_unpack_stops_no_query(
    spark: Any, servers: ClusterView, producer: Producer
) -> None:
    topic = servers.create_topic("poisoned", queues=1)
    producer.send(Message(topic=topic, body=b'{"number": 1}'))
    ext = {"a": "g", "b": topic, "c": "TBW102", "d": "1", "e": "0", "f": "1", "g": "0", "h": "0"}
    asyncio.run(_ask(servers.broker_address, Command(310, ext | {"j": "0"}, b"not packed")))
    producer.send(Message(topic=topic, body=b'{"number": 2}'))
    rows = read(spark, servers, topic).orderBy("queueOffset").collect()
    assert [bytes(row.body) for row in rows] == [
        b'{"number": 1}',
        b"not packed",
        b'{"number": 2}',
    ]
    reasons = [row.properties.get("__BODY_ERROR", "") for row in rows]
    assert [reason.partition(":")[0] for reason in reasons] == ["", "compressed body is broken", ""]
    split = decode(read(spark, servers, topic), JsonBody("number INT NOT NULL"))
    assert split.good.count() == 2
    assert split.failed is not None
    assert [bytes(row.body) for row in split.failed.collect()] == [b"not packed"]


async def _ask(address: str, command: Command) -> None:
    remoting = RemotingClient()
    try:
        reply = await remoting.call(address, command, 10.0)
        assert reply.code == 0, reply.remark
    finally:
        await remoting.close()


def test_columns_can_be_left_out(spark: Any, servers: ClusterView, orders: str) -> None:
    frame = read(spark, servers, orders, columns="queueOffset,TAGS")
    assert frame.columns == ["queueOffset", "tags"]
    assert frame.count() == 60
    assert "body" not in read(spark, servers, orders, includeBody="false").columns
    reader = spark.read.format("rocketmq").schema("tags string, body binary, queueId int")
    mine = reader.options(nameServers=servers.name_servers, topic=orders).load()
    assert sorted(map(tuple, mine.where("tags = 'a' and queueId = 0").collect()))[0] == (
        "a",
        bytearray(b"0"),
        0,
    )


def test_a_schema_that_cannot_be_is_told(spark: Any, servers: ClusterView, orders: str) -> None:
    reader = spark.read.format("rocketmq").options(nameServers=servers.name_servers, topic=orders)
    text = complaint(reader.schema("tags string, body string").load())
    assert "expected tags string, body binary" in text
    assert "got price" in complaint(reader.schema("price int").load())


def test_offsets_by_queue(spark: Any, servers: ClusterView, orders: str) -> None:
    broker = read(spark, servers, orders, columns="brokerName").first().brokerName
    frame = read(
        spark,
        servers,
        orders,
        startingOffsets=json.dumps({orders: {broker: {"0": 5, "1": -1, "2": "earliest"}}}),
        endingOffsets=json.dumps({orders: {broker: {"0": 8, "2": 2}}}),
        columns="queueId,queueOffset",
    )
    assert sorted(map(tuple, frame.collect())) == [(0, 5), (0, 6), (0, 7), (2, 0), (2, 1)]


def test_a_time_is_a_start_and_an_end(spark: Any, servers: ClusterView, producer: Producer) -> None:
    topic = servers.create_topic("times", queues=2)
    queues = producer.fetch_publish_queues(topic)
    moments = []
    for number in range(6):
        producer.send(Message(topic=topic, body=b"%d" % number), queue=queues[number % 2])
        time.sleep(0.005)
        moments.append(int(time.time() * 1000))
        time.sleep(0.005)
    start, end = str(moments[1]), str(moments[3])
    assert numbers(read(spark, servers, topic, startingTimestamp=start)) == [2, 3, 4, 5]
    between = read(spark, servers, topic, startingTimestamp=start, endingTimestamp=end)
    assert numbers(between) == [2, 3]
    assert numbers(read(spark, servers, topic, endingTimestamp="1")) == []
    assert numbers(read(spark, servers, topic, startingTimestamp="32503680000000")) == []


def test_a_group_is_a_start_and_an_end(spark: Any, servers: ClusterView, orders: str) -> None:
    group = servers.group("reads")
    with PullConsumer(group, name_servers=servers.name_servers) as consumer:
        for index, queue in enumerate(sorted(consumer.queues(orders))[:2]):
            consumer.commit(queue, 4 + index)
    behind = read(
        spark, servers, orders, startingOffsets="group", consumerGroup=group, columns="queueId"
    )
    counts = {row.queueId: row["count"] for row in behind.groupBy("queueId").count().collect()}
    assert counts == {0: 16, 1: 15, 2: 20}
    before = read(
        spark,
        servers,
        orders,
        endingOffsets="group",
        consumerGroup=group,
        groupFallback="latest",
        columns="queueId",
    )
    counts = {row.queueId: row["count"] for row in before.groupBy("queueId").count().collect()}
    assert counts == {0: 4, 1: 5, 2: 20}


def test_tasks_are_cut_and_put_together(spark: Any, servers: ClusterView, orders: str) -> None:
    def tasks(**options: str) -> int:
        count: int = read(spark, servers, orders, **options).rdd.getNumPartitions()
        return count

    assert tasks() == 1
    assert tasks(maxRecordsPerPartition="10") == 6
    assert tasks(minPartitions="4") >= 4
    both = read(spark, servers, orders, minPartitions="4", maxRecordsPerPartition="7")
    assert numbers(both) == list(range(60))


def test_an_empty_topic_has_no_rows(spark: Any, servers: ClusterView) -> None:
    assert read(spark, servers, servers.create_topic("empty")).collect() == []


def test_offsets_that_are_not_there_are_a_loss(
    spark: Any, servers: ClusterView, orders: str
) -> None:
    broker = read(spark, servers, orders, columns="brokerName").first().brokerName
    start = json.dumps({orders: {broker: {"0": 70}}})
    text = complaint(read(spark, servers, orders, startingOffsets=start))
    assert f"topic={orders} broker={broker} queue=0: wanted offsets 70 to 20, available are" in text
    end = json.dumps({orders: {broker: {"0": 70}}})
    text = complaint(read(spark, servers, orders, endingOffsets=end))
    assert "wanted offsets 0 to 70, available are 0 to 20" in text
    lenient = read(spark, servers, orders, endingOffsets=end, failOnDataLoss="false")
    assert lenient.count() == 60


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sql": "size >>> 5"}, "option sql: "),
        ({"topics": "x"}, "unknown option topics (did you mean topic?)"),
        ({"maxRowsPerTrigger": "5"}, "option maxRowsPerTrigger: is for spark.readStream"),
        ({"startingOffsets": "yesterday"}, "option startingOffsets: expected earliest, latest"),
        ({"topic": "never-made"}, "does not know topic 'never-made'"),
    ],
)
def test_mistakes_are_named(
    spark: Any, servers: ClusterView, options: dict[str, str], words: str
) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - Spark's own, with our words in it
        read(spark, servers, "any", **options).collect()
    assert words in str(caught.value)


def test_secrets_are_in_no_plan(spark: Any, servers: ClusterView, orders: str) -> None:
    frame = read(spark, servers, orders, accessKey="me", secretKey="hush-hush")
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        frame.explain("extended")
        frame.explain("formatted")
    assert "rocketmq" in told.getvalue().lower()
    assert "hush" not in told.getvalue()
    assert "hush" not in frame._jdf.queryExecution().toString()
    assert frame.count() == 60
