"""Our client beside RocketMQ's: one process each, 1 KB bodies, figures in one table.

    python benchmarks/clients.py [--quick] [--clients cometmq java grpc-python]

    cometmq         ours, against our broker
    java            RocketMQ's Java client 4.9.8, against the same broker
    grpc-python     rocketmq-python-client 5.1.2, the only other one for Python. It speaks gRPC, so it needs RocketMQ's
                    proxy, in front of RocketMQ's broker (both 5.5.0)

    send-64         sends that wait for their answer, 64 at a time: tasks (ours) or callbacks
    send-1          sends of one thread, one after the other
    batch-32        batches of 32 messages, 4 at a time; the gRPC client has none
    push            a listener that does nothing takes a backlog
    lite-pull       a backlog is polled (gRPC: received and acknowledged)
    latency         from the send to the listener, one message every 10 ms

The clients go one after the other; the best of the rounds counts. ``cpu_us`` is the CPU time of the client's process
for a message. A client that cannot be had here (no Java, no Maven, no package index) is left out, with the reason.
Writes ``results/clients.json``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import client_consume  # noqa: E402
import client_pull  # noqa: E402
from benchmarks.compare.systems import JAVA_BROKER_FLAGS  # noqa: E402
from tests.interop.java import (  # noqa: E402
    JAVAC_SECONDS_MAX,
    QUIET_LOGBACK,
    MissingComponent,
    cached,
    clean_environment,
    fetch_jars,
    require_tools,
    run_tool,
)
from tests.interop.servers import ServerCommands, accepts, ask, free_ports  # noqa: E402
from tests.interop.systems import Broker, NameServer, commands_of  # noqa: E402

from cometmq.client.aio import Producer  # noqa: E402

PEERS = HERE / "peers"
RESULT = HERE / "results" / "clients.json"
JAVA_CLIENT = "4.9.8"
GRPC_CLIENT = "rocketmq-python-client==5.1.2"
CASES = ("send-64", "send-1", "batch-32", "push", "lite-pull", "latency")
QUEUES = 4
BODY_BYTES = 1024
CREATE_TOPIC = 17
TOPICS = ("ClientSend", "ClientConsume", "ClientPull", "ClientConsumeLatency")
CLIENT_SECONDS_MAX = 240
READY_SECONDS_MAX = 120
# What the gRPC client reads in its time; ours fills it through the broker's own port.
GRPC_BACKLOG = 20_000

Figures = dict[str, dict[str, Any]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="short rounds, for a first look")
    parser.add_argument("--clients", nargs="+", choices=tuple(MEASURES), default=tuple(MEASURES))
    arguments = parser.parse_args()
    seconds, rounds, messages = (1.0, 1, 40_000) if arguments.quick else (2.0, 3, 120_000)
    found: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory(prefix="cometmq-clients-") as scratch:
        for name in arguments.clients:
            print(f"{name} ...", file=sys.stderr, flush=True)
            try:
                found[name] = MEASURES[name](Path(scratch) / name, seconds, rounds, messages)
            except MissingComponent as reason:
                print(f"{name} is left out: {reason}", file=sys.stderr)
    print(table(found))
    if not arguments.quick:
        result = {
            "body_bytes": BODY_BYTES,
            "round_seconds": seconds,
            "rounds": rounds,
            "backlog": messages,
            "cores": os.cpu_count(),
            "python": sys.version.split()[0],
            "clients": found,
        }
        RESULT.write_text(json.dumps(result, indent=1) + "\n")


def table(found: dict[str, Figures]) -> str:
    """Markdown: a row per case; behind the figure of another client how many times as much ours does."""
    lines = ["| case | " + " | ".join(found) + " |", "| --- |" + " --- |" * len(found)]
    ours = found.get("cometmq", {})
    for case in CASES:
        cells = [_cell(figures.get(case), ours.get(case)) for figures in found.values()]
        lines.append(f"| {case} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(figure: dict[str, Any] | None, ours: dict[str, Any] | None) -> str:
    if figure is None:
        return "-"
    if "rate" in figure:
        text = f"{figure['rate']:,.0f}/s, {figure['cpu_us']:.0f} us CPU"
        ratio = ours["rate"] / figure["rate"] if ours else 0.0
    else:
        text = f"p50 {figure['p50_ms']:.2f} ms, p99 {figure['p99_ms']:.2f} ms"
        ratio = figure["p50_ms"] / ours["p50_ms"] if ours else 0.0
    return text if ours is None or ours is figure else f"{text} (ours {ratio:.2g}x)"


def _measure_ours(directory: Path, seconds: float, rounds: int, messages: int) -> Figures:
    with _our_servers(directory, messages) as name_server:
        command = [sys.executable, str(PEERS / "ours.py"), name_server]
        return _run(command, directory, seconds, rounds, messages)


def _measure_java(directory: Path, seconds: float, rounds: int, messages: int) -> Figures:
    require_tools()
    jars = fetch_jars(HERE.parent / "tests" / "interop" / "pom.xml", JAVA_CLIENT)
    source = PEERS / "JavaClient.java"

    def fill(target: Path) -> None:
        options = ["--release", "17", "-nowarn", "-encoding", "UTF-8", "-cp", str(jars / "*")]
        run_tool(["javac", *options, "-d", str(target), str(source)], seconds_max=JAVAC_SECONDS_MAX)

    classes = cached("classes-JavaClient", [source], fill, salt=jars.name)
    with _our_servers(directory, messages) as name_server:
        logback = directory / "logback.xml"
        logback.write_text(QUIET_LOGBACK)
        flags = [
            "-Xmx2g",
            f"-Duser.home={directory}",
            f"-Dlogback.configurationFile={logback}",
            "-Drocketmq.client.logLevel=ERROR",
        ]
        classpath = f"{classes}{os.pathsep}{jars / '*'}"
        command = ["java", *flags, "-cp", classpath, "JavaClient", name_server]
        return _run(command, directory, seconds, rounds, messages)


def _measure_grpc(directory: Path, seconds: float, rounds: int, messages: int) -> Figures:
    require_tools()
    python = _grpc_environment()
    with _proxied_servers(directory) as (name_server, endpoint):
        _fill(name_server, GRPC_BACKLOG)
        command = [str(python), str(PEERS / "grpc_python.py"), endpoint]
        return _run(command, directory, seconds, rounds, GRPC_BACKLOG)


MEASURES: dict[str, Callable[[Path, float, int, int], Figures]] = {
    "cometmq": _measure_ours,
    "java": _measure_java,
    "grpc-python": _measure_grpc,
}


def _run(
    command: list[str], directory: Path, seconds: float, rounds: int, messages: int
) -> Figures:
    """What a client's program found, by case."""
    arguments = [str(seconds), str(rounds), str(messages)]
    errors = directory / "errors.txt"
    with errors.open("wb") as log:
        done = subprocess.run(
            [*command, *arguments],
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=directory,
            env=clean_environment() | {"HOME": str(directory)},
            timeout=CLIENT_SECONDS_MAX,
            check=False,
        )
    lines = [line for line in done.stdout.decode().splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        tail = errors.read_text(errors="replace")[-3000:]
        raise SystemExit(f"{command[0]} ended with code {done.returncode}:\n{tail}")
    return {figure.pop("case"): figure for figure in map(json.loads, lines)}


@contextlib.contextmanager
def _our_servers(directory: Path, messages: int) -> Iterator[str]:
    """A name server and a broker with a backlog to read; the address of the first."""
    commands = commands_of("cometmq", directory)
    with _servers(commands, directory) as name_server:
        _fill(name_server, messages)
        yield name_server


@contextlib.contextmanager
def _proxied_servers(directory: Path) -> Iterator[tuple[str, str]]:
    """RocketMQ's name server, broker and proxy; the addresses of the first and of the last."""
    jars = fetch_jars(PEERS / "rocketmq-proxy" / "pom.xml")
    home = directory / "home"
    (home / "conf").mkdir(parents=True)
    for part in ("namesrv", "broker", "proxy", "client"):
        (home / "conf" / f"rmq.{part}.logback.xml").write_text(QUIET_LOGBACK)
    opened = ("java.nio", "java.lang", "sun.nio.ch", "java.util")
    exported = ("jdk.internal.ref", "sun.nio.ch")
    flags = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in opened]
    flags += [f"--add-exports=java.base/{package}=ALL-UNNAMED" for package in exported]
    flags += [f"-Duser.home={home}", "-cp", str(jars / "*")]
    package = "org.apache.rocketmq"
    environment = {"ROCKETMQ_HOME": str(home)}
    commands = ServerCommands(
        ("java", "-Xmx512m", *flags, f"{package}.namesrv.NamesrvStartup"),
        ("java", *JAVA_BROKER_FLAGS, *flags, f"{package}.broker.BrokerStartup"),
        environment,
    )
    with _servers(commands, directory) as name_server:
        (grpc_port,) = free_ports(0)
        (remoting_port,) = free_ports(0)
        settings = {
            "rocketMQClusterName": "interop-cluster",
            "namesrvAddr": name_server,
            "proxyMode": "CLUSTER",
            "grpcServerPort": grpc_port,
            "remotingListenPort": remoting_port,
            "localServeAddr": "127.0.0.1",
        }
        conf = directory / "proxy.json"
        conf.write_text(json.dumps(settings))
        command = ["java", "-Xmx1g", *flags, f"{package}.proxy.ProxyStartup"]
        command += ["-pc", str(conf), "-n", name_server]
        with _process(command, directory / "proxy.log", environment) as proxy:
            deadline = time.monotonic() + READY_SECONDS_MAX
            while not accepts(grpc_port):
                if proxy.poll() is not None or time.monotonic() > deadline:
                    tail = (directory / "proxy.log").read_text(errors="replace")[-3000:]
                    raise SystemExit(f"the proxy is not ready:\n{tail}")
                time.sleep(0.1)
            yield name_server, f"127.0.0.1:{grpc_port}"


