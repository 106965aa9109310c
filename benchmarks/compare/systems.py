"""The systems under test: a name server and a broker each, as processes on free ports of the loopback address.

All take the same flags and the same configuration files, so they differ only in how a command line begins. Java's
servers come from their Maven artifacts; jars are kept outside the repository, by the same code as in `tests/interop`.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.compare.cases import MANY_TOPIC, MANY_TOPICS, OURS, Setup
from benchmarks.compare.load import LoadFailed, LoadProgram
from tests.interop.java import (
    QUIET_LOGBACK,
    MissingComponent,
    clean_environment,
    fetch_jars,
    tail,
)
from tests.interop.servers import accepts, free_ports

HERE = Path(__file__).parent
READY_SECONDS_MAX = 120
STOP_SECONDS_MAX = 60
POLL_SECONDS = 0.005
BROKER_NAME = "bench"
ACCOUNT, SECRET = "bench-account", "a-secret-of-some-length"
ACCOUNTS = f"""accounts:
- accessKey: {ACCOUNT}
  secretKey: {SECRET}
  admin: false
  defaultTopicPerm: PUB|SUB
  defaultGroupPerm: SUB
"""
# Topics come into being by sends: to create them takes an operator's account, which no permission is checked of.
ACCOUNT_FLAGS = ("--account", f"{ACCOUNT}:{SECRET}", "--no-create")

# As RocketMQ's own start script has it for a machine of this size, without touching all of the heap in advance.
JAVA_BROKER_FLAGS = (
    "-Xms4g",
    "-Xmx4g",
    "-XX:+UseG1GC",
    "-XX:G1HeapRegionSize=16m",
    "-XX:G1ReservePercent=25",
    "-XX:InitiatingHeapOccupancyPercent=30",
)


@dataclass(frozen=True)
class Commands:
    """How the command lines of a system begin; ``-c FILE`` and ``-n ADDRESS`` follow."""

    name_server: tuple[str, ...]
    broker: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)


def commands_of(system: str, scratch: Path) -> Commands:
    """Fetches what is missing. Raises ``MissingComponent`` when that cannot be."""
    home = scratch / f"home-{system}"
    (home / "conf").mkdir(parents=True, exist_ok=True)
    # Read with aclEnable only.
    (home / "conf" / "plain_acl.yml").write_text(ACCOUNTS, encoding="utf-8")
    if system == OURS:
        return _our_commands(home)
    return _java_commands(system, home)


def _our_commands(home: Path) -> Commands:
    binaries = Path(sys.executable).parent
    missing = [name for name in ("mqnamesrv", "mqbroker") if not (binaries / name).exists()]
    if missing:
        raise MissingComponent(f"not in {binaries}: {', '.join(missing)}; run `make setup` first")
    return Commands(
        (str(binaries / "mqnamesrv"),),
        (str(binaries / "mqbroker"),),
        {"ROCKETMQ_HOME": str(home)},
    )


def _java_commands(system: str, home: Path) -> Commands:
    missing = [tool for tool in ("java", "mvn") if shutil.which(tool) is None]
    if missing:
        raise MissingComponent(f"not on the path: {', '.join(missing)}; needed to run {system}")
    jars = fetch_jars(HERE / system / "pom.xml")
    configuration = home / "conf"
    # 4.9 refuses to start without its two files, and 5.5 would log every detail without its own.
    for part in ("namesrv", "broker"):
        for name in (f"logback_{part}.xml", f"rmq.{part}.logback.xml"):
            (configuration / name).write_text(QUIET_LOGBACK, encoding="utf-8")
    opened = ("java.nio", "java.lang", "sun.nio.ch", "java.util")
    exported = ("jdk.internal.ref", "sun.nio.ch")
    flags = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in opened]
    flags += [f"--add-exports=java.base/{package}=ALL-UNNAMED" for package in exported]
    flags += [f"-Duser.home={home}", "-cp", str(jars / "*")]
    package = "org.apache.rocketmq"
    return Commands(
        ("java", "-Xmx512m", *flags, f"{package}.namesrv.NamesrvStartup"),
        ("java", *JAVA_BROKER_FLAGS, *flags, f"{package}.broker.BrokerStartup"),
        {"ROCKETMQ_HOME": str(home)},
    )


@dataclass
class System:
    """A running pair. ``start_seconds``: from the broker's start to the first send that it accepted."""

    name: str
    port: int
    broker: subprocess.Popen[bytes]
    name_server: subprocess.Popen[bytes]
    start_seconds: float
    slave: subprocess.Popen[bytes] | None = None
    backlogs: set[str] = field(default_factory=set)
    """Topics that are filled with what is to be pulled."""
    flags: tuple[str, ...] = ()
    """What the load program needs to be let in."""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def pause(self) -> None:
        """Let it sleep. An idle RocketMQ 5.5.0 takes a whole core, which is not there for another one's round."""
        for process in reversed(self._processes()):
            process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        for process in self._processes():
            process.send_signal(signal.SIGCONT)

    def _processes(self) -> list[subprocess.Popen[bytes]]:
        slaves = [self.slave] if self.slave is not None else []
        return [self.name_server, *slaves, self.broker]

    @contextlib.contextmanager
    def awake(self) -> Iterator[None]:
        """Alone on the machine, with nothing left to be written to the disk for anybody else."""
        os.sync()
        self.resume()
        try:
            yield
        finally:
            self.pause()

    def memory_mb(self) -> dict[str, float]:
        """Resident memory now. ``anonymous`` leaves out the pages of mapped files, which the kernel can take back."""
        name_server, broker = _status_mb(self.name_server.pid), _status_mb(self.broker.pid)
        return {
            "name_server": name_server["VmRSS"],
            "broker": broker["VmRSS"],
            "broker_anonymous": broker["RssAnon"],
        }

    def broker_cpu_seconds(self) -> float:
        text = Path(f"/proc/{self.broker.pid}/stat").read_text()
        # The second field is the command's name and may hold blanks.
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def running(
    name: str, commands: Commands, setup: Setup, directory: Path, program: LoadProgram
) -> Iterator[System]:
    """The system, up and accepting sends; stopped, and its store removed, at the end."""
    directory.mkdir(parents=True)
    (name_server_port,) = free_ports(0)
    # The broker also opens the VIP port, two below, and the replication port, one above.
    broker_port = free_ports(0, -2, +1)[0]
    store = directory / "store"
    if setup is Setup.TOPICS:
        _write_topic_table(store / "config" / "topics.json")
    name_server_conf = directory / "namesrv.conf"
    name_server_conf.write_text(
        f"listenPort={name_server_port}\nkvConfigPath={directory / 'kvConfig.json'}\n"
    )
    broker_conf = directory / "broker.conf"
    broker_conf.write_text(_broker_conf(broker_port, store, setup))
    name_server_address = f"127.0.0.1:{name_server_port}"
    try:
        command = [*commands.name_server, "-c", str(name_server_conf)]
        with _process(command, commands, directory) as first:
            _wait(first, directory, lambda: accepts(name_server_port))
            started = time.monotonic()
            command = [*commands.broker, "-n", name_server_address, "-c", str(broker_conf)]
            with _process(command, commands, directory) as second, contextlib.ExitStack() as stack:
                slave = None
                if setup.has_slave:
                    slave = stack.enter_context(_slave(name_server_address, commands, directory))
                flags = ACCOUNT_FLAGS if setup is Setup.GUARDED else ()
                _wait(second, directory, lambda: _accepts_a_send(program, broker_port, flags))
                if slave is not None:
                    copy = directory / "slave" / "commitlog"
                    _wait(slave, directory, lambda: copy.exists() and any(copy.iterdir()))
                seconds = time.monotonic() - started
                yield System(name, broker_port, second, first, seconds, slave, flags=flags)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def _slave(
    name_server: str, commands: Commands, directory: Path
) -> Iterator[subprocess.Popen[bytes]]:
    conf = directory / "slave.conf"
    port = free_ports(0, -2, +1)[0]
    conf.write_text(
        _broker_conf(port, directory / "slave", Setup.ASYNC)
        .replace("brokerId=0", "brokerId=1")
        .replace("ASYNC_MASTER", "SLAVE")
    )
    command = [*commands.broker, "-n", name_server, "-c", str(conf)]
    with _process(command, commands, directory) as process:
        yield process


