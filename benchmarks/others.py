"""CometMQ beside other queues that somebody would take instead: 1 KB messages, acknowledged, to one server and back.

    python -m benchmarks.others [--systems cometmq redis nats rabbitmq kafka] [--rounds 3] [--seconds 5] [--quick]

    cometmq         our broker; the load program of the comparison with RocketMQ
    cometmq-batch   the same with batches of 32, which is what the clients of Kafka make of single sends
    redis           Redis streams with an append-only file; redis-benchmark
    nats            NATS JetStream with a file store; a program with its Go client (peers/nats)
    rabbitmq        RabbitMQ, persistent messages and publisher confirms; a program with its Go client (peers/rabbitmq)
    kafka           Apache Kafka, one node, acks=all; its own ProducerPerformance and ConsumerPerformance

Two classes of what an acknowledgement promises:

    cache           the message is in the operating system's cache, and on the disk within about a second
    disk            the message is on the disk

In the first class Kafka and RabbitMQ promise less: when it gets to the disk is left to the operating system. What
RabbitMQ's confirms promise depends on the queue. In `cache` it is a classic queue of version 2, which confirms what it
has written; in `disk` a quorum queue of one member, which syncs its log before it confirms.

256 sends are under way, over 4 connections; Kafka's client has one connection, and gathers up to 64 KB for a request.
RabbitMQ has a queue for each connection, as Kafka has 4 partitions and ours 4 queues.
Each system is driven by the fastest client that comes with it or that its makers publish. Systems take turns, one is up
at a time, and the median of the rounds counts. What cannot be had here is left out, with the reason. Writes
`results/others.json`.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.compare.load import LoadFailed, LoadProgram, NoCompiler, build
from benchmarks.kafka.components import KAFKA_FLAGS, fetch_kafka, kafka, process
from benchmarks.processes.own_servers import servers
from tests.interop.java import MissingComponent, cached, require_tools, run_tool, tail
from tests.interop.servers import accepts, free_ports

HERE: Final = Path(__file__).parent
RESULT: Final = HERE / "results" / "others.json"
BODY: Final = 1024
CONNECTIONS: Final = 4
IN_FLIGHT: Final = 64
TRIAL_MESSAGES: Final = 20_000
TRIAL_MESSAGES_ON_DISK: Final = 2_000
READY_SECONDS_MAX: Final = 60.0
RUN_SECONDS_MAX: Final = 300.0
CACHE, DISK = "cache", "disk"
CLASSES: Final = (CACHE, DISK)
# What of Debian's packages is not part of every machine.
REDIS_PACKAGES: Final = (
    *("redis-server", "redis-tools", "libhiredis0.14", "liblua5.1-0", "libjemalloc2", "liblzf1"),
    *("lua-bitop", "lua-cjson", "libatomic1"),
)
NATS_SERVER: Final = "github.com/nats-io/nats-server/v2@v2.15.2"
# RabbitMQ, what it depends on of Erlang, and what that depends on.
RABBITMQ_PACKAGES: Final = (
    *("rabbitmq-server", "erlang-base", "erlang-asn1", "erlang-crypto", "erlang-eldap"),
    *("erlang-inets", "erlang-mnesia", "erlang-os-mon", "erlang-parsetools", "erlang-public-key"),
    *("erlang-runtime-tools", "erlang-ssl", "erlang-syntax-tools", "erlang-tools", "erlang-xmerl"),
)
NAMES: Final = ("cometmq", "cometmq-batch", "redis", "nats", "rabbitmq", "kafka")


class System:
    """One that runs. ``send`` and ``receive`` give messages a second."""

    def __init__(self, send: Callable[[int], float], receive: Callable[[int], float]) -> None:
        self.send = send
        self.receive = receive


Start = Callable[[Path, str], contextlib.AbstractContextManager[System]]


def main() -> int:
    wish = _parse()
    starts = _available(wish.systems)
    figures: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory(prefix="cometmq-others-", dir=wish.directory) as scratch:
        for number in range(wish.rounds):
            for kind in CLASSES:
                for name, start in starts.items():
                    directory = Path(scratch) / f"{number}-{kind}-{name}"
                    directory.mkdir()
                    sent, received = _round(start, directory, kind, wish.seconds)
                    shutil.rmtree(directory, ignore_errors=True)
                    row = figures.setdefault(name, {})
                    row.setdefault(f"send {kind}", []).append(sent)
                    row.setdefault(f"receive {kind}", []).append(received)
                    print(
                        f"{name:14} {kind:6} {sent:>10,.0f} sends/s {received:>10,.0f} received/s"
                    )
    _tell(figures)
    if not wish.quick:
        RESULT.write_text(json.dumps(figures, indent=1) + "\n")
        print(f"written: {RESULT}")
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--systems", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="about, of each send and receive"
    )
    parser.add_argument("--quick", action="store_true", help="one short round, nothing written")
    parser.add_argument("--directory", type=Path, help="where the stores go while it runs")
    wish = parser.parse_args()
    if wish.quick:
        wish.rounds, wish.seconds = 1, 1.0
    return wish


def _available(names: Sequence[str]) -> dict[str, Start]:
    makers: dict[str, Callable[[], Start]] = {
        "cometmq": lambda: _cometmq(1),
        "cometmq-batch": lambda: _cometmq(32),
        "redis": _redis,
        "nats": _nats,
        "rabbitmq": _rabbitmq,
        "kafka": _kafka,
    }
    found: dict[str, Start] = {}
    for name in names:
        try:
            found[name] = makers[name]()
        except (MissingComponent, NoCompiler) as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return found


def _round(start: Start, directory: Path, kind: str, seconds: float) -> tuple[float, float]:
    with start(directory, kind) as system:
        trial = TRIAL_MESSAGES if kind == CACHE else TRIAL_MESSAGES_ON_DISK
        # It warms, and tells how many there is time for.
        count = max(trial, int(system.send(trial) * seconds))
        sent = system.send(count)
        received = system.receive(trial + count)
    return sent, received


def _tell(figures: dict[str, dict[str, list[float]]]) -> None:
    columns = [f"{what} {kind}" for kind in CLASSES for what in ("send", "receive")]
    print("\n| " + " | ".join(["messages/s", *columns]) + " |")
    print("| --- |" + " ---: |" * len(columns))
    for name, row in figures.items():
        medians = [f"{statistics.median(row[column]):,.0f}" for column in columns]
        print("| " + " | ".join([name, *medians]) + " |")


# Ours.


def _cometmq(batch: int) -> Start:
    program = build()

    @contextlib.contextmanager
    def start(directory: Path, kind: str) -> Iterator[System]:
        flush = "SYNC_FLUSH" if kind == DISK else "ASYNC_FLUSH"
        with servers(directory, queues=4, settings=f"flushDiskType={flush}\n") as running:
            target = ("--address", running.broker, "--topic", "Load")
            _until(lambda: _sends(program, running.broker), directory)
            in_flight = IN_FLIGHT if batch == 1 else IN_FLIGHT // 4
            flags = ("--batch", str(batch), "--in-flight", str(in_flight), "--busy-ok")

            def send(count: int) -> float:
                arguments = (*target, *flags, "--count", str(count))
                return float(program.run("send", arguments, seconds=RUN_SECONDS_MAX)["per_second"])

            def receive(count: int) -> float:
                # It reads the backlog again and again; a second is enough to know its rate.
                return float(program.run("pull", target, seconds=2)["per_second"])

            yield System(send, receive)

    return start


def _sends(program: LoadProgram, address: str) -> bool:
    try:
        program.run("send", ("--address", address, "--topic", "Ready", "--count", "1"), seconds=1)
    except LoadFailed:
        return False
    return True


# Redis.


def _redis() -> Start:
    root = _unpacked("redis", REDIS_PACKAGES)
    library = next(root.glob("usr/lib/*/libhiredis.so.*")).parent
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library)}

    @contextlib.contextmanager
    def start(directory: Path, kind: str) -> Iterator[System]:
        (port,) = free_ports(0)
        sync = "always" if kind == DISK else "everysec"
        flags = ["--port", str(port), "--dir", str(directory), "--save", "", "--appendonly", "yes"]
        command = [str(root / "usr" / "bin" / "redis-server"), *flags, "--appendfsync", sync]
        command = ["env", f"LD_LIBRARY_PATH={library}", *command]

        def load(count: int, pipelined: int, *redis_command: str) -> float:
            program = [str(root / "usr" / "bin" / "redis-benchmark"), "-p", str(port), "--csv"]
            amount = ["-c", str(CONNECTIONS), "-P", str(pipelined), "-n", str(count)]
            said = _said([*program, *amount, *redis_command], environment)
            return redis_rate(said)

        def send(count: int) -> float:
            return load(count, IN_FLIGHT, "XADD", "load", "*", "body", "x" * BODY)

        def receive(count: int) -> float:
            _said(
                [
                    str(root / "usr" / "bin" / "redis-cli"),
                    "-p",
                    str(port),
                    "XGROUP",
                    "CREATE",
                    "load",
                    "group",
                    "0",
                ],
                environment,
            )
            # Read is acknowledged here: redis-benchmark cannot name what it has read.
            reads = (
                "XREADGROUP",
                "GROUP",
                "group",
                "one",
                "COUNT",
                "32",
                "NOACK",
                "STREAMS",
                "load",
                ">",
            )
            return 32 * load(count // 32, 1, *reads)

        with process(command, directory):
            _until(lambda: accepts(port), directory)
            yield System(send, receive)

    return start


def redis_rate(said: str) -> float:
    """Requests a second, from what redis-benchmark --csv prints."""
    rows = list(csv.DictReader(said.splitlines()))
    return float(rows[-1]["rps"])


# NATS.


def _nats() -> Start:
    require_tools(("go",))
    own = HERE / "peers" / "nats"

    def fill(target: Path) -> None:
        settings = [f"GOBIN={target}", "GOFLAGS=-mod=mod"]
        run_tool(["env", *settings, "go", "install", NATS_SERVER], seconds_max=600)
        run_tool(["go", "build", "-o", str(target / "load"), "."], seconds_max=600, cwd=own)

    root = cached("nats", [own / "main.go", own / "go.mod"], fill, salt=NATS_SERVER)

    @contextlib.contextmanager
    def start(directory: Path, kind: str) -> Iterator[System]:
        (port,) = free_ports(0)
        sync = "always" if kind == DISK else '"1s"'
        settings = directory / "nats.conf"
        settings.write_text(
            f'listen: "127.0.0.1:{port}"\njetstream {{ store_dir: "{directory}/store", sync_interval: {sync} }}\n'
        )

        def load(mode: str, count: int) -> float:
            return _peer(root / "load", mode, f"nats://127.0.0.1:{port}", count)

        with process([str(root / "nats-server"), "-c", str(settings)], directory):
            _until(lambda: accepts(port), directory)
            yield System(lambda count: load("send", count), lambda count: load("receive", count))

    return start


# RabbitMQ.


def _rabbitmq() -> Start:
    require_tools(("go",))
    own = HERE / "peers" / "rabbitmq"
    packages = _unpacked("rabbitmq", RABBITMQ_PACKAGES)

    def fill(target: Path) -> None:
        run_tool(["go", "build", "-o", str(target / "load"), "."], seconds_max=600, cwd=own)

    program = cached("rabbitmq-load", [own / name for name in ("main.go", "go.mod")], fill) / "load"
    (server,) = packages.glob("usr/lib/rabbitmq/lib/*/sbin/rabbitmq-server")

    @contextlib.contextmanager
    def start(directory: Path, kind: str) -> Iterator[System]:
        port, names_port, own_port = free_ports(0, 1, 2)
        queues = "quorum" if kind == DISK else "classic"
        settings = rabbitmq_settings(packages, directory, names_port, own_port)
        (directory / "bin").mkdir()
        (directory / "bin" / "erl").symlink_to(f"{settings['BINDIR']}/erlexec")
        (directory / "rabbitmq.conf").write_text(f"listeners.tcp.1 = 127.0.0.1:{port}\n")
        (directory / "enabled_plugins").write_text("[].\n")
        environment = ["env", "-i", *(f"{name}={value}" for name, value in settings.items())]
        names = ["epmd", "-port", str(names_port), "-address", "127.0.0.1"]

        def load(mode: str, count: int) -> float:
            return _peer(program, mode, f"amqp://guest:guest@127.0.0.1:{port}/", count, queues)

        # The server would start one by itself, and leave it behind.
        with process([*environment, *names], directory):
            _until(lambda: accepts(names_port), directory)
            with process([*environment, str(server)], directory):
                _until(lambda: accepts(port), directory)
                yield System(
                    lambda count: load("send", count), lambda count: load("receive", count)
                )

    return start


def rabbitmq_settings(
    packages: Path, directory: Path, names_port: int, own_port: int
) -> dict[str, str]:
    """The environment of a server whose Erlang is not where it was built for, and that writes to one directory only.

    Args:
        names_port: where Erlang's port mapper is, epmd.
        own_port: where the server waits for others of a cluster, which do not come.
    """
    erlang = packages / "usr" / "lib" / "erlang"
    (programs,) = erlang.glob("erts-*/bin")
    return {
        "PATH": f"{directory / 'bin'}:{programs}:{os.environ['PATH']}",
        "LANG": "C.UTF-8",
        # For the cookie.
        "HOME": str(directory),
        # What Debian's script `erl` sets, to paths of its own.
        "ROOTDIR": str(erlang),
        "BINDIR": str(programs),
        "EMU": "beam",
        "PROGNAME": "erl",
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": str(names_port),
        # The script then becomes the server, instead of waiting for it.
        "RUNNING_UNDER_SYSTEMD": "true",
        "RABBITMQ_NODENAME": "rabbit@localhost",
        "RABBITMQ_DIST_PORT": str(own_port),
        # Ctrl-C is for the benchmark, which then ends the server.
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
            "+B i -start_epmd false -kernel inet_dist_use_interface {127,0,0,1}"
        ),
        "RABBITMQ_CONF_ENV_FILE": str(directory / "none.conf"),
        "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq.conf"),
        "RABBITMQ_ADVANCED_CONFIG_FILE": str(directory / "none.config"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "enabled_plugins"),
        "RABBITMQ_MNESIA_BASE": str(directory / "store"),
        "RABBITMQ_LOG_BASE": str(directory / "log"),
        "RABBITMQ_LOGS": "-",
    }


# Kafka.


def _kafka() -> Start:
    jars = fetch_kafka()

    @contextlib.contextmanager
    def start(directory: Path, kind: str) -> Iterator[System]:
        more = "log.flush.interval.messages=1\n" if kind == DISK else ""
        with kafka(directory / "kafka", more) as address:
            java = ["java", *KAFKA_FLAGS, "-cp", str(jars / "*")]

            def send(count: int) -> float:
                target = [f"bootstrap.servers={address}", "acks=all", "batch.size=65536"]
                amount = ["--num-records", str(count), "--record-size", str(BODY)]
                flags = [
                    "--topic",
                    "Load",
                    *amount,
                    "--throughput",
                    "-1",
                    "--producer-props",
                    *target,
                ]
                tool = "org.apache.kafka.tools.ProducerPerformance"
                return kafka_sent(_said([*java, tool, *flags]))

            def receive(count: int) -> float:
                flags = ["--bootstrap-server", address, "--topic", "Load", "--messages", str(count)]
                tool = "org.apache.kafka.tools.ConsumerPerformance"
                return kafka_received(_said([*java, tool, *flags]))

            yield System(send, receive)

    return start


def kafka_sent(said: str) -> float:
    """Records a second, from the last line of ProducerPerformance."""
    return float(re.findall(r"([\d.]+) records/sec", said)[-1])


def kafka_received(said: str) -> float:
    """Records a second while it fetched, from the table of ConsumerPerformance."""
    titles, values = (
        [cell.strip() for cell in line.split(",")]
        for line in said.splitlines()
        if line.count(",") >= 9
    )
    return float(dict(zip(titles, values, strict=True))["fetch.nMsg.sec"])


# What they have in common.


def _unpacked(name: str, packages: Sequence[str]) -> Path:
    """The directory with Debian's packages, unpacked beside each other and not installed."""
    require_tools(("apt-get", "dpkg"))

    def fill(target: Path) -> None:
        run_tool(["apt-get", "download", "-qq", *packages], seconds_max=300, cwd=target)
        for package in target.glob("*.deb"):
            run_tool(["dpkg", "-x", str(package), str(target)], seconds_max=60)
            package.unlink()

    return cached(name, [], fill, salt=" ".join(packages))


def _peer(program: Path, mode: str, url: str, count: int, *more: str) -> float:
    """Messages a second that one of our own programs with another queue's client tells."""
    sizes = [str(number) for number in (count, BODY, CONNECTIONS, IN_FLIGHT)]
    result = json.loads(_said([str(program), mode, url, *sizes, *more]))
    if result["failed"]:
        raise RuntimeError(f"{program}: {result['failed']} messages were refused or lost")
    return float(result["per_second"])


def _until(is_ready: Callable[[], bool], directory: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS_MAX
    while not is_ready():
        if time.monotonic() > deadline:
            raise SystemExit(f"a server did not get ready: {tail(directory / 'output.log')}")
        time.sleep(0.05)


def _said(command: list[str], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=environment,
        timeout=RUN_SECONDS_MAX,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command[:2])} failed: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
