"""Name servers and brokers of three makes, to be combined at will: ours, RocketMQ 4.9.7 and RocketMQ 5.5.0.

All of them take the same flags and the same configuration keys, so a make is nothing but the beginning of a command
line. ``servers`` knows how to run a process; here is what its parts are made of when they are not a pair of one make.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

from .java import QUIET_LOGBACK, MissingComponent, fetch_jars, require_tools
from .servers import (
    GET_ROUTEINFO_BY_TOPIC,
    HERE,
    KEY_TOPIC,
    Server,
    ServerCommands,
    accepts,
    ask,
    cometmq_commands,
    free_ports,
)

OURS = "cometmq"
ROCKETMQ_4 = "rocketmq-4.9.7"
ROCKETMQ_5 = "rocketmq-5.5.0"
THEIRS = (ROCKETMQ_4, ROCKETMQ_5)

POMS = {
    ROCKETMQ_4: HERE / "servers" / "pom.xml",
    ROCKETMQ_5: HERE / "servers" / "rocketmq-5.5.0" / "pom.xml",
}
_OPENED = ("java.nio", "java.lang", "sun.nio.ch", "java.util")
_EXPORTED = ("jdk.internal.ref", "sun.nio.ch")

# These servers live for seconds: start-up time counts for more than the best machine code.
_QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

# Half of a start goes into a certificate that nobody asks for. Whoever wants TLS sets the variable anew.
_NO_TLS = {"JAVA_TOOL_OPTIONS": "-Dtls.server.mode=disabled"}

# Settings for RocketMQ's brokers on a small and busy machine.
RELIEF: dict[str, object] = {
    # What keeps a core busy in 5.5 while nothing happens: the first wait for this interval is a loop without a pause
    # (ten seconds unless told otherwise), and every flush of timers looks through all the slots of a week.
    "transactionMetricFlushInterval": 200,
    "timerFlushIntervalMs": 5000,
    # A Java process that has just started is slow, and would refuse for that alone.
    "brokerFastFailureEnable": "false",
    "osPageCacheBusyTimeOutMills": 60_000,
    # Nor is it about how full the disk of this machine is.
    "diskMaxUsedSpaceRatio": 95,
}


def commands_of(system: str, home: Path) -> ServerCommands:
    """How to start a system's servers; ``home`` is for what Java's write beside their stores.

    Raises:
        MissingComponent: something is not installed and could not be fetched.
    """
    if system == OURS:
        return cometmq_commands()
    if system not in POMS:
        raise MissingComponent(f"no such system: {system}; expected one of {(OURS, *THEIRS)}")
    require_tools()
    jars = fetch_jars(POMS[system])
    configuration = home / "conf"
    configuration.mkdir(parents=True, exist_ok=True)
    # 4.9 refuses to start without these two; 5.5 logs every detail unless it is given one.
    for name in ("logback_namesrv.xml", "logback_broker.xml"):
        (configuration / name).write_text(QUIET_LOGBACK, encoding="utf-8")
    flags = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
    flags += [f"--add-exports=java.base/{package}=ALL-UNNAMED" for package in _EXPORTED]
    flags += [f"-Drmq.logback.configurationFile={configuration / 'logback_broker.xml'}"]
    flags += [*_QUICK_START, f"-Duser.home={home}", "-cp", str(jars / "*")]
    package = "org.apache.rocketmq"
    return ServerCommands(
        ("java", "-Xmx128m", *flags, f"{package}.namesrv.NamesrvStartup"),
        ("java", "-Xmx512m", *flags, f"{package}.broker.BrokerStartup"),
        {"ROCKETMQ_HOME": str(home), **_NO_TLS},
    )


class NameServer:
    """One name server on a free port."""

    def __init__(self, commands: ServerCommands, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        (self.port,) = free_ports(0)
        conf = directory / "namesrv.conf"
        conf.write_text(f"listenPort={self.port}\nkvConfigPath={directory / 'kvConfig.json'}\n")
        command = [*commands.name_server, "-c", str(conf)]
        self._server = Server("namesrv", command, commands.environment, directory)
        self._is_theirs = _is_theirs(commands)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self._server.start(lambda: accepts(self.port))

    def kill(self) -> None:
        self._server.kill()

    @contextlib.contextmanager
    def running(self) -> Iterator[NameServer]:
        try:
            self.start()
            yield self
            self.stop()
        finally:
            self.kill()

    def stop(self) -> None:
        """Ends the name server by SIGTERM."""
        with _watching(self.port) if self._is_theirs else contextlib.nullcontext():
            self._server.stop()

    def knows(self, broker_port: int) -> bool:
        """Whether a broker on that port has registered, and with the topic that every broker has."""
        try:
            code, body = ask(self.port, GET_ROUTEINFO_BY_TOPIC, {"topic": KEY_TOPIC})
        except OSError:
            return False
        return code == 0 and f'"127.0.0.1:{broker_port}"'.encode() in body


class Broker:
    """One broker, a master unless its settings say otherwise.

    After each stop it may be another make, with other ``settings``; port, name and directory stay.
    """

    def __init__(
        self, name_servers: Sequence[NameServer], directory: Path, name: str, **settings: object
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.directory = directory
        self.store = directory / "store"
        # The broker also opens the VIP port, two below, and the replication port, one above.
        self.port = free_ports(0, -2, +1)[0]
        self._name_servers = name_servers
        self._conf = directory / f"{name}.conf"
        self.settings: dict[str, object] = {
            "listenPort": self.port,
            "brokerClusterName": "interop-cluster",
            "brokerName": name,
            "brokerId": 0,
            "brokerIP1": "127.0.0.1",
            "storePathRootDir": self.store,
            "storePathCommitLog": self.store / "commitlog",
            "autoCreateTopicEnable": "true",
            **settings,
        }
        self._server: Server | None = None
        self._is_theirs = False

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Of the running process."""
        assert self._server is not None, self.name
        return self._server.pid

    def start(self, commands: ServerCommands, *, until_known: bool = True) -> None:
        """Returns when the broker accepts connections and every name server knows it (``until_known``)."""
        addresses = ";".join(each.address for each in self._name_servers)
        command = [*commands.broker, "-n", addresses, "-c", str(self._conf)]
        self._server = Server(self.name, command, commands.environment, self.directory)
        self._is_theirs = _is_theirs(commands)
        values = {**RELIEF, **self.settings} if self._is_theirs else self.settings
        self._conf.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        self._server.start(lambda: accepts(self.port) and (not until_known or self.is_known()))

    def is_known(self) -> bool:
        """Whether every name server knows it."""
        return all(each.knows(self.port) for each in self._name_servers)

    def is_forgotten(self) -> bool:
        """Whether no name server knows it any more."""
        return not any(each.knows(self.port) for each in self._name_servers)

    def stop(self) -> None:
        """Ends the broker by SIGTERM."""
        if self._server is not None:
            ports = (self.port, self.port - 2)
            with _watching(*ports) if self._is_theirs else contextlib.nullcontext():
                self._server.stop()
            self._server = None

    def kill(self) -> None:
        """Ends the broker by SIGKILL."""
        if self._server is not None:
            self._server.kill()
            self._server = None
            if self._is_theirs:
                remove_empty_files(self.store)


def remove_empty_files(store: Path) -> None:
    """RocketMQ gives a new file its size in a second step; one killed in between never starts again (exit code 253)
    until somebody deletes the empty file. Ours is not helped: it must start with whatever it left."""
    for pattern in ("commitlog/*", "consumequeue/*/*/*"):
        for file in store.glob(pattern):
            if file.stat().st_size == 0:
                file.unlink()


def _is_theirs(commands: ServerCommands) -> bool:
    return "ROCKETMQ_HOME" in commands.environment


@contextlib.contextmanager
def _watching(*ports: int) -> Iterator[None]:
    """Connections to a server of RocketMQ that is about to end: for each of its ports it looks every three seconds
    whether it should, and at once when a connection ends."""
    with contextlib.ExitStack() as stack:
        for port in ports:
            with contextlib.suppress(OSError):  # It may have died already.
                stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=2))
        yield
