"""The sink on executors of their own (``local-cluster``), one of which is killed while it writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.spark.test_sink import bodies

from cometmq.testing.cluster import cluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PROGRAM = """
import sys
from pyspark.sql import SparkSession
from cometmq.spark import register

name_servers, address, scratch = sys.argv[1:]
spark = (
    SparkSession.builder.master("local-cluster[2,1,1024]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.local.dir", scratch + "/local")
    .config("spark.sql.execution.arrow.maxRecordsPerBatch", "200")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
register(spark)


def lose_an_executor(batches):
    import os, signal, time
    from pathlib import Path
    from pyspark import TaskContext
    from cometmq.client import ClientConfig
    from cometmq.client.sync.bulk_client import BulkClient
    from cometmq.protocol.command import Command

    flag = Path(scratch, "lost")
    seen = 0
    for batch in batches:
        yield batch
        seen += batch.num_rows
        if TaskContext.get().partitionId() != 1 or seen < 1500 or flag.exists():
            continue
        deadline = time.monotonic() + 60
        with BulkClient(ClientConfig(name_servers=address)) as client:
            link = client.link(address, 10)
            # Not before some rows of this very task are there.
            while time.monotonic() < deadline:
                ends = [
                    link.call(Command(30, {"topic": topic, "queueId": str(queue)})).ext
                    for queue in range(4)
                ]
                if sum(int(end["offset"]) for end in ends) >= 3500:
                    break
                time.sleep(0.05)
            else:
                raise AssertionError("the rows did not come")
        flag.touch()
        daemon = os.getppid()
        executor = int(Path(f"/proc/{daemon}/stat").read_text().rsplit(")", 1)[1].split()[1])
        os.kill(executor, signal.SIGKILL)


rows = spark.range(0, 6000, numPartitions=2).selectExpr("lpad(id, 1000, '0') as body")
topic = "Executors"
(
    rows.mapInArrow(lose_an_executor, "body string")
    .write.format("rocketmq")
    .mode("append")
    .options(nameServers=name_servers, batchBytes="10k")
    .save(topic)
)
print("written")
spark.stop()
"""


def test_the_rows_of_a_lost_executor_are_written_once(tmp_path: Path) -> None:
    import pyspark

    with cluster() as running:
        program = tmp_path / "program.py"
        program.write_text(PROGRAM)
        environment = {
            **os.environ,
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        done = subprocess.run(
            [sys.executable, program, running.name_servers, running.broker_address, tmp_path],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            env=environment,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr[-5000:]
        assert "written" in done.stdout
        assert (tmp_path / "lost").exists(), "this shows that an executor was killed"
        numbers = sorted(int(body) for body in bodies(running, "Executors"))
        assert numbers == list(range(6000))
