"""Spark reads the same messages from our broker, from its log files, and by its own connector from Apache Kafka.

    python benchmarks/spark_kafka.py [--messages 1000000] [--body 1024] [--rounds 3] [--only noop] [--quick]

Everything is up at once on this machine: our name server and broker, a Kafka, and a Spark session (``local[2]``) for
each side in a process of its own, with the same settings. Messages are sent to our broker, read from there into
Parquet, and sent to Kafka from it: same keys, same bodies, same number of queues. Before the rounds, which go around
the readers, each says how many it sees and the sum of their checksums; a difference ends the run. Before each round of
a reader its files are read once, so that nobody waits for the disk.

    noop         a batch, to nowhere
    parquet      a batch, into files
    stream       ``Trigger.AvailableNow``, 200,000 rows a trigger, into Parquet files

``rocketmq`` and ``rocketmq-log`` give all of their 16 columns; ``(6 columns)`` are those that Kafka's connector has,
too: key, body, topic, queue, offset, time. Fetched once and kept in ``~/.cache/cometmq`` (600 MB): Kafka 4.1.0, its
connector, and Spark 4.0.0 for that. Needs Java 17, Maven; what is missing is named, and nothing measured. Writes
``results/spark_kafka.json``, unless ``--quick``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import spark_source  # noqa: E402
from benchmarks.kafka.components import (  # noqa: E402
    SparkSide,
    fetch_connector,
    fetch_kafka,
    fetch_spark,
    kafka,
    spark_side,
)
from processes.own_servers import servers  # noqa: E402
from tests.interop.java import MissingComponent  # noqa: E402

TOPIC = spark_source.TOPIC
ROWS_PER_TRIGGER = 200_000
SHARED_COLUMNS = "topic,queueId,queueOffset,keys,body,storeTimestamp"
READ_BYTES = 8 << 20
KAFKA = "kafka"
KINDS = ("noop", "parquet", "stream")
# Of what the Kafka side does in the same run, by format and kind; with all columns and with those that Kafka has, too.
GOALS = {("rocketmq", "noop"): 1.2, ("rocketmq-log", "noop"): 1.6, ("rocketmq", "parquet"): 1.0}


@dataclass(frozen=True)
class Reader:
    """What a side is told to read; ``stream`` is what a stream is told besides."""

    name: str
    side: SparkSide
    body: str
    task: dict[str, Any]
    stream: dict[str, str]
    files: Path
    """Where the messages are."""


@dataclass(frozen=True)
class Bench:
    """Everything that runs; ``spark`` is our side."""

    readers: list[Reader]
    spark: SparkSide
    kafka_spark: SparkSide
    kafka_address: str
    name_server: str
    directory: Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--body", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=KINDS, action="append")
    parser.add_argument("--quick", action="store_true", help="100,000 messages, one round")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.messages, arguments.rounds = 100_000, 1
    try:
        say("fetching Kafka, its connector and Spark 4.0.0, unless they are there: minutes, once")
        fetch_kafka(), fetch_connector(), fetch_spark()
    except MissingComponent as reason:
        print(f"left out: {reason}")
        return
    with (
        tempfile.TemporaryDirectory(prefix="cometmq-spark-kafka-") as scratch,
        running(Path(scratch)) as bench,
    ):
        fill(bench, arguments.messages, arguments.body)
        for kind in arguments.only or KINDS:
            found = measure(bench, kind, arguments.messages, arguments.rounds)
            print(table(kind, found), flush=True)
            if not arguments.quick:
                spark_source.keep("spark_kafka", kind, found)


@contextlib.contextmanager
def running(directory: Path) -> Iterator[Bench]:
    """Both brokers and both sessions, without messages."""
    with contextlib.ExitStack() as stack:
        say("starting our servers, Kafka, and two Spark sessions")
        ours = directory / "ours"
        ours.mkdir()
        name_server = stack.enter_context(servers(ours, queues=4)).name_server
        kafka_address = stack.enter_context(kafka(directory / "kafka"))
        spark = stack.enter_context(spark_side(sys.executable, directory / "spark", "--cometmq"))
        kafka_spark = stack.enter_context(
            spark_side(str(fetch_spark()), directory / "spark-4.0.0", "--jars", fetch_connector())
        )
        from_broker = {"nameServers": name_server, "topic": TOPIC}
        from_log = {"topic": TOPIC, "path": str(ours / "store")}
        from_kafka = {"kafka.bootstrap.servers": kafka_address, "subscribe": TOPIC}
        ours_stream = {
            "startingOffsets": "earliest",
            "maxRowsPerTrigger": str(ROWS_PER_TRIGGER),
        }
        readers = [
            Reader(
                KAFKA,
                kafka_spark,
                "value",
                {"format": "kafka", "options": from_kafka | {"startingOffsets": "earliest"}},
                {"maxOffsetsPerTrigger": str(ROWS_PER_TRIGGER)},
                directory / "kafka" / "logs",
            )
        ]
        for format_, options in (("rocketmq", from_broker), ("rocketmq-log", from_log)):
            for suffix, columns in (("", {}), (" (6 columns)", {"columns": SHARED_COLUMNS})):
                task = {"format": format_, "options": options | columns}
                readers.append(
                    Reader(format_ + suffix, spark, "body", task, ours_stream, ours / "store")
                )
        yield Bench(readers, spark, kafka_spark, kafka_address, name_server, directory)


def fill(bench: Bench, messages: int, body_bytes: int) -> None:
    """The same messages into both. Raises RuntimeError when a reader sees something else than the others."""
    say(f"sending {messages:,} messages to our broker")
    asyncio.run(spark_source.fill(bench.name_server, messages, body_bytes))
    say("the same messages to Kafka, by way of Parquet files")
    copy = str(bench.directory / "copy")
    broker = next(reader for reader in bench.readers if reader.name == "rocketmq")
    bench.spark.do(**broker.task, to="parquet", out=copy, keep=True)
    target = {
        "kafka.bootstrap.servers": bench.kafka_address,
        "topic": TOPIC,
        "kafka.linger.ms": "20",
        "kafka.batch.size": "65536",
    }
    source = {"format": "parquet", "options": {}, "path": copy}
    bench.kafka_spark.do(**source, to="kafka", target=target, out="")
    seen = set()
    for reader in bench.readers:
        reply = reader.side.do(**reader.task, to="check", body=reader.body)
        say(f"{reader.name} sees {reply['rows']:,} messages, sum of checksums {reply['checksum']}")
        seen.add((reply["rows"], reply["bytes"], reply["checksum"]))
    if len(seen) != 1:
        raise RuntimeError(f"the readers do not see the same messages: {seen}")


def measure(
    bench: Bench, kind: str, messages: int, rounds: int, *, warm_ups: int = 2
) -> dict[str, Any]:
    """Rows per second of each round, and CPU µs a row of the Spark side, by reader; of streams also while they run."""
    rates: dict[str, list[float]] = {}
    costs: dict[str, list[float]] = {}
    running: dict[str, list[float]] = {}
    for number in range(-warm_ups, rounds):
        say(f"{kind}: {'warm-up' if number < 0 else f'round {number + 1} of {rounds}'}")
        # Another one begins each time.
        turn = number % len(bench.readers)
        for reader in bench.readers[turn:] + bench.readers[:turn]:
            task = _task(reader, kind, bench.directory / "out")
            _read_all(reader.files)
            before = _cpu_seconds(reader.side.child.pid)
            reply = reader.side.do(**task)
            cost = 1e6 * (_cpu_seconds(reader.side.child.pid) - before) / messages
            if number >= 0:
                rates.setdefault(reader.name, []).append(messages / reply["seconds"])
                if triggers := reply.get("triggers"):
                    running.setdefault(reader.name, []).append(_running_rate(triggers))
                costs.setdefault(reader.name, []).append(cost)
    found = {
        reader.name: {
            "rows_per_second": round(statistics.median(rates[reader.name])),
            "ratio": _ratio(rates[reader.name], rates[KAFKA]),
            "goal": GOALS.get((reader.task["format"], kind)),
            "spark_cpu_us_per_row": round(statistics.median(costs[reader.name]), 2),
            "rounds": [round(rate) for rate in rates[reader.name]],
        }
        for reader in bench.readers
    }
    for name, of_triggers in running.items():
        found[name]["running_rows_per_second"] = round(statistics.median(of_triggers))
    return found


def table(kind: str, found: dict[str, Any]) -> str:
    """Markdown, a row per reader."""
    lines = [
        f"| {kind} | rows/s | beside Kafka | goal | CPU µs a row in Spark |",
        "| --- | ---: | ---: | --- | ---: |",
    ]
    for name, figures in found.items():
        goal = figures["goal"]
        verdict = ""
        if goal is not None:
            verdict = f"≥ {goal}: {'met' if figures['ratio'] >= goal else '**missed**'}"
        lines.append(
            f"| {name} | {figures['rows_per_second']:,} | {figures['ratio']:.2f} | {verdict} | "
            f"{figures['spark_cpu_us_per_row']:.1f} |"
        )
    return "\n".join(lines)


def say(text: str) -> None:
    print(f"… {text}", file=sys.stderr, flush=True)


def _task(reader: Reader, kind: str, out: Path) -> dict[str, Any]:
    if kind == "noop":
        return reader.task | {"to": "noop"}
    if kind == "parquet":
        return reader.task | {"to": "parquet", "out": str(out)}
    options = reader.task["options"] | reader.stream
    return reader.task | {"options": options, "to": "parquet", "stream": True, "out": str(out)}


def _running_rate(triggers: list[list[Any]]) -> float:
    """Rows per second while a stream runs, without what it takes to start and to end one."""
    milliseconds = sum(durations["triggerExecution"] for _, durations in triggers)
    return 1000 * sum(rows for rows, _ in triggers) / float(milliseconds)


def _read_all(directory: Path) -> None:
    """So that what is measured begins with the same thing for all: their files in memory."""
    for file in sorted(directory.rglob("*")):
        if file.is_file():
            with contextlib.suppress(FileNotFoundError), file.open("rb") as content:
                while content.read(READ_BYTES):
                    pass


def _ratio(rates: list[float], kafka_rates: list[float]) -> float:
    """The median of the rounds' own ratios: what disturbs a round disturbs all of it."""
    pairs = zip(rates, kafka_rates, strict=True)
    return round(statistics.median(ours / theirs for ours, theirs in pairs), 2)


def _cpu_seconds(process: int) -> float:
    """Of a process and all below it, those that have ended included."""
    tick = os.sysconf("SC_CLK_TCK")
    seconds: dict[int, float] = {}
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        with contextlib.suppress(OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            parents[int(entry.name)] = int(fields[1])
            seconds[int(entry.name)] = sum(map(int, fields[11:15])) / tick
    total = 0.0
    for one, spent in seconds.items():
        above = one
        while above not in (0, process):
            above = parents.get(above, 0)
        if above == process:
            total += spent
    return total


if __name__ == "__main__":
    main()
