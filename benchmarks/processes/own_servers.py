"""Our name server and broker as processes of their own, with an empty store."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

BIN: Final = Path(sys.executable).parent
STOP_SECONDS_MAX: Final = 60


@dataclass(frozen=True, slots=True)
class Servers:
    name_server: str
    broker: str
    broker_pid: int


@dataclass(frozen=True, slots=True)
class Files:
    """Where they listen, and the files to start them with."""

    namesrv_port: int
    broker_port: int
    namesrv_conf: str
    broker_conf: str


@contextmanager
def servers(directory: Path, *, queues: int, settings: str = "") -> Iterator[Servers]:
    """They may still be starting. ``settings`` are more lines of ``broker.conf``."""
    files = write_files(directory, f"defaultTopicQueueNums={queues}\n{settings}")
    name_server = f"127.0.0.1:{files.namesrv_port}"
    with (
        process("mqnamesrv", "-c", files.namesrv_conf),
        process("mqbroker", "-n", name_server, "-c", files.broker_conf) as broker,
    ):
        yield Servers(name_server, f"127.0.0.1:{files.broker_port}", broker.pid)


def write_files(directory: Path, settings: str = "") -> Files:
    namesrv_port, broker_port = free_port(), free_port()
    namesrv_conf = directory / "namesrv.conf"
    namesrv_conf.write_text(
        f"listenPort={namesrv_port}\nkvConfigPath={directory}/kv.json\n"
        f"configStorePath={directory}/namesrv.properties\n"
    )
    broker_conf = directory / "broker.conf"
    broker_conf.write_text(
        f"brokerName=bench\nbrokerIP1=127.0.0.1\nlistenPort={broker_port}\n"
        f"storePathRootDir={directory}/store\n{settings}"
    )
    return Files(namesrv_port, broker_port, str(namesrv_conf), str(broker_conf))


@contextmanager
def process(program: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    running = subprocess.Popen(
        [BIN / program, "--log-level", "warning", *arguments], stdout=subprocess.DEVNULL
    )
    try:
        yield running
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait(timeout=STOP_SECONDS_MAX)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
