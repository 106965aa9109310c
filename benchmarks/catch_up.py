"""How fast a slave copies what its master has, beside the speed of the disk and of a plain copy by TCP.

    python benchmarks/catch_up.py [--gigabytes 5] [--directory DIR]

Real processes on loopback: a name server, a master with so many gigabytes of 1 KB messages, and a slave that starts
with an empty store, which copies all of it. The time runs from the last look at which the slave had nothing: to the
moment when its log is as long as the master's (``log``), and to the moment when every message is in its consume queue,
too (``queues``). Then both logs are compared byte by byte, and the ends of all queues.

In the same run and the same directory, for comparison: writing as many bytes in sequence with one fdatasync at the end
(``disk``, before and after), and the master's files sent by one process and written to disk by another (``tcp``), which
is the least that any slave has to do. Goal: 250 MB/s, or the disk's speed where that is less.

Writes ``results/catch_up.json``, unless the size is less than the default: that is for a first look.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any, Final

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent)]

from benchmarks.compare.stolen import processor_times  # noqa: E402
from benchmarks.parts.logs import BLOCK_BYTES, first_difference  # noqa: E402
from benchmarks.processes.replica_pair import Progress, make_topic, replica_pair  # noqa: E402
from tests.interop.servers import ask  # noqa: E402
from tests.interop.systems import Broker  # noqa: E402

from cometmq.base.clock import SystemClock  # noqa: E402
from cometmq.base.disk import SystemFiles  # noqa: E402
from cometmq.broker.config.broker_config import load_broker_config  # noqa: E402
from cometmq.model.address import pack_host  # noqa: E402
from cometmq.model.java_hash import java_hash  # noqa: E402
from cometmq.protocol.codes import RequestCode  # noqa: E402
from cometmq.store.log.new_messages import NewMessages  # noqa: E402
from cometmq.store.message_store import MessageStore  # noqa: E402

RESULT: Final = HERE / "results" / "catch_up.json"
GOAL_MB_PER_SECOND: Final = 250
GIGABYTES: Final = 5.0
TOPIC: Final = "CatchUp"
QUEUES: Final = 4
BODY_BYTES: Final = 1024
GROUP: Final = 256
LOOK_SECONDS: Final = 0.05
SECONDS_MAX: Final = 600.0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=GIGABYTES)
    parser.add_argument("--directory", type=Path, help="where the stores go while it runs")
    arguments = parser.parse_args()
    size_bytes = int(arguments.gigabytes * 1e9)
    with tempfile.TemporaryDirectory(prefix="cometmq-catch-up-", dir=arguments.directory) as made:
        directory = Path(made)
        needed, free = 3 * size_bytes + (4 << 30), shutil.disk_usage(directory).free
        if free < needed:
            print(f"{needed / 1e9:.0f} GB of disk are needed, {directory} has {free / 1e9:.0f}")
            return 3
        figures = measure(directory, size_bytes)
    show(figures)
    if arguments.gigabytes >= GIGABYTES:
        RESULT.write_text(json.dumps(figures, indent=1) + "\n")
        print(f"written: {RESULT.relative_to(HERE.parent)}", file=sys.stderr)
    return 0


def measure(directory: Path, size_bytes: int) -> dict[str, Any]:
    with replica_pair(directory, master_role="ASYNC_MASTER") as pair:
        master, slave, commands = pair.master, pair.slave, pair.commands
        master.start(commands)
        make_topic(master, TOPIC, QUEUES)
        master.stop()
        filled = fill(master, size_bytes)
        master.start(commands)
        end = Progress.of(master).log_end
        files = sorted((master.store / "commitlog").iterdir())
        disk = [write_speed(directory / "probe", end)]
        tcp = tcp_speed(files, end, directory / "probe")
        copied = copy(slave, end, lambda: slave.start(commands, until_known=False))
        cpu_seconds = {"master": cpu_of(master.pid), "slave": cpu_of(slave.pid)}
        check_queues(master, slave)
        master.stop()
        slave.stop()
        check_logs(master, slave, end)
        shutil.rmtree(slave.store)
        disk.append(write_speed(directory / "probe", end))
    wanted = min(GOAL_MB_PER_SECOND, statistics.mean(disk))
    return {
        "cores": os.cpu_count(),
        "python": sys.version.split()[0],
        "bytes": end,
        **filled,
        "disk_mb_per_second": disk,
        "tcp_mb_per_second": tcp,
        **copied,
        "cpu_seconds": cpu_seconds,
        "goal_mb_per_second": wanted,
        "ratio_to_disk": round(copied["log_mb_per_second"] / statistics.mean(disk), 2),
        "met": copied["log_mb_per_second"] >= wanted,
    }


def show(figures: dict[str, Any]) -> None:
    disk = " and ".join(f"{rate:.0f}" for rate in figures["disk_mb_per_second"])
    print(f"{figures['bytes'] / 1e9:.2f} GB, {figures['messages']:,} messages of {BODY_BYTES} B")
    print(f"  disk, sequential write and fdatasync  {disk} MB/s, before and after")
    print(f"  plain copy by TCP to disk             {figures['tcp_mb_per_second']:.0f} MB/s")
    for part in ("log", "queues"):
        rate, seconds = figures[f"{part}_mb_per_second"], figures[f"{part}_seconds"]
        print(f"  slave has all in its {part:16} {rate:.0f} MB/s, {seconds:.1f} s")
    cpu = ", ".join(f"{name} {value:.1f}" for name, value in figures["cpu_seconds"].items())
    print(f"  processor time, s                     {cpu}")
    print(f"  taken by the machine's host           {figures['stolen_share']:.0%}")
    print(
        f"goal: {figures['goal_mb_per_second']:.0f} MB/s of the log: "
        f"{'met' if figures['met'] else 'MISSED'}; {figures['ratio_to_disk']:.2f} of the disk"
    )


def copy(slave: Broker, end: int, start: Callable[[], None]) -> dict[str, Any]:
    """Start the slave, and look at it until it has everything."""
    os.sync()
    times = processor_times()
    log_at = 0.0
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(start)
        begin = time.perf_counter()
        deadline = begin + SECONDS_MAX
        while (found := Progress.of(slave)).queues_end < end:
            now = time.perf_counter()
            if not found.log_end:
                begin = now
            elif found.log_end >= end and not log_at:
                log_at = now
            if now > deadline:
                raise SystemExit(f"the slave has {found} of {end} bytes after {SECONDS_MAX:.0f} s")
            time.sleep(LOOK_SECONDS)
        queues_at = time.perf_counter()
        starting.result()
    log_seconds, queues_seconds = (log_at or queues_at) - begin, queues_at - begin
    return {
        "log_seconds": round(log_seconds, 2),
        "log_mb_per_second": round(end / log_seconds / 1e6, 1),
        "queues_seconds": round(queues_seconds, 2),
        "queues_mb_per_second": round(end / queues_seconds / 1e6, 1),
        "stolen_share": round(processor_times().stolen_share_since(times), 4),
    }


def fill(master: Broker, size_bytes: int) -> dict[str, Any]:
    """Messages as a Java producer sends them, put into the store of a broker that does not run: a third of the time
    that sending them takes, and the very same files."""
    begin = time.perf_counter()
    values = {key: str(value) for key, value in master.settings.items()}
    host = pack_host("127.0.0.1", master.port)
    store = MessageStore(
        load_broker_config(values)[0].store,
        store_host=host,
        files=SystemFiles(),
        clock=SystemClock(),
    )
    store.load()
    store.start()
    body, count = os.urandom(BODY_BYTES), 0
    while store.max_physical < size_bytes:
        store.append(messages(count, body, host))
        count += GROUP
    store.close()
    return {"messages": count, "fill_seconds": round(time.perf_counter() - begin, 1)}


def messages(first: int, body: bytes, host: bytes) -> NewMessages:
    numbers = range(first, first + GROUP)
    keys = [f"7F0000010B6C18B4AAC2{number:012X}" for number in numbers]
    zeros = [0] * GROUP
    return NewMessages(
        topics=[TOPIC] * GROUP,
        queue_ids=[number % QUEUES for number in numbers],
        bodies=[body] * GROUP,
        properties=[f"UNIQ_KEY\x01{key}\x02WAIT\x01true\x02TAGS\x01TagA".encode() for key in keys],
        tags_codes=[java_hash("TagA")] * GROUP,
        keys=keys,
        key_counts=None,
        flags=zeros,
        sys_flags=zeros,
        born_timestamps=[1_700_000_000_000] * GROUP,
        born_hosts=[host] * GROUP,
        reconsume_times=zeros,
        prepared_transaction_offsets=zeros,
    )


def write_speed(path: Path, size_bytes: int) -> float:
    """MB/s of the disk alone."""
    os.sync()
    block = os.urandom(BLOCK_BYTES)
    begin = time.perf_counter()
    _write(path, repeat(block, size_bytes // BLOCK_BYTES))
    seconds = time.perf_counter() - begin
    path.unlink()
    return round(size_bytes / seconds / 1e6, 1)


def tcp_speed(files: list[Path], size_bytes: int, path: Path) -> float:
    """MB/s of files that a process sends and this one writes to disk: the system's calls and nothing else."""
    os.sync()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        command = [sys.executable, "-c", SENDER, str(port), str(size_bytes), *map(str, files)]
        begin = time.perf_counter()
        with subprocess.Popen(command) as sender:
            connection, _ = server.accept()
            with connection:
                _write(path, _received(connection))
            seconds = time.perf_counter() - begin
            assert sender.wait() == 0
    assert path.stat().st_size == size_bytes
    path.unlink()
    return round(size_bytes / seconds / 1e6, 1)