@contextlib.contextmanager
def _servers(commands: ServerCommands, directory: Path) -> Iterator[str]:
    with NameServer(commands, directory / "namesrv").running() as name_server:
        # A backlog is written as fast as it goes; nobody minds when a send has to wait.
        settings = {"waitTimeMillsInSendQueue": 30000, "diskMaxUsedSpaceRatio": 95}
        broker = Broker([name_server], directory / "broker", "bench", **settings)
        try:
            broker.start(commands)
            for topic in TOPICS:
                _create_topic(broker.port, topic)
            yield name_server.address
        finally:
            broker.kill()
            shutil.rmtree(directory / "broker", ignore_errors=True)


@contextlib.contextmanager
def _process(
    command: list[str], log: Path, environment: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env=clean_environment() | environment
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def _create_topic(port: int, topic: str) -> None:
    fields = {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": str(QUEUES),
        "writeQueueNums": str(QUEUES),
        "perm": "6",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
        "attributes": "+message.type=NORMAL",
    }
    code, _ = ask(port, CREATE_TOPIC, fields)
    assert code == 0, f"broker answered {code} to the creation of {topic}"


def _fill(name_server: str, messages: int) -> None:
    """A backlog to push and one to pull."""

    async def fill() -> None:
        async with Producer("clients", name_servers=name_server) as producer:
            await client_consume.until_served(producer)
            await client_consume.fill_backlog(producer, messages, b"x" * BODY_BYTES)
        await client_pull.fill_backlog(name_server, messages, BODY_BYTES)

    asyncio.run(fill())


def _grpc_environment() -> Path:
    """The interpreter of an environment that has the gRPC client; made when it is not there yet."""

    def fill(target: Path) -> None:
        venv.create(target, with_pip=True)
        run_tool(
            [str(target / "bin" / "python"), "-m", "pip", "install", "--quiet", GRPC_CLIENT],
            seconds_max=600,
        )

    return cached("venv-grpc-python", [], fill, salt=GRPC_CLIENT + sys.version) / "bin" / "python"


if __name__ == "__main__":
    main()
