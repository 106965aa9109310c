"""A name server and a broker as real processes on free ports, ours or Java's.

Both kinds take the same flags and the same configuration files, so they differ in how a command line begins. Running
the tests against Java's own servers proves the tests; running them against ours proves the servers.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import random
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from .certificates import Certificates
from .java import MissingComponent, clean_environment, tail

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent

# Generous: Java on a busy machine takes ten times as long as on a quiet one. Only a failing run waits this long.
READY_SECONDS_MAX = 90
STOP_SECONDS_MAX = 90
POLL_SECONDS = 0.05
ASK_SECONDS = 15

# Below the range that the system hands out to outgoing connections. Otherwise a client may sit on the broker's port
# while the broker restarts.
PORT_MIN, PORT_MAX = 20_000, 31_999
CLAIMS = Path(tempfile.gettempdir()) / f"cometmq-test-ports-{os.getuid()}"
"""Has a lock for each port that a process of tests has taken, for as long as the process runs."""
_given: set[int] = set()

GET_ROUTEINFO_BY_TOPIC = 105
TOPIC_NOT_EXIST = 17
KEY_TOPIC = "TBW102"


class ServerFailed(Exception):
    """A server did not start or did not stop; the message ends with the end of its log."""


@dataclass(frozen=True)
class ServerCommands:
    """How the command lines begin; ``-c FILE`` and ``-n ADDRESS`` follow."""

    name_server: tuple[str, ...]
    broker: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)


def cometmq_commands() -> ServerCommands:
    """Our own servers, as installed in the repository's virtual environment."""
    binaries = REPOSITORY / ".venv" / "bin"
    commands = {name: binaries / name for name in ("mqnamesrv", "mqbroker")}
    missing = [str(path) for path in commands.values() if not path.exists()]
    if missing:
        raise MissingComponent(f"not there: {', '.join(missing)}; run `make setup` first")
    return ServerCommands((str(commands["mqnamesrv"]),), (str(commands["mqbroker"]),))


class Server:
    """One server process; its output goes to a file."""

    def __init__(
        self, name: str, command: list[str], environment: dict[str, str], directory: Path
    ) -> None:
        self.name = name
        self._command = command
        self._environment = clean_environment() | environment
        self._directory = directory
        self._log = directory / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Of the running process."""
        assert self._process is not None, self.name
        return self._process.pid

    def start(self, is_ready: Callable[[], bool]) -> None:
        """Starts the process and returns when it is ready; raises when it ends before or takes too long."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._directory,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not is_ready():
            code = self._process.poll()
            if code is not None or time.monotonic() > deadline:
                self.kill()
                why = f"ended with code {code}" if code is not None else "was not ready in time"
                raise ServerFailed(f"{self.name} {why}; its log ends with:\n{tail(self._log)}")
            time.sleep(POLL_SECONDS)

    def stop(self) -> None:
        """Asks the process to end, as an operator does; raises when it does not."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerFailed(
                f"{self.name} did not end within {STOP_SECONDS_MAX} s of SIGTERM; "
                f"its log ends with:\n{tail(self._log)}"
            ) from None
        self._process = None

    def kill(self) -> None:
        """Makes sure that nothing is left running."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class ServerPair:
    """A name server and a master broker that knows it, with everything they write below one directory."""

    def __init__(
        self,
        commands: ServerCommands,
        directory: Path,
        *,
        broker_settings: Mapping[str, object] | None = None,
        tls: Certificates | None = None,
    ) -> None:
        self.store = directory / "store"
        directory.mkdir(parents=True)
        self._tls = tls
        shared: dict[str, object] = {}
        environment = dict(commands.environment)
        if tls is not None:
            # Our servers take a file of settings, Java's take some of them as system properties only.
            shared["tls.config.file"] = _write_conf(
                directory / "tls.properties", tls.server_settings()
            )
            flags = (f"-D{name}={value}" for name, value in tls.server_settings().items())
            environment["JAVA_TOOL_OPTIONS"] = " ".join(flags)
        (self._name_server_port,) = free_ports(0)
        # The broker also opens the VIP port, two below, and the replication port, one above.
        self._broker_port = free_ports(0, -2, +1)[0]
        name_server_conf = _write_conf(
            directory / "namesrv.conf",
            {
                "listenPort": self._name_server_port,
                "kvConfigPath": directory / "kvConfig.json",
                **shared,
            },
        )
        broker_conf = _write_conf(
            directory / "broker.conf",
            {
                "listenPort": self._broker_port,
                "brokerClusterName": "interop-cluster",
                "brokerName": "interop-broker",
                "brokerId": 0,
                "brokerIP1": "127.0.0.1",
                "storePathRootDir": self.store,
                "storePathCommitLog": self.store / "commitlog",
                "autoCreateTopicEnable": "true",
                "enablePropertyFilter": "true",
                **shared,
                **(broker_settings or {}),
            },
        )
        self._name_server = Server(
            "namesrv",
            [*commands.name_server, "-c", str(name_server_conf)],
            environment,
            directory,
        )
        self._broker = Server(
            "broker",
            [*commands.broker, "-n", self.address, "-c", str(broker_conf)],
            environment,
            directory,
        )

    @property
    def address(self) -> str:
        """Where clients find the name server."""
        return f"127.0.0.1:{self._name_server_port}"

    @property
    def broker_address(self) -> str:
        """Where the broker listens, for clients that create topics there without asking for the way."""
        return f"127.0.0.1:{self._broker_port}"

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Both servers, up and known to each other; stopped at the end, broker first."""
        try:
            self._name_server.start(lambda: accepts(self._name_server_port))
            self.start_broker()
            yield
            self._broker.stop()
            self._name_server.stop()
        finally:
            self._broker.kill()
            self._name_server.kill()

    def start_broker(self) -> None:
        """Returns when the broker accepts connections and clients can find it."""
        self._broker.start(lambda: accepts(self._broker_port) and self.has_route())

    def stop_broker(self) -> None:
        """Ends the broker by SIGTERM."""
        self._broker.stop()

    def has_route(self) -> bool:
        """Whether the name server knows a broker for the topic that new topics are made from."""
        try:
            code, body = ask(
                self._name_server_port,
                GET_ROUTEINFO_BY_TOPIC,
                {"topic": KEY_TOPIC},
                tls=None if self._tls is None else self._tls.context(),
            )
        except OSError:
            return False
        if code == TOPIC_NOT_EXIST:
            return False
        if code != 0:
            raise RuntimeError(f"name server answered {code} for the route of {KEY_TOPIC}")
        # fastjson writes map keys that are numbers without quotes, so the body is not quite JSON; the broker's
        # address is all that matters here.
        return f"127.0.0.1:{self._broker_port}".encode() in body


def accepts(port: int) -> bool:
    """Whether somebody listens on a local port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
    except OSError:
        return False
    return True


