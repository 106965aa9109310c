"""How throughput and p99 change as something grows: connections, topics, queues, parked consumers, backlog, body size.

    python -m benchmarks.growth                          all curves: about half an hour and 25 GB of disk
    python -m benchmarks.growth topics parked            some of them; the others stay in the results as they were
    python -m benchmarks.growth --quick                  a few points of a second each
    python -m benchmarks.growth backlog --gigabytes 4    no more disk than that

Each curve has a broker of its own. Its points are measured in rounds, in turns from the smallest to the largest, and
the median of a point counts, so that the machine's mood does not look like a slope. p99 is that of replies while the
throughput is at its maximum with 256 sends under way. Writes `benchmarks/results/growth.json` and `growth.svg`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.compare.load import LoadFailed, LoadProgram, NoCompiler, build
from benchmarks.parts.curves import Panel, Point, svg
from benchmarks.processes.own_servers import Servers, servers

from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.frame import encode_bytes

RESULT: Final = Path(__file__).parent / "results" / "growth.json"
IN_FLIGHT: Final = 256
READY_SECONDS_MAX: Final = 30.0
WARM_SECONDS: Final = 2.0
GIGABYTE: Final = 10**9
PARKED_QUEUES: Final = 1000
PARKED_CONNECTIONS: Final = 100
PARKED_MILLIS: Final = 600_000
BACKLOG_BODY: Final = 4096
FILL_SECONDS_MAX: Final = 500.0
LIMITS: Final = (
    "serverConnectionsMax=60000\nserverConnectionsPerAddressMax=60000\nbrokerFastFailureEnable=false\n"
    "fileReservedTime=720\nautoCreatePerSecondMax=1000000\nautoCreateGroupsMax=1000000\n"
)


@dataclass(slots=True)
class Bench:
    """What a point needs: who is loaded, by what, and for how long."""

    program: LoadProgram
    running: Servers
    seconds: float
    backlog_messages: int = 0

    def send(self, *flags: str, seconds: float | None = None) -> dict[str, Any]:
        """Raises LoadFailed."""
        return self._run("send", *flags, seconds=seconds)

    def pull(self, *flags: str) -> dict[str, Any]:
        """Raises LoadFailed."""
        return self._run("pull", *flags)

    def _run(self, mode: str, *flags: str, seconds: float | None = None) -> dict[str, Any]:
        target = ("--address", self.running.broker)
        return self.program.run(mode, (*target, *flags), seconds=seconds or self.seconds)


@dataclass(frozen=True, slots=True)
class Curve:
    """What grows.

    Args:
        steps: how far, from small to large.
        measure: one point.
        ready: what a step needs before it is measured.
        in_turns: whether all steps are measured round after round; else each has its rounds in a row.
    """

    title: str
    x_title: str
    steps: Sequence[float]
    measure: Callable[[Bench, float], Point]
    ready: Callable[[Bench, float], None] | None = None
    in_turns: bool = True
    y_title: str = "sends of 1 KB a second"


def curves(gigabytes: float) -> dict[str, Curve]:
    backlog = [size for size in (0.25, 1, 2, 5, 10, 20) if size <= gigabytes] or [gigabytes]
    return {
        "connections": Curve(
            "connections", "connections", (1, 4, 16, 64, 256, 1000, 2000), _of_connections
        ),
        "topics": Curve(
            "topics",
            "topics with one queue each",
            (1, 10, 100, 1000, 10_000, 50_000),
            _of_topics,
            _fill_topics,
        ),
        "queues": Curve(
            "queues", "queues of one topic", (1, 4, 16, 64, 256, 1000), _of_queues, _fill_queues
        ),
        "parked": Curve(
            "parked consumers",
            "pulls that wait for other topics",
            (1, 10, 100, 1000, 10_000, 20_000),
            _of_parked,
        ),
        "backlog": Curve(
            "backlog: sends",
            "gigabytes in the log",
            backlog,
            _sends_on_backlog,
            _fill_backlog,
            in_turns=False,
        ),
        "backlog-pulls": Curve(
            "backlog: pulls from its beginning",
            "gigabytes in the log",
            backlog,
            _pulls_of_backlog,
            _fill_backlog,
            in_turns=False,
            y_title="messages of 4 KB a second",
        ),
        "body": Curve(
            "body size",
            "bytes",
            (16, 128, 1024, 8192, 65_536, 262_144, 1 << 20),
            _of_body,
            y_title="sends a second",
        ),
    }


def main() -> int:
    wish = _parse()
    try:
        program = build()
    except NoCompiler as error:
        print(f"benchmark cannot run: {error}", file=sys.stderr)
        return 3
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    known = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    for name, curve in curves(wish.gigabytes).items():
        if name in wish.curves or not wish.curves:
            known[name] = _follow(program, name, curve, wish)
    chosen = {name: known[name] for name in curves(wish.gigabytes) if name in known}
    out = RESULT.with_name("growth-quick.json") if wish.quick else RESULT
    out.write_text(json.dumps(chosen, indent=1) + "\n")
    out.with_suffix(".svg").write_text(svg([_panel(one) for one in chosen.values()]))
    print(f"written: {out} and .svg")
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("curves", nargs="*", metavar="CURVE", help=", ".join(curves(20)))
    parser.add_argument("--quick", action="store_true", help="a few points, a second each")
    parser.add_argument("--rounds", type=int, help="of each point (3; quick: 1)")
    parser.add_argument("--seconds", type=float, help="length of a round (3; quick: 1)")
    parser.add_argument("--gigabytes", type=float, default=20.0, help="of backlog, at most")
    parser.add_argument("--directory", type=Path, help="where the stores go while it runs")
    wish = parser.parse_args()
    if unknown := set(wish.curves) - set(curves(20)):
        parser.error(f"no such curve: {', '.join(sorted(unknown))}")
    wish.rounds = wish.rounds or (1 if wish.quick else 3)
    wish.seconds = wish.seconds or (1.0 if wish.quick else 3.0)
    return wish


def _follow(
    program: LoadProgram, name: str, curve: Curve, wish: argparse.Namespace
) -> dict[str, Any]:
    steps = [*curve.steps]
    if wish.quick:
        steps = [*dict.fromkeys((steps[0], steps[len(steps) // 2], steps[-2]))]
    rounds: dict[float, list[Point]] = {step: [] for step in steps}
    with _broker(program, wish) as bench:
        for number in range(wish.rounds if curve.in_turns else 1):
            for step in steps:
                if curve.ready is not None and number == 0:
                    curve.ready(bench, step)
                for _ in range(1 if curve.in_turns else wish.rounds):
                    point = curve.measure(bench, step)
                    rounds[step].append(point)
                    p99 = "" if point.p99_ms is None else f", p99 {point.p99_ms:.1f} ms"
                    print(f"{name:14} {step:>9,g}  {point.per_second:>10,.0f}/s{p99}", flush=True)
    return {
        "title": curve.title,
        "x_title": curve.x_title,
        "y_title": curve.y_title,
        "points": [_median(rounds[step]) for step in steps],
        "rounds": [point for step in steps for point in rounds[step]],
    }


def _median(points: list[Point]) -> Point:
    delays = [point.p99_ms for point in points if point.p99_ms is not None]
    return Point(
        points[0].x,
        statistics.median(point.per_second for point in points),
        statistics.median(delays) if delays else None,
    )


def _panel(kept: dict[str, Any]) -> Panel:
    points = [Point(*point) for point in kept["points"]]
    return Panel(kept["title"], kept["x_title"], points, kept["y_title"])


@contextlib.contextmanager
def _broker(program: LoadProgram, wish: argparse.Namespace) -> Iterator[Bench]:
    directory = tempfile.mkdtemp(prefix="cometmq-growth-", dir=wish.directory)
    try:
        with servers(Path(directory), queues=4, settings=LIMITS) as running:
            bench = Bench(program, running, wish.seconds)
            _until_ready(bench)
            bench.send("--topic", "Warm", seconds=WARM_SECONDS)
            yield bench
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _until_ready(bench: Bench) -> None:
    deadline = time.monotonic() + READY_SECONDS_MAX
    while True:
        try:
            bench.send("--topic", "Ready", "--count", "1", seconds=1)
        except LoadFailed:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def _point(x: float, result: dict[str, Any]) -> Point:
    return Point(x, result["per_second"], result["reply_us"]["p99"] / 1000)


def _of_connections(bench: Bench, count: float) -> Point:
    in_flight = max(1, IN_FLIGHT // int(count))
    flags = ("--connections", f"{count:.0f}", "--in-flight", str(in_flight))
    return _point(count, bench.send("--topic", "Connections", *flags))


def _topic_flags(count: float) -> tuple[str, ...]:
    return ("--topic", f"Topics{count:.0f}", "--topics", f"{count:.0f}", "--queues", "1")


def _fill_topics(bench: Bench, count: float) -> None:
    """The first message of a queue makes its files: a cost of its own."""
    bench.send(*_topic_flags(count), "--count", f"{2 * count:.0f}", seconds=FILL_SECONDS_MAX)


def _of_topics(bench: Bench, count: float) -> Point:
    return _point(count, bench.send(*_topic_flags(count), "--no-create"))


def _queue_flags(count: float) -> tuple[str, ...]:
    return ("--topic", f"Queues{count:.0f}", "--queues", f"{count:.0f}")


def _fill_queues(bench: Bench, count: float) -> None:
    bench.send(*_queue_flags(count), "--count", f"{2 * count:.0f}", seconds=FILL_SECONDS_MAX)


def _of_queues(bench: Bench, count: float) -> Point:
    return _point(count, bench.send(*_queue_flags(count), "--no-create"))


def _of_body(bench: Bench, size: float) -> Point:
    flags = ("--body", f"{size:.0f}", "--in-flight", "16")
    return _point(size, bench.send("--topic", "Bodies", *flags))


def _fill_backlog(bench: Bench, gigabytes: float) -> None:
    """Up to so many gigabytes in all; the steps before have filled a part."""
    missing = int(gigabytes * GIGABYTE / BACKLOG_BODY) - bench.backlog_messages
    flags = ("--body", str(BACKLOG_BODY), "--count", str(missing))
    bench.send("--topic", "Backlog", *flags, seconds=FILL_SECONDS_MAX)
    bench.backlog_messages += missing


def _sends_on_backlog(bench: Bench, gigabytes: float) -> Point:
    return _point(gigabytes, bench.send("--topic", "New"))


def _pulls_of_backlog(bench: Bench, gigabytes: float) -> Point:
    flags = ("--topic", "Backlog", "--body", str(BACKLOG_BODY))
    return _point(gigabytes, bench.pull(*flags, "--connections", "4"))


def _of_parked(bench: Bench, count: float) -> Point:
    return asyncio.run(_sends_beside_parked(bench, int(count)))


async def _sends_beside_parked(bench: Bench, count: int) -> Point:
    # Its queues are there before the pulls are.
    create = ("--topic", "Parked", "--queues", str(PARKED_QUEUES), "--count", "1")
    await asyncio.to_thread(bench.send, *create)
    async with _parked(bench.running.broker, count):
        result = await asyncio.to_thread(bench.send, "--topic", "Beside")
    return _point(count, result)


@contextlib.asynccontextmanager
async def _parked(address: str, count: int) -> AsyncIterator[None]:
    """Pulls that wait at the end of their queues, over a hundred connections, for as long as this lasts."""
    host, _, port = address.rpartition(":")
    writers = []
    try:
        for first in range(min(count, PARKED_CONNECTIONS)):
            numbers = range(first, count, PARKED_CONNECTIONS)
            reader, writer = await asyncio.open_connection(host, int(port))
            writers.append(writer)
            writer.write(b"".join(_waiting_pull(number) for number in numbers))
            # Answered after all that came before it on this connection: those are parked then.
            writer.write(encode_bytes(Command(RequestCode.HEART_BEAT, body=b'{"clientID":"p"}')))
            await asyncio.wait_for(reader.read(1), READY_SECONDS_MAX)
        yield
    finally:
        for writer in writers:
            writer.transport.abort()


def _waiting_pull(number: int) -> bytes:
    fields = {
        "consumerGroup": f"parked-{number}",
        "topic": "Parked",
        # The first queue has the one message.
        "queueId": str(1 + number % (PARKED_QUEUES - 1)),
        "queueOffset": "0",
        "maxMsgNums": "32",
        "sysFlag": "6",
        "commitOffset": "0",
        "suspendTimeoutMillis": str(PARKED_MILLIS),
        "subscription": "*",
        "subVersion": "1",
        "expressionType": "TAG",
    }
    return encode_bytes(Command(RequestCode.PULL_MESSAGE, fields, opaque=number))


if __name__ == "__main__":
    sys.exit(main())
