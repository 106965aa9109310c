"""Topics as Spark tables, both ways; ``pip install cometmq[spark]``.

from cometmq.spark import register

register(spark)
orders = spark.readStream.format("rocketmq").option("nameServers", "…:9876").load("orders")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make the formats ``rocketmq`` and ``rocketmq-log`` known to a session. Once per session is enough."""
    # Here, so that the parts that need no Spark can be used without it.
    from cometmq.spark.formats import register_formats
    from cometmq.spark.log.log_source import RocketMQLogDataSource
    from cometmq.spark.source.data_source import RocketMQDataSource

    register_formats(spark, RocketMQDataSource, RocketMQLogDataSource)
