"""Source and sink through Spark Connect: the session is a client, Spark a server with a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cometmq.testing import cluster

pytest.importorskip("grpc", reason="Spark Connect needs pyspark[connect]")

PROGRAM = """
import sys
from pyspark.sql import SparkSession
from cometmq.spark import register

name_servers, checkpoint = sys.argv[1:]
# Pyspark starts a Connect server for it, and ends it at the end.
spark = SparkSession.builder.remote("local[2]").getOrCreate()
assert "connect" in type(spark).__module__, type(spark)
register(spark)
rows = spark.range(0, 100).selectExpr("cast(id as string) as body", "concat('k', id) as keys")
rows.write.format("rocketmq").mode("append").options(nameServers=name_servers).save("From")
stream = (
    spark.readStream.format("rocketmq")
    .options(nameServers=name_servers, startingOffsets="earliest")
    .load("From")
)
query = (
    stream.writeStream.format("rocketmq")
    .options(nameServers=name_servers, topic="To", checkpointLocation=checkpoint)
    .trigger(availableNow=True)
    .start()
)
assert query.awaitTermination(120)
read = spark.read.format("rocketmq").options(nameServers=name_servers).load("To")
found = sorted(int(bytes(row.body)) for row in read.select("body").collect())
assert found == list(range(100)), found
print("columns", len(read.columns), "rows", read.count())
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_topic_is_written_copied_by_a_stream_and_read(tmp_path: Path) -> None:
    with cluster() as servers:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, servers.name_servers, str(tmp_path / "checkpoint")],
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
            cwd=tmp_path,
        )
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]
    assert "columns 16 rows 100" in done.stdout
