"""The source on executors of their own (``local-cluster``), while its broker is killed, and from a replica."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.integration.broker_links import broker_link
from tests.interop.systems import OURS, ROCKETMQ_4, Broker, NameServer, commands_of
from tests.spark.test_source_stream import Query, wait_until

from cometmq.client import Message
from cometmq.client.sync import Producer, PullConsumer
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.spark import register
from cometmq.testing.cluster import cluster
from cometmq.testing.cluster_view import ClusterView

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PROGRAM = """
import sys
from pyspark.sql import SparkSession
from cometmq.spark import register

name_servers, topic, group, scratch = sys.argv[1:]
spark = (
    SparkSession.builder.master("local-cluster[2,1,1024]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.local.dir", scratch + "/local")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
register(spark)
options = {
    "nameServers": name_servers, "topic": topic, "minPartitions": "4", "columns": "body,queueId"
}
frame = spark.read.format("rocketmq").options(**options).load()
print("batch", frame.count(), frame.selectExpr("count(distinct body)").first()[0])
print("executors", frame.rdd.mapPartitions(lambda _: [__import__("os").getppid()]).distinct().count())
query = (
    spark.readStream.format("rocketmq")
    .options(**options, startingOffsets="earliest", maxRowsPerTrigger="3000", consumerGroup=group)
    .load()
    .writeStream.format("parquet")
    .option("path", scratch + "/table")
    .option("checkpointLocation", scratch + "/checkpoint")
    .trigger(availableNow=True)
    .start()
)
assert query.awaitTermination(300)
table = spark.read.parquet(scratch + "/table")
print("stream", table.count(), table.selectExpr("count(distinct body)").first()[0])
spark.stop()
"""


def test_executors_of_their_own_read_every_row_once(tmp_path: Path) -> None:
    import pyspark

    with cluster() as running:
        view = ClusterView(running.name_servers, running.broker_address, suffix="executors")
        topic = view.create_topic(queues=3)
        with Producer("sends", name_servers=running.name_servers) as producer:
            producer.send_all(Message(topic=topic, body=b"%d" % number) for number in range(10_000))
        program = tmp_path / "program.py"
        program.write_text(PROGRAM)
        environment = {
            **os.environ,
            # Executors are started by the scripts below it.
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        done = subprocess.run(
            [sys.executable, program, running.name_servers, topic, "readers", tmp_path],
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
            env=environment,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr[-5000:]
        assert "batch 10000 10000" in done.stdout
        assert "executors 2" in done.stdout
        assert "stream 10000 10000" in done.stdout


def test_a_query_outlives_its_broker(spark: Any, tmp_path: Path) -> None:
    register(spark)
    commands = commands_of(OURS, tmp_path / "home")
    with NameServer(commands, tmp_path / "names").running() as name_server:
        broker = Broker([name_server], tmp_path / "broker", "mortal")
        try:
            broker.start(commands)
            view = ClusterView(name_server.address, broker.address, suffix="mortal")
            topic = view.create_topic(queues=2)
            options = {
                "topic": topic,
                "startingOffsets": "earliest",
                "maxRowsPerTrigger": "700",
                "consumerGroup": "readers",
            }
            trigger = {"processingTime": "0 seconds"}
            sent = 0
            with Query(spark, view, tmp_path / "checkpoint", trigger, options) as query:
                for _ in range(3):
                    _send(name_server.address, topic, range(sent, sent + 5000))
                    sent += 5000
                    # Somewhere in the middle of it.
                    wait_until(lambda: len(query.numbers) > sent - 4000)  # noqa: B023
                    broker.kill()
                    time.sleep(2)
                    assert query.query.isActive, query.query.exception()
                    broker.start(commands)
                query.wait_for(list(range(sent)))
                with PullConsumer("readers", name_servers=name_server.address) as consumer:
                    queues = consumer.queues(topic)
                    wait_until(
                        lambda: sum(consumer.committed(queue) or 0 for queue in queues) == sent
                    )
        finally:
            broker.kill()


@pytest.mark.interop
def test_a_replica_is_read_when_the_master_is_gone(spark: Any, tmp_path: Path) -> None:
    """Of RocketMQ 4.9.7: batches, and a stream that goes on meanwhile."""
    register(spark)
    commands = commands_of(ROCKETMQ_4, tmp_path / "home")
    small = {"mappedFileSizeCommitLog": 64 * 1024 * 1024}
    with NameServer(commands, tmp_path / "names").running() as name_server:
        master = Broker([name_server], tmp_path / "master", "pair", **small)
        replica = Broker(
            [name_server],
            tmp_path / "replica",
            "pair",
            **small,
            brokerId=1,
            brokerRole="SLAVE",
            haMasterAddress=f"127.0.0.1:{master.port + 1}",
        )
        try:
            master.start(commands)
            view = ClusterView(name_server.address, master.address, suffix="pair")
            topic = view.create_topic(queues=1)
            replica.start(commands)
            _send(name_server.address, topic, range(500))
            _wait_for_copy(replica, topic, 500)
            options = {"nameServers": name_server.address, "topic": topic}
            stream = {"topic": topic, "startingOffsets": "earliest", "maxRowsPerTrigger": "100"}
            stream["discoveryInterval"] = "500ms"
            master.kill()
            frame = spark.read.format("rocketmq").options(**options).load()
            assert frame.count() == 500
            now = {"processingTime": "0 seconds"}
            with Query(spark, view, tmp_path / "checkpoint", now, stream) as query:
                query.wait_for(list(range(500)))
                master.start(commands)
                _send(name_server.address, topic, range(500, 600))
                query.wait_for(list(range(600)))
        finally:
            master.kill()
            replica.kill()


def _send(name_servers: str, topic: str, numbers: range) -> None:
    with Producer("sends", name_servers=name_servers) as producer:
        producer.send_all(Message(topic=topic, body=b"%9d" % number) for number in numbers)


def _wait_for_copy(replica: Broker, topic: str, count: int) -> None:
    ext = {"topic": topic, "queueId": "0"}
    with broker_link(replica.address) as link:

        def copied() -> int:
            reply = link.call(Command(RequestCode.GET_MAX_OFFSET, ext))
            return int((reply.ext or {}).get("offset", "0"))

        wait_until(lambda: copied() >= count)