SENDER: Final = """
import socket, sys
port, left = map(int, sys.argv[1:3])
with socket.create_connection(("127.0.0.1", port)) as connection:
    for path in sys.argv[3:]:
        with open(path, "rb") as file:
            left -= connection.sendfile(file, 0, left) if left else 0
"""


def _received(connection: socket.socket) -> Iterator[memoryview]:
    buffer = memoryview(bytearray(BLOCK_BYTES))
    while count := connection.recv_into(buffer):
        yield buffer[:count]


def _write(path: Path, blocks: Iterator[bytes] | Iterator[memoryview]) -> None:
    with path.open("wb", buffering=0) as file:
        for block in blocks:
            file.write(block)
        os.fdatasync(file.fileno())


def cpu_of(pid: int) -> float:
    """Processor seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return round((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), 1)


def check_queues(master: Broker, slave: Broker) -> None:
    fields = {"topic": TOPIC}
    ends = [ask(one.port, RequestCode.GET_TOPIC_STATS_INFO, fields) for one in (master, slave)]
    if ends[0] != ends[1] or b'"queueId":3' not in ends[0][1]:
        raise SystemExit(f"the queues of the slave are not those of the master: {ends}")


def check_logs(master: Broker, slave: Broker, end: int) -> None:
    if (place := first_difference(master.store, slave.store, 0, end)) is not None:
        raise SystemExit(f"the copy differs from the master's log at {place}")


if __name__ == "__main__":
    sys.exit(main())
