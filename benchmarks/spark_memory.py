"""What a Python worker of Spark holds at most when it reads ten times as many messages.

    python benchmarks/spark_memory.py [--messages 10000000] [--body 1024]

A store is filled in place and served by a broker. A new session (``local[2]``) reads a tenth of it ten times over, and
another one all of it once, through the broker (``rocketmq``) and from its files (``rocketmq-log``): the same number of
messages in all, in tasks of another size. The figure is the largest resident size that any Python worker of the session
ever had, as the kernel keeps it (``VmHWM``), in each of two sessions. 10,000,000 messages of 1 KB take 13 GB of disk.
Writes ``results/spark_memory.json`` for that number.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import spark_source  # noqa: E402
from benchmarks.kafka.components import spark_side  # noqa: E402
from processes.own_servers import servers  # noqa: E402

from cometmq.base.clock import SystemClock  # noqa: E402
from cometmq.base.disk import SystemFiles  # noqa: E402
from cometmq.model.address import pack_host  # noqa: E402
from cometmq.model.java_hash import java_hash  # noqa: E402
from cometmq.store.log.new_messages import NewMessage  # noqa: E402
from cometmq.store.message_store import MessageStore  # noqa: E402
from cometmq.store.store_config import StoreConfig  # noqa: E402

RESULT = HERE / "results" / "spark_memory.json"
MESSAGES = 10_000_000
TOPIC = "SparkMemory"
BROKER = "bench"
QUEUES = 4
BATCH = 100
FORMATS = ("rocketmq", "rocketmq-log")
PARTS = 10
SESSIONS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--body", type=int, default=1024)
    arguments = parser.parse_args()
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="cometmq-spark-memory-") as scratch:
        directory = Path(scratch)
        fill(directory / "store", arguments.messages, arguments.body)
        with servers(directory, queues=QUEUES) as started:
            name_server = started.name_server
            for format_ in FORMATS:
                options = {"topic": TOPIC, "nameServers": name_server}
                if format_ == "rocketmq-log":
                    path = str(directory / "store")
                    options = {"topic": TOPIC, "path": path, "brokerName": BROKER}
                for messages in SESSIONS * (arguments.messages // PARTS, arguments.messages):
                    times = arguments.messages // messages
                    found.append(measure(directory, format_, options, messages, times))
                    print(text_of(found[-1]), flush=True)
    if arguments.messages == MESSAGES:
        RESULT.write_text(
            json.dumps({"body_bytes": arguments.body, "reads": found}, indent=1) + "\n"
        )


def fill(store_directory: Path, messages: int, body_bytes: int) -> None:
    """Queues of the same length, in turns of ``BATCH`` messages, and the table that tells a broker of the topic."""
    began = time.monotonic()
    store = MessageStore(
        StoreConfig(root=str(store_directory)),
        store_host=pack_host("127.0.0.1", 10911),
        files=SystemFiles(),
        clock=SystemClock(),
    )
    store.load()
    pool = os.urandom(spark_source.POOL_BYTES + body_bytes)
    tags_code = java_hash("bench")
    for turn in range(messages // BATCH):
        batch = []
        for number in range(turn * BATCH, (turn + 1) * BATCH):
            at = number * spark_source.STEP_BYTES % spark_source.POOL_BYTES
            text = f"UNIQ_KEY\x01C000020230215FFD2B274CCE{number:08X}\x02KEYS\x01key-{number:08d}\x02TAGS\x01bench"
            batch.append(
                NewMessage(
                    topic=TOPIC,
                    queue_id=turn % QUEUES,
                    body=pool[at : at + body_bytes],
                    properties=text.encode(),
                    tags_code=tags_code,
                    born_timestamp=1_700_000_000_000 + number,
                )
            )
        store.put_all(batch)
        if turn % 10_000 == 0:
            print(f"… {turn * BATCH:,} messages stored", file=sys.stderr, flush=True)
    store.close()
    table = {
        TOPIC: {
            "order": False,
            "perm": 6,
            "readQueueNums": QUEUES,
            "writeQueueNums": QUEUES,
            "topicFilterType": "SINGLE_TAG",
            "topicName": TOPIC,
            "topicSysFlag": 0,
        }
    }
    version = {"counter": 1, "timestamp": 1_700_000_000_000}
    (store_directory / "config").mkdir(exist_ok=True)
    (store_directory / "config" / "topics.json").write_text(
        json.dumps({"dataVersion": version, "topicConfigTable": table})
    )
    seconds = time.monotonic() - began
    print(f"… {messages:,} messages stored in {seconds:.0f} s", file=sys.stderr, flush=True)


def measure(
    directory: Path, format_: str, options: dict[str, str], messages: int, times: int
) -> dict[str, Any]:
    ends = {TOPIC: {BROKER: {str(queue): messages // QUEUES for queue in range(QUEUES)}}}
    task = {"format": format_, "options": options | {"endingOffsets": json.dumps(ends)}}
    session = Path(tempfile.mkdtemp(dir=directory)) / "session"
    with spark_side(sys.executable, session, "--cometmq") as side:
        for _ in range(times):
            seen = side.do(**task, to="check", body="body")
            if seen["rows"] != messages:
                raise RuntimeError(f"{format_}: {messages} messages expected, {seen['rows']} seen")
        peaks = worker_peaks_mb(side.child.pid)
    return {"format": format_, "messages": messages, "times": times, "worker_peak_mb": peaks}


def worker_peaks_mb(session: int) -> list[int]:
    """The largest resident size each Python worker below a process ever had, the largest first."""
    peaks = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        with contextlib.suppress(OSError):
            is_worker = b"pyspark.daemon" in (entry / "cmdline").read_bytes()
            if is_worker and spark_source.is_below(int(entry.name), session):
                lines = (entry / "status").read_text().splitlines()
                peak = next(line for line in lines if line.startswith("VmHWM"))
                peaks.append(round(int(peak.split()[1]) / 1024))
    return sorted(peaks, reverse=True)


def text_of(read: dict[str, Any]) -> str:
    peaks = read["worker_peak_mb"]
    return (
        f"{read['format']:13} {read['messages']:>11,} messages, {read['times']:2} times   "
        f"largest worker {peaks[0]} MB   (all: {' '.join(map(str, peaks))})"
    )


if __name__ == "__main__":
    main()
