"""A name server and a broker as processes of their own, and what can be seen of them from outside."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

BROKER_SETTINGS: Final = {
    "brokerName": "target",
    "brokerClusterName": "Target",
    "mappedFileSizeCommitLog": str(64 << 20),
    "serverFrameTimeoutSeconds": "2",
}


class Server:
    """A process that serves one port."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.name = name
        self.port = port
        self._process = process
        self._log = log

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def log_text(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    @property
    def log_bytes(self) -> int:
        return self._log.stat().st_size

    @property
    def memory_bytes(self) -> int:
        """Its own memory. Pages of mapped files are the kernel's, and do not count."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        found = re.search(r"^RssAnon:\s+(\d+) kB", status, re.MULTILINE)
        assert found is not None
        return int(found[1]) * 1024

    @property
    def peer_count(self) -> int:
        """Established connections to its port, as the kernel knows them."""
        port = f":{self.port:04X}"
        count = 0
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, local, _, state, *_ = line.split()
            count += local.endswith(port) and state == "01"
        return count


@contextmanager
def servers(
    directory: Path, broker_module: str = "cometmq.broker"
) -> Iterator[tuple[Server, Server]]:
    """Name server and broker."""
    name_port, broker_port = _free_ports(2)
    broker_file = directory / "broker.conf"
    settings = {
        **BROKER_SETTINGS,
        "listenPort": str(broker_port),
        "storePathRootDir": str(directory / "store"),
        "namesrvAddr": f"127.0.0.1:{name_port}",
    }
    broker_file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    name_file = directory / "namesrv.conf"
    name_file.write_text(
        f"listenPort={name_port}\nkvConfigPath={directory}/kv.json\nserverFrameTimeoutSeconds=2\n"
    )
    with ExitStack() as stack:
        name_server = stack.enter_context(
            _process("cometmq.namesrv", name_file, name_port, directory)
        )
        broker = stack.enter_context(_process(broker_module, broker_file, broker_port, directory))
        yield name_server, broker


@contextmanager
def _process(module: str, config: Path, port: int, directory: Path) -> Iterator[Server]:
    log = directory / f"{module}.log"
    with (
        log.open("wb") as file,
        subprocess.Popen(
            [sys.executable, "-m", module, "-c", str(config)], stdout=subprocess.PIPE, stderr=file
        ) as process,
    ):
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if b"to stop it" in line:
                    break
            else:
                raise AssertionError(f"{module} did not start: {log.read_text()}")
            yield Server(module, process, port, log)
        finally:
            process.kill()


def _free_ports(count: int) -> list[int]:
    """Also with free ones two below and one above, which the broker wants."""
    ports: list[int] = []
    while len(ports) < count:
        with socket.socket() as main, socket.socket() as vip, socket.socket() as slaves:
            main.bind(("127.0.0.1", 0))
            port = int(main.getsockname()[1])
            try:
                vip.bind(("127.0.0.1", port - 2))
                slaves.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            ports.append(port)
    return ports
