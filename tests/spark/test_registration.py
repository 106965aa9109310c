"""What registration prepares for streams that start at the same time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cometmq.client.sync import Producer
from cometmq.model.messages.message import Message
from cometmq.spark import register
from cometmq.testing import cluster


def test_a_stream_adds_nothing_to_the_map_that_all_streams_share(
    spark: Any, tmp_path: Path
) -> None:
    environment = dict(spark.sparkContext.environment)
    register(spark)
    assert spark.sparkContext.environment == environment
    before = shared_variables(spark)
    with cluster() as servers:
        with Producer("shop", name_servers=servers.name_servers) as producer:
            producer.send(Message(topic="Orders", body=b"one"))
        query = (
            spark.readStream.format("rocketmq")
            .options(nameServers=servers.name_servers, topic="Orders", startingOffsets="earliest")
            .load()
            .writeStream.format("noop")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        assert sum(step["numInputRows"] for step in query.recentProgress) == 1
    assert shared_variables(spark) == before


def shared_variables(spark: Any) -> set[str]:
    """The names in the map of variables that Java keeps of a format."""
    known = spark._jsparkSession.sessionState().dataSourceManager()
    return set(known.lookupDataSource("rocketmq").dataSourceCls().envVars())
