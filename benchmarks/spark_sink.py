"""How fast Spark (``local[2]``) writes into a topic: rows made in place, each acknowledged by a broker on this machine.

    python benchmarks/spark_sink.py [--messages 400000] [--body 1024] [--rounds 3] [--only batch] [--exactly-once off]

``batch`` writes rows that Spark makes. ``stream`` copies those from topic to topic under ``Trigger.AvailableNow``, so
reading them is part of it. ``writer`` is the sink without Spark: one process that writes Arrow batches. The first round
of each is a warm-up. Writes ``results/spark_sink.json``.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from processes.own_servers import BIN, free_port
from spark_source import cpu_seconds, keep, print_costs

KINDS = ("writer", "batch", "stream")
ROWS_PER_TRIGGER = 200_000
PARTITIONS = 2
NUMBER_CHARS = 9
START_SECONDS_MAX = 60.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--messages", type=int, default=400_000)
    parser.add_argument("--body", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=KINDS, action="append")
    parser.add_argument("--exactly-once", choices=("auto", "require", "off"), default="require")
    arguments = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    directory = Path(tempfile.mkdtemp(prefix="cometmq-spark-sink-"))
    try:
        with _servers(directory) as name_server:
            _measure(directory, name_server, arguments)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _measure(directory: Path, name_server: str, arguments: argparse.Namespace) -> None:
    kinds = arguments.only or KINDS
    options = {"nameServers": name_server, "exactlyOnce": arguments.exactly_once}
    if "writer" in kinds:
        _report("writer", arguments, lambda number: _writer(options, number, arguments))
    if not {"batch", "stream"} & set(kinds):
        return
    from pyspark.sql import SparkSession

    from cometmq.spark import register

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.local.dir", str(directory / "local"))
        .config("spark.python.unix.domain.socket.enabled", "true")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    try:
        _report("batch", arguments, lambda number: _batch(spark, options, arguments))
        if "stream" in kinds:
            _report(
                "stream",
                arguments,
                lambda number: _stream(spark, options, directory / f"checkpoint-{number}"),
            )
    finally:
        spark.stop()


def _report(kind: str, arguments: argparse.Namespace, write: Callable[[int], int | None]) -> None:
    rates = []
    total = 0
    cpu_before: dict[str, float] = {}
    for number in range(arguments.rounds + 1):
        if number == 1:
            cpu_before = cpu_seconds()
            total = 0
        began = time.perf_counter()
        messages = write(number) or arguments.messages
        rates.append(messages / (time.perf_counter() - began))
        total += messages
    texts = " ".join(f"{rate:,.0f}" for rate in rates[1:])
    median = statistics.median(rates[1:])
    print(f"{kind:8} median {median:>10,.0f} messages/s acknowledged   ({texts})", flush=True)
    costs = print_costs(cpu_before, total)
    if arguments.exactly_once == "require":
        messages_per_second = [round(rate) for rate in rates[1:]]
        figures = {"messages_per_second": messages_per_second, "cpu_us_per_message": costs}
        keep("spark_sink", kind, figures)


def _writer(options: dict[str, str], number: int, arguments: argparse.Namespace) -> None:
    import pyarrow as pa

    from cometmq.model.messages.sink_mark import SinkMark
    from cometmq.spark.sink.sink_options import read_sink_options
    from cometmq.spark.sink.sink_writer import SinkWriter

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, arguments.messages, 10_000):
            bodies = [str(n).rjust(arguments.body) for n in range(start, start + 10_000)]
            yield pa.RecordBatch.from_pydict({"body": bodies})

    writer = SinkWriter(
        read_sink_options(options | {"topic": "SinkWriter"}),
        SinkMark("writer", 0, number),
        f"run-{number}",
    )
    try:
        writer.write(batches())
    finally:
        writer.close()


def _batch(spark: Any, options: dict[str, str], arguments: argparse.Namespace) -> None:
    # A constant and a number: what Spark spends on making rows is not what is measured.
    constant = "." * max(arguments.body - NUMBER_CHARS, 0)
    rows = spark.range(0, arguments.messages, numPartitions=PARTITIONS).selectExpr(
        f"concat('{constant}', id + {10**NUMBER_CHARS // 10}) as body"
    )
    rows.write.format("rocketmq").mode("append").options(**options).save("SinkBatch")


def _stream(spark: Any, options: dict[str, str], checkpoint: Path) -> int:
    query = (
        spark.readStream.format("rocketmq")
        .options(
            nameServers=options["nameServers"],
            startingOffsets="earliest",
            maxRowsPerTrigger=str(ROWS_PER_TRIGGER),
        )
        .load("SinkBatch")
        .writeStream.format("rocketmq")
        .options(**options, topic="SinkStream", checkpointLocation=str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return sum(progress["numInputRows"] for progress in query.recentProgress)


@contextlib.contextmanager
def _servers(directory: Path) -> Iterator[str]:
    ports = [free_port(), free_port()]
    process = subprocess.Popen(
        [
            *(BIN / "cometmq", "up", "--log-level", "WARNING", "--data", directory / "data"),
            *("--namesrv-port", str(ports[0]), "--broker-port", str(ports[1])),
        ],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        deadline = time.monotonic() + START_SECONDS_MAX
        while not process.stdout.readline().startswith(b"stop"):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("the servers did not start")
        yield f"127.0.0.1:{ports[0]}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
        process.stdout.close()


if __name__ == "__main__":
    main()
