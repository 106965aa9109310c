"""What sends notice while a consumer reads old messages that are no longer in memory.

    python benchmarks/cold_reads.py [--before CHECKOUT] [--disk-mb 125] [--queues 4] [--rounds 5] [--gigabytes 2]

A broker on loopback with so many gigabytes of 1 KB messages. It is stopped, and the old messages leave the page cache.
Then it starts again, and the load program sends 2,000 messages of 1 KB a second, which four connections receive at
once. It does so twice: alone, and while a second load program pulls the old messages from the first on. A reply counts
from the moment when its send was due, however late that was. Shown are the 99th and 99.9th percentile and the maximum
of the replies in milliseconds, which share of the time the broker's event loop waited for the disk, and how fast the
old messages came. The waiting does not depend on what else the machine does; the replies do.

``--disk-mb`` limits what the broker may read from the disk a second, by a cgroup of its own, for which it has to be
root: a network disk gives 100 to 200 MB/s. With ``--before``, the broker of another checkout (with its own ``.venv``)
takes turns with this one on the same store. Figures are medians of the rounds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, median
from threading import Event, Thread
from typing import Any, Final

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent)]

from benchmarks.compare.load import LoadProgram, build  # noqa: E402
from tests.interop.servers import ServerCommands  # noqa: E402
from tests.interop.systems import Broker  # noqa: E402

RATE: Final = 2000
BODY_BYTES: Final = 1024
RECORD_BYTES: Final = 1230
"""About what one takes in the log."""
ALONE_SECONDS: Final = 3.0
READ_SECONDS_MAX: Final = 4.0
SETTLE_SECONDS: Final = 0.7
LOOK_SECONDS: Final = 0.002
FIGURES: Final = ("p99", "p999", "max")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--before", type=Path, help="another checkout, to compare with")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--queues", type=int, default=4, help="of the topic that is read")
    parser.add_argument("--disk-mb", type=int, help="most MB/s that the broker reads from disk")
    parser.add_argument("--directory", type=Path, help="where the store goes while it runs")
    arguments = parser.parse_args()
    size_bytes = int(arguments.gigabytes * 1e9)
    checkouts = {"now": HERE.parent}
    if arguments.before is not None:
        checkouts = {"before": arguments.before.resolve(), **checkouts}
    with tempfile.TemporaryDirectory(prefix="cometmq-cold-", dir=arguments.directory) as made:
        needed, free = size_bytes + (6 << 30), shutil.disk_usage(made).free
        if free < needed:
            print(f"{needed / 1e9:.0f} GB of disk are needed, {made} has {free / 1e9:.0f}")
            return 3
        with slow_disk(Path(made), arguments.disk_mb) as limit:
            figures = measure(
                Path(made), checkouts, size_bytes, arguments.queues, arguments.rounds, limit
            )
    show(figures)
    return 0


def measure(
    directory: Path,
    checkouts: dict[str, Path],
    size_bytes: int,
    queues: int,
    rounds: int,
    limit: Callable[[int], None],
) -> dict[str, list[dict[str, Any]]]:
    load = build()
    count = size_bytes // RECORD_BYTES
    broker = Broker([], directory, "bench")
    try:
        broker.start(commands_of(HERE.parent))
        old = ["--address", broker.address, "--topic", "Old", "--queues", str(queues)]
        load.run("send", [*old, "--count", str(count)], seconds=300)
        broker.stop()
        figures: dict[str, list[dict[str, Any]]] = {name: [] for name in checkouts}
        for number in range(rounds):
            turn = list(checkouts.items())
            for name, checkout in turn if number % 2 == 0 else reversed(turn):
                evict(broker.store)
                broker.start(commands_of(checkout))
                limit(broker.pid)
                figures[name].append(one_round(load, broker, old, count))
                broker.stop()
        return figures
    finally:
        broker.kill()


def one_round(load: LoadProgram, broker: Broker, old: list[str], count: int) -> dict[str, Any]:
    new = [
        "--address",
        broker.address,
        "--topic",
        "New",
        "--rate",
        str(RATE),
        "--body",
        str(BODY_BYTES),
    ]
    with waiting(broker.pid) as waited_alone:
        alone = load.run("latency", new, seconds=ALONE_SECONDS)
    with ThreadPoolExecutor(1) as pool:
        seconds = READ_SECONDS_MAX + SETTLE_SECONDS
        sending = pool.submit(load.run, "latency", new, seconds=seconds)
        time.sleep(SETTLE_SECONDS)
        with waiting(broker.pid) as waited_beside:
            pulled = load.run("pull", [*old, "--connections", "1"], seconds=READ_SECONDS_MAX)
        beside = sending.result()
    read = pulled["received"]
    return {
        "alone": alone["reply_us"] | {"waiting": mean(waited_alone)},
        "beside": beside["reply_us"] | {"waiting": mean(waited_beside)},
        "mb_per_second": read * RECORD_BYTES / 1e6 / pulled["seconds"],
        "is_cold": read < count,
    }


@contextmanager
def waiting(pid: int) -> Iterator[list[bool]]:
    """Looks again and again whether the main thread of a process, its event loop, waits for the disk."""
    stat = Path(f"/proc/{pid}/task/{pid}/stat")
    seen: list[bool] = [False]
    is_over = Event()

    def look() -> None:
        while not is_over.wait(LOOK_SECONDS):
            seen.append(stat.read_text().rpartition(")")[2].split()[0] == "D")

    thread = Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        is_over.set()
        thread.join()


@contextmanager
def slow_disk(directory: Path, megabytes: int | None) -> Iterator[Callable[[int], None]]:
    """Limits a process that is named, as long as this is open."""
    if megabytes is None:
        yield lambda pid: None
        return
    group = Path("/sys/fs/cgroup/blkio") / directory.name
    group.mkdir()
    try:
        device = directory.stat().st_dev
        limit = f"{os.major(device)}:{os.minor(device)} {megabytes * 1_000_000}"
        (group / "blkio.throttle.read_bps_device").write_text(limit)
        yield lambda pid: (group / "cgroup.procs").write_text(str(pid)) and None
    finally:
        group.rmdir()


def commands_of(checkout: Path) -> ServerCommands:
    binaries = checkout / ".venv" / "bin"
    return ServerCommands(
        (str(binaries / "mqnamesrv"),),
        (str(binaries / "mqbroker"),),
        {"PYTHONPATH": str(checkout / "src")},
    )


def evict(store: Path) -> None:
    """Let the page cache forget what is read, but not what a broker that has run for a while appends to."""
    os.sync()
    log = sorted((store / "commitlog").iterdir())[:-1]
    for path in [*log, *(store / "consumequeue" / "Old").rglob("0*")]:
        if path.is_file():
            fd = os.open(path, os.O_RDONLY)
            try:
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(fd)


def show(figures: dict[str, list[dict[str, Any]]]) -> None:
    print(f"replies to {RATE:,} sends of {BODY_BYTES} B a second, ms")
    print(
        f"{'':8}{'':8}"
        + "".join(f"{name:>9}" for name in FIGURES)
        + f"{'waiting':>9}{'old MB/s':>10}"
    )
    for name, found in figures.items():
        for what in ("alone", "beside"):
            values = [median(one[what][figure] for one in found) / 1000 for figure in FIGURES]
            line = f"{name:8}{what:8}" + "".join(f"{value:9.2f}" for value in values)
            line += f"{median(one[what]['waiting'] for one in found):9.1%}"
            rate = median(one["mb_per_second"] for one in found)
            print(line + (f"{rate:10.0f}" if what == "beside" else ""))
            each = " ".join(f"{one[what]['p99'] / 1000:.1f}" for one in found)
            print(f"{'':16}p99 of each round: {each}")
    if not all(one["is_cold"] for found in figures.values() for one in found):
        print("the end of the old messages was reached, so that some were read from memory")


if __name__ == "__main__":
    sys.exit(main())
