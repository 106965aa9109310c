"""How fast Spark (``local[2]``) reads a topic: from an ``mqbroker`` process on this machine to nowhere (``noop``).

    python benchmarks/spark_source.py [--messages 1000000] [--body 1024] [--queues 4] [--rounds 3] [--only batch]
        [--columns topic,queueId,…]

A backlog is sent first. Then batches read all of it, and a stream reads all of it under ``Trigger.AvailableNow`` with
200,000 rows a trigger; the first round of each is a warm-up. CPU time per row tells what it costs, whoever else uses
the machine. At last the time from a send until the rows of its micro-batch are at hand is taken, of a query that
triggers as often as it can. Writes ``results/spark_source.json``. What a worker holds: ``spark_memory.py``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from processes.own_servers import servers

from cometmq.base.errors import CometError
from cometmq.client.aio.send.producer import Producer
from cometmq.model.messages.message import Message

RESULTS = Path(__file__).parent / "results"
TOPIC = "SparkSource"
LATENCY_TOPIC = "SparkSourceLatency"
POOL_BYTES = 64 << 20
STEP_BYTES = 1031
"""How far apart the bodies of two messages begin in the pool."""
BATCH = 32
BATCHES_IN_FLIGHT = 8
ROWS_PER_TRIGGER = 200_000
LATENCY_MESSAGES = 30
LATENCY_STEP_SECONDS = 0.7
START_SECONDS_MAX = 60.0
KINDS = ("batch", "stream", "latency")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--body", type=int, default=1024)
    parser.add_argument("--queues", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--columns", default="")
    parser.add_argument("--only", choices=KINDS, action="append")
    arguments = parser.parse_args()
    kinds = arguments.only or KINDS
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    directory = Path(tempfile.mkdtemp(prefix="cometmq-spark-source-"))
    try:
        with servers(directory, queues=arguments.queues) as started:
            name_server = started.name_server
            if set(kinds) != {"latency"}:
                asyncio.run(fill(name_server, arguments.messages, arguments.body))
            _measure(directory, name_server, arguments, kinds)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _measure(
    directory: Path, name_server: str, arguments: argparse.Namespace, kinds: tuple[str, ...]
) -> None:
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
    options = {"nameServers": name_server, "topic": TOPIC}
    if arguments.columns:
        options["columns"] = arguments.columns
    try:
        for kind in kinds:
            if kind == "latency":
                _latency(spark, name_server, directory)
                continue
            rates = []
            cpu_before: dict[str, float] = {}
            for number in range(arguments.rounds + 1):
                if number == 1:
                    cpu_before = cpu_seconds()
                began = time.perf_counter()
                if kind == "batch":
                    _batch(spark, options)
                else:
                    _stream(spark, options, directory / f"checkpoint-{number}")
                rates.append(arguments.messages / (time.perf_counter() - began))
            texts = " ".join(f"{rate:,.0f}" for rate in rates[1:])
            print(
                f"{kind:8} median {statistics.median(rates[1:]):>10,.0f} rows/s   ({texts})",
                flush=True,
            )
            costs = print_costs(cpu_before, arguments.messages * arguments.rounds)
            if not arguments.columns:
                rows = [round(rate) for rate in rates[1:]]
                keep("spark_source", kind, {"rows_per_second": rows, "cpu_us_per_row": costs})
    finally:
        spark.stop()


def keep(name: str, kind: str, figures: dict[str, Any]) -> None:
    """Put the figures of one kind into ``results/NAME.json``, beside those of others."""
    path = RESULTS / f"{name}.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    found[kind] = figures
    path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


def _batch(spark: Any, options: dict[str, str]) -> None:
    spark.read.format("rocketmq").options(**options).load().write.format("noop").mode(
        "overwrite"
    ).save()


def _stream(spark: Any, options: dict[str, str], checkpoint: Path) -> None:
    query = (
        spark.readStream.format("rocketmq")
        .options(**options, startingOffsets="earliest", maxRowsPerTrigger=str(ROWS_PER_TRIGGER))
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def _latency(spark: Any, name_server: str, directory: Path) -> None:
    """From before the send until the rows of its micro-batch are at hand."""
    from cometmq.client.sync import Producer as BlockingProducer

    seen: list[float] = []

    def note(frame: Any, _: int) -> None:
        rows = frame.select("body").collect()
        now = time.time()
        seen.extend(now - float(bytes(row.body)) for row in rows)

    with BlockingProducer("bench", name_servers=name_server) as producer:
        producer.send(Message(topic=LATENCY_TOPIC, body=b"0"))
        time.sleep(1)
        query = (
            spark.readStream.format("rocketmq")
            .options(nameServers=name_server, topic=LATENCY_TOPIC, startingOffsets="latest")
            .load()
            .writeStream.foreachBatch(note)
            .option("checkpointLocation", str(directory / "latency"))
            .trigger(processingTime="0 seconds")
            .start()
        )
        deadline = time.monotonic() + START_SECONDS_MAX
        for number in range(LATENCY_MESSAGES + 5):
            producer.send(Message(topic=LATENCY_TOPIC, body=repr(time.time()).encode()))
            wait = LATENCY_STEP_SECONDS if number >= 5 else 2.0
            time.sleep(wait)
        while len(seen) < LATENCY_MESSAGES + 5 and time.monotonic() < deadline:
            time.sleep(0.1)
        query.stop()
    times = sorted(1000 * seconds for seconds in seen[5:])
    p50, largest = statistics.median(times), times[-1]
    print(
        f"latency  send to rows of a micro-batch: p50 {p50:,.0f} ms, largest {largest:,.0f} ms of {len(times)}",
        flush=True,
    )
    figures = {"p50_ms": round(p50), "largest_ms": round(largest), "messages": len(times)}
    keep("spark_source", "latency", figures)


async def fill(name_server: str, messages: int, body_bytes: int) -> None:
    """So many messages, no two bodies alike: what compresses or is told apart by its value shows its true cost."""
    pool = os.urandom(POOL_BYTES + body_bytes)
    began = time.perf_counter()
    async with Producer("bench", name_servers=name_server) as producer:
        await _patiently(producer)
        queues = await producer.fetch_publish_queues(TOPIC)
        left = messages - 1
        gate = asyncio.Semaphore(BATCHES_IN_FLIGHT)

        def message(number: int) -> Message:
            at = number * STEP_BYTES % POOL_BYTES
            body = pool[at : at + body_bytes]
            return Message(topic=TOPIC, body=body, tags="bench", keys=[f"key-{number}"])

        async def send(count: int, number: int) -> None:
            async with gate:
                await producer.send_batch(
                    [message(number * BATCH + place) for place in range(count)],
                    queue=queues[number % len(queues)],
                    timeout=30,
                )

        number = 0
        while left:
            tasks = []
            for _ in range(256):
                count = min(left, BATCH)
                if not count:
                    break
                left -= count
                number += 1
                tasks.append(asyncio.create_task(send(count, number)))
            await asyncio.gather(*tasks)
    print(f"filled   {messages:,} messages in {time.perf_counter() - began:.1f} s", flush=True)


async def _patiently(producer: Producer) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while True:
        try:
            await producer.send(Message(topic=TOPIC, body=b"first"))
            return
        except CometError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.2)


def print_costs(before: dict[str, float], rows: int) -> dict[str, float]:
    """What each row has cost since ``before``, by kind of process."""
    costs = {who: 1e6 * (now - before.get(who, 0.0)) / rows for who, now in cpu_seconds().items()}
    parts = ", ".join(f"{who} {cost:.2f}" for who, cost in costs.items())
    print(f"         CPU µs a row: {sum(costs.values()):.2f} ({parts})", flush=True)
    return {who: round(cost, 2) for who, cost in costs.items()}


def cpu_seconds() -> dict[str, float]:
    """Of the processes below this one, by what they are."""
    tick = os.sysconf("SC_CLK_TCK")
    kinds = {b"pyspark.daemon": "Python workers", b"org.apache.spark": "JVM", b"broker": "broker"}
    totals: dict[str, float] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_bytes()
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            seconds = (int(fields[11]) + int(fields[12])) / tick
            for mark, kind in kinds.items():
                if mark in command and is_below(int(entry.name), os.getpid()):
                    totals[kind] = totals.get(kind, 0.0) + seconds
                    break
    return totals


def is_below(process: int, ancestor: int) -> bool:
    """Whether a process descends from another. Raises OSError when it is gone."""
    while process > 1 and process != ancestor:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        process = int(fields[1])
    return process == ancestor


if __name__ == "__main__":
    main()
