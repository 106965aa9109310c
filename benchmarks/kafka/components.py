"""What the Kafka side is made of: fetched once, kept outside the repository, started on free ports.

Spark's Kafka connector can be had whole for Spark 4.0.0 only, so that side has an environment of its own.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.interop.java import (
    MissingComponent,
    cached,
    clean_environment,
    fetch_jars,
    require_tools,
    run_tool,
    tail,
)
from tests.interop.servers import accepts, free_ports

HERE = Path(__file__).parent
PYSPARK = "pyspark==4.0.0"
PARTITIONS = 4
READY_SECONDS_MAX = 120
STOP_SECONDS_MAX = 60
TASK_SECONDS_MAX = 900
KAFKA_FLAGS = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC")


def fetch_kafka() -> Path:
    """The directory with Kafka's jars. Raises MissingComponent."""
    require_tools(("java", "mvn"))
    return fetch_jars(HERE / "server" / "pom.xml")


def fetch_connector() -> str:
    """The connector's jars as ``spark.jars`` wants them; of those that it stands on, Spark itself has the rest."""
    jars = fetch_jars(HERE / "connector" / "pom.xml")
    wanted = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")
    return ",".join(sorted(str(jar) for jar in jars.iterdir() if jar.name.startswith(wanted)))


def fetch_spark() -> Path:
    """The interpreter of the environment with Spark 4.0.0."""

    def fill(target: Path) -> None:
        venv.create(target, with_pip=True)
        python = str(target / "bin" / "python")
        run_tool([python, "-m", "pip", "install", "--quiet", PYSPARK], seconds_max=900)

    return cached("venv-spark-kafka", [], fill, salt=PYSPARK + sys.version) / "bin" / "python"


@contextlib.contextmanager
def kafka(directory: Path, more: str = "") -> Iterator[str]:
    """A Kafka of one node; its address. Topics come into being with the first message, with 4 partitions.

    Args:
        more: lines for its settings.
    """
    jars = fetch_kafka()
    directory.mkdir(parents=True)
    port, controller_port = free_ports(0)[0], free_ports(0)[0]
    settings = directory / "server.properties"
    settings.write_text(
        "process.roles=broker,controller\nnode.id=1\n"
        f"controller.quorum.voters=1@127.0.0.1:{controller_port}\n"
        f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}\n"
        f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}\n"
        f"controller.listener.names=CONTROLLER\nlog.dirs={directory}/logs\n"
        f"num.partitions={PARTITIONS}\noffsets.topic.replication.factor=1\n"
        "transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n"
        f"{more}"
    )
    java = ["java", *KAFKA_FLAGS, "-cp", str(jars / "*")]
    cluster = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
    run_tool(
        [
            *java,
            "kafka.tools.StorageTool",
            "format",
            f"--cluster-id={cluster}",
            "-c",
            str(settings),
        ],
        seconds_max=READY_SECONDS_MAX,
    )
    with process([*java, "kafka.Kafka", str(settings)], directory) as server:
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not accepts(port):
            if server.poll() is not None or time.monotonic() > deadline:
                raise MissingComponent(f"Kafka did not start:\n{tail(directory / 'output.log')}")
            time.sleep(0.1)
        yield f"127.0.0.1:{port}"


class SparkSide:
    """A session in a process of its own; see ``spark_side``."""

    def __init__(self, child: subprocess.Popen[bytes], directory: Path) -> None:
        self.child = child
        self._log = directory / "output.log"
        self._reply()

    def do(self, **task: Any) -> dict[str, Any]:
        assert self.child.stdin is not None
        self.child.stdin.write(json.dumps(task).encode() + b"\n")
        self.child.stdin.flush()
        return self._reply()

    def _reply(self) -> dict[str, Any]:
        assert self.child.stdout is not None
        line = self.child.stdout.readline()
        if not line:
            raise RuntimeError(f"a Spark session ended:\n{tail(self._log)}")
        reply: dict[str, Any] = json.loads(line)
        return reply


@contextlib.contextmanager
def spark_side(python: str, directory: Path, *flags: str) -> Iterator[SparkSide]:
    directory.mkdir(parents=True)
    command = [python, str(HERE / "spark_side.py"), str(directory), *flags]
    with process(command, directory, is_asked=True) as child:
        yield SparkSide(child, directory)


@contextlib.contextmanager
def process(
    command: list[str], directory: Path, *, is_asked: bool = False
) -> Iterator[subprocess.Popen[bytes]]:
    """A child whose output goes to a file; ended with the block."""
    pipe = subprocess.PIPE if is_asked else None
    with (directory / "output.log").open("ab") as log:
        child = subprocess.Popen(
            command,
            cwd=directory,
            env=clean_environment(),
            stdin=pipe or subprocess.DEVNULL,
            stdout=pipe or log,
            stderr=log,
        )
    try:
        yield child
    finally:
        if child.stdin is not None:
            child.stdin.close()
        else:
            child.send_signal(signal.SIGTERM)
        try:
            child.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        if child.stdout is not None:
            child.stdout.close()