def ask(
    port: int, code: int, fields: dict[str, str], *, tls: ssl.SSLContext | None = None
) -> tuple[int, bytes]:
    """One request in RocketMQ's remoting protocol; returns code and body of the reply.

    Written out here, so that these tests judge the servers without the help of any code under test.
    """
    header = json.dumps(
        {
            "code": code,
            "extFields": fields,
            "flag": 0,
            "language": "PYTHON",
            "opaque": 1,
            "version": 0,
        }
    ).encode()
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(
            socket.create_connection(("127.0.0.1", port), timeout=ASK_SECONDS)
        )
        if tls is not None:
            connection = stack.enter_context(
                tls.wrap_socket(connection, server_hostname="127.0.0.1")
            )
        connection.sendall(struct.pack(">ii", 4 + len(header), len(header)) + header)
        with connection.makefile("rb") as stream:
            length, header_length = struct.unpack(">ii", _read(stream.read, 8))
            reply: dict[str, Any] = json.loads(_read(stream.read, header_length))
            return int(reply["code"]), _read(stream.read, length - 4 - header_length)


def free_ports(*offsets: int) -> list[int]:
    """Ports at fixed distances from each other, all free at this moment on every local address.

    Nobody else gets them, neither here nor in test runs beside this one: a server may be away for a while and want its
    port back.
    """
    for _ in range(400):
        base = random.randint(PORT_MIN - min(offsets), PORT_MAX - max(offsets))
        ports = [base + offset for offset in offsets]
        if all(_is_free(port) and claim(port) for port in ports):
            return ports
    raise RuntimeError(f"no free ports between {PORT_MIN} and {PORT_MAX}")


def claim(port: int) -> bool:
    """Take a port for this process; whether nobody had it."""
    if port in _given:
        return False
    try:
        fcntl.lockf(_claims(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except BlockingIOError:
        return False
    _given.add(port)
    return True


@functools.cache
def _claims() -> BinaryIO:
    return CLAIMS.open("ab")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def _read(read: Callable[[int], bytes], size: int) -> bytes:
    data = read(size)
    if len(data) != size:
        raise ConnectionError(f"connection closed after {len(data)} of {size} bytes")
    return data


def _write_conf(file: Path, values: Mapping[str, object]) -> Path:
    file.write_text("".join(f"{key}={value}{os.linesep}" for key, value in values.items()), "utf-8")
    return file
