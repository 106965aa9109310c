"""What reading log files into Spark rows costs: decoding alone, a task alone, and ``rocketmq-log`` to nowhere.

python benchmarks/spark_log.py [--messages N] [--queues N] [--rounds N] [--directory DIR] [--no-spark] [--profile]
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cometmq.base.clock import SystemClock
from cometmq.base.disk import SystemFiles
from cometmq.model.address import pack_host
from cometmq.model.java_hash import java_hash
from cometmq.store.log.new_messages import NewMessage
from cometmq.store.message_store import MessageStore
from cometmq.store.store_config import StoreConfig

HOST = pack_host("127.0.0.1", 10911)
BODY_BYTES = 1024
NINE = "topic,brokerName,queueId,queueOffset,msgId,keys,tags,body,storeTimestamp"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=600_000)
    parser.add_argument("--queues", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--directory", default=None)
    parser.add_argument("--no-spark", action="store_true")
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    try:
        import pyarrow  # noqa: F401
        import pyspark  # noqa: F401
    except ImportError as error:
        print(f"left out: {error}; pip install cometmq[spark]")
        return
    directory = tempfile.mkdtemp(prefix="spark-log-", dir=arguments.directory)
    try:
        fill(directory, arguments.messages, arguments.queues)
        decode_alone(directory, arguments.rounds)
        task_alone(directory, arguments.rounds, arguments.profile)
        if not arguments.no_spark:
            in_spark(directory, arguments.messages, arguments.rounds)
    finally:
        shutil.rmtree(directory)


def fill(directory: str, messages: int, queues: int) -> None:
    store = MessageStore(
        StoreConfig(root=directory), store_host=HOST, files=SystemFiles(), clock=SystemClock()
    )
    store.load()
    body, tags_code = os.urandom(BODY_BYTES), java_hash("TagA")
    for number in range(messages):
        unique = f"C000020230215FFD2B274CCE{number:08X}"
        text = (
            f"KEYS\x01key{number}\x02UNIQ_KEY\x01{unique}\x02CLUSTER\x01DefaultCluster\x02"
            "WAIT\x01true\x02TAGS\x01TagA\x02"
        )
        store.put(
            NewMessage(
                topic="Bench",
                queue_id=number % queues,
                body=body,
                properties=text.encode(),
                tags_code=tags_code,
                born_timestamp=1_700_000_000_000 + number,
            )
        )
    store.close()


def best(rounds: int, run: Callable[[], int]) -> tuple[float, float]:
    """Rows per second: of the best round and of the middle one."""
    rates = []
    for _ in range(rounds):
        start = time.perf_counter()
        rows = run()
        rates.append(rows / (time.perf_counter() - start))
    rates.sort()
    return rates[-1], rates[len(rates) // 2]


def report(what: str, rates: tuple[float, float]) -> None:
    print(f"{what:<44}{rates[0]:>12,.0f} rows/s best{rates[1]:>12,.0f} median", flush=True)


def decode_alone(directory: str, rounds: int) -> None:
    """Of records in memory, 8 MB at a time, in one thread."""
    from cometmq.spark.columns.decode import UndecodableRecord, decode
    from cometmq.spark.columns.frames import walk
    from cometmq.spark.columns.schema import COLUMNS, chosen_columns

    with Path(f"{directory}/commitlog/{0:020d}").open("rb") as file:
        data = file.read(8 << 20)
    try:
        walk(data)
    except UndecodableRecord as error:
        data = data[: error.position]  # the last one is cut off
    sizes = walk(data)
    for name, columns in (
        ("16 columns", COLUMNS),
        ("9 columns", chosen_columns(NINE, True)),
        ("without the body", chosen_columns(None, False)),
    ):
        run = lambda columns=columns: sum(  # noqa: E731
            decode(data, sizes, columns, "b").num_rows for _ in range(10)
        )
        report(f"decode alone, one core, {name}", best(rounds, run))


def task_alone(directory: str, rounds: int, is_profiled: bool) -> None:
    """Files to Arrow batches, in one thread."""
    from cometmq.spark.log.log_options import read_log_options
    from cometmq.spark.log.log_planner import LogPlanner
    from cometmq.spark.log.log_reader import LogTask

    def read(values: dict[str, str]) -> int:
        options = read_log_options({"path": directory, "topic": "Bench", **values})
        rows = 0
        for piece in LogPlanner(options).batch():
            task = LogTask(options, options.columns)
            rows += sum(batch.num_rows for batch in task.read(piece))
            task.close()
        return rows

    report("files to batches, one core, 16 columns", best(rounds, lambda: read({})))
    nine = {"columns": NINE}
    report("files to batches, one core, 9 columns", best(rounds, lambda: read(nine)))
    crc = {"checkCrc": "true"}
    report("files to batches, one core, with checkCrc", best(rounds, lambda: read(crc)))
    if is_profiled:
        profiler = cProfile.Profile()
        profiler.runcall(read, {})
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


def in_spark(directory: str, messages: int, rounds: int) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    from cometmq.spark.log.log_source import RocketMQLogDataSource

    session = (
        SparkSession.builder.master("local[2]")
        .appName("benchmark of rocketmq-log")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", f"{directory}/warehouse")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    session.dataSource.register(RocketMQLogDataSource)

    def table(**options: Any) -> Any:
        return session.read.format("rocketmq-log").options(topic="Bench", **options).load(directory)

    def to_noop(**options: Any) -> int:
        table(**options).write.format("noop").mode("overwrite").save()
        return messages

    to_noop()  # starts Python workers and lets the JVM warm up
    report("local[2] to noop, 16 columns", best(rounds, to_noop))
    report("local[2] to noop, 9 columns", best(rounds, lambda: to_noop(columns=NINE)))
    no_body = best(rounds, lambda: to_noop(includeBody="false"))
    report("local[2] to noop, without the body", no_body)

    def to_parquet() -> int:
        table().write.mode("overwrite").parquet(f"{directory}/parquet")
        return messages

    report("local[2] to Parquet, 16 columns", best(max(rounds // 2, 1), to_parquet))

    def stream() -> int:
        query = (
            session.readStream.format("rocketmq-log")
            .options(topic="Bench", startingOffsets="earliest", maxRowsPerTrigger=200_000)
            .load(directory)
            .writeStream.format("noop")
            .option("checkpointLocation", tempfile.mkdtemp(dir=directory))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return messages

    report("local[2] stream to noop, 200,000 a trigger", best(max(rounds // 2, 1), stream))
    session.stop()


if __name__ == "__main__":
    main()