def _broker_conf(port: int, store: Path, setup: Setup) -> str:
    values = {
        "listenPort": port,
        "brokerClusterName": "bench-cluster",
        "brokerName": BROKER_NAME,
        "brokerId": 0,
        "brokerRole": "SYNC_MASTER" if setup is Setup.COPIED_SYNC else "ASYNC_MASTER",
        "brokerIP1": "127.0.0.1",
        "storePathRootDir": store,
        "storePathCommitLog": store / "commitlog",
        "autoCreateTopicEnable": "true",
        "enablePropertyFilter": "true",
        "flushDiskType": "SYNC_FLUSH" if setup is Setup.SYNC else "ASYNC_FLUSH",
        "aclEnable": str(setup is Setup.GUARDED).lower(),
        # Master and slave sleep between their rounds, and must not take each other for dead afterwards.
        "haHousekeepingInterval": 600_000,
    }
    return "".join(f"{key}={value}\n" for key, value in values.items())


def _write_topic_table(file: Path) -> None:
    names = [f"{MANY_TOPIC}-{number}" for number in range(MANY_TOPICS)]
    table = {
        name: {
            "order": False,
            "perm": 6,
            "readQueueNums": 1,
            "topicFilterType": "SINGLE_TAG",
            "topicName": name,
            "topicSysFlag": 0,
            "writeQueueNums": 1,
        }
        for name in names
    }
    version = {"counter": 1, "timestamp": 1_700_000_000_000}
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"dataVersion": version, "topicConfigTable": table}))


@contextlib.contextmanager
def _process(
    command: list[str], commands: Commands, directory: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with (directory / "servers.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            cwd=directory,
            env=clean_environment() | commands.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], directory: Path, is_ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + READY_SECONDS_MAX
    while not is_ready():
        if process.poll() is not None or time.monotonic() > deadline:
            told = tail(directory / "servers.log")
            raise MissingComponent(
                f"{process.args!r} did not get ready; its log ends with:\n{told}"
            )
        time.sleep(POLL_SECONDS)


def _accepts_a_send(program: LoadProgram, port: int, flags: tuple[str, ...]) -> bool:
    if not accepts(port):
        return False
    arguments = ("--address", f"127.0.0.1:{port}", "--topic", "Ready", "--count", "1")
    try:
        program.run("send", (*arguments, *flags), seconds=1)
    except LoadFailed:
        return False
    return True


def _status_mb(pid: int) -> dict[str, float]:
    rows = (line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {row[0].rstrip(":"): int(row[1]) / 1024 for row in rows if row[-1] == "kB"}
