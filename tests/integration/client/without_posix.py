"""A process of a machine like Windows: what only POSIX or a server has is not there. ``test_anywhere`` runs it.

    python without_posix.py library NAME_SERVERS TOPIC DIRECTORY
    python without_posix.py produce NAME_SERVERS TOPIC
    python without_posix.py consume NAME_SERVERS TOPIC

Imports of anything but the standard library's portable part and what the client needs fail, and so do the calls that
asyncio's event loop of Windows does not have. That one itself, the Proactor, is on no other system.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import pkgutil
import signal
import socket
import sys
import types
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

CLIENT_NEEDS = {"cometmq", "lz4", "msgspec", "zstandard"}
COMMANDS_NEED = {*CLIENT_NEEDS, "click"}
POSIX_ONLY = {
    *("_curses", "_posixshmem", "_posixsubprocess", "crypt", "curses", "fcntl", "grp", "nis"),
    *("ossaudiodev", "pty", "pwd", "readline", "resource", "spwd", "syslog", "termios", "tty"),
}
POSIX_NAMES = {
    os: (
        *("O_CLOEXEC", "O_DIRECTORY", "O_TMPFILE", "SEEK_DATA", "SEEK_HOLE", "chown", "fchmod"),
        *("fdatasync", "fork", "geteuid", "getloadavg", "getpgid", "getuid", "killpg", "mkfifo"),
        *("posix_fadvise", "posix_fallocate", "pread", "preadv", "pwrite", "pwritev"),
        *("register_at_fork", "setsid", "statvfs", "sysconf", "uname"),
    ),
    signal: ("SIGALRM", "SIGHUP", "SIGKILL", "SIGUSR1", "alarm", "pidfd_send_signal"),
    socket: ("SO_REUSEPORT",),
}


# On POSIX these use some of those names when they are imported; their other halves are for Windows.
IMPORTED_BEFORE = (
    *("concurrent.futures.thread", "ctypes", "logging", "random", "shutil", "sqlite3", "ssl"),
    *("subprocess", "tempfile", "uuid"),
)


class Hidden:
    """Asked first, it refuses all modules but the known ones."""

    def __init__(self, needed: set[str]) -> None:
        self._known = (set(sys.stdlib_module_names) - POSIX_ONLY) | needed

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] not in self._known:
            raise ImportError(f"there is no {name} here", name=name)
        return None


def take_posix_away(needed: set[str]) -> None:
    for name in IMPORTED_BEFORE:
        importlib.import_module(name)
    # What runs before any program, from the files of the environment, may have brought some along.
    known = (set(sys.stdlib_module_names) - POSIX_ONLY) | needed | {"__main__", "sitecustomize"}
    for name in list(sys.modules):
        if name.partition(".")[0] not in known:
            del sys.modules[name]
    sys.meta_path.insert(0, Hidden(needed))
    for module, names in POSIX_NAMES.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)

    def not_there(*_: object) -> Any:
        raise NotImplementedError

    for name in ("add_reader", "add_writer", "add_signal_handler"):
        setattr(asyncio.SelectorEventLoop, name, not_there)


def import_all() -> None:
    """Everything that users of the client import. OpenTelemetry is an extra."""
    client = importlib.import_module("cometmq.client")
    for module in pkgutil.walk_packages(client.__path__, "cometmq.client."):
        if module.name != "cometmq.client.aio.otel":
            importlib.import_module(module.name)


def import_plugin() -> None:
    """pytest imports it wherever this package is installed."""
    plain = types.ModuleType("pytest")
    plain.fixture = lambda *_, **__: lambda function: function  # type: ignore[attr-defined]
    sys.modules["pytest"] = plain
    importlib.import_module("cometmq.testing.pytest_plugin")


async def send_and_receive(name_servers: str, topic: str, directory: Path) -> None:
    from cometmq.client import Message, PushConsumerConfig, ReceivedMessage
    from cometmq.client.aio import Producer, PushConsumer

    arrived: asyncio.Queue[bytes] = asyncio.Queue(10)

    async def listen(message: ReceivedMessage) -> None:
        await arrived.put(message.body)

    config = PushConsumerConfig(
        message_model="BROADCASTING",
        consume_from_where="CONSUME_FROM_FIRST_OFFSET",
        local_offset_directory=str(directory),
    )
    async with Producer(f"{topic}-senders", name_servers=name_servers) as producer:
        sent = await producer.send(Message(topic=topic, body=b"with asyncio"))
        print("sent", sent.status)
        consumer = PushConsumer(
            f"{topic}-readers", listener=listen, name_servers=name_servers, config=config
        )
        async with consumer:
            consumer.subscribe(topic)
            print("got", (await asyncio.wait_for(arrived.get(), 30)).decode())
    print("kept", *sorted(path.name for path in directory.rglob("*") if path.is_file()))


def send_and_poll(name_servers: str, topic: str) -> None:
    from cometmq.client import LitePullConfig, Message
    from cometmq.client.sync import LitePullConsumer, Producer

    config = LitePullConfig(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    with Producer(f"{topic}-senders", name_servers=name_servers) as producer:
        print("sent", producer.send(Message(topic=topic, body=b"blocking")).status)
    with LitePullConsumer(f"{topic}-polls", name_servers=name_servers, config=config) as consumer:
        consumer.subscribe(topic)
        bodies: list[bytes] = []
        while len(bodies) < 2:
            bodies += [message.body for message in consumer.poll(timeout=30)]
    print("got", *(body.decode() for body in sorted(bodies)), sep=" | ")


def main(part: str, name_servers: str, topic: str, directory: str = "") -> None:
    if part == "library":
        take_posix_away(CLIENT_NEEDS)
        import_all()
        asyncio.run(send_and_receive(name_servers, topic, Path(directory)))
        send_and_poll(name_servers, topic)
        import_plugin()
    else:
        take_posix_away(COMMANDS_NEED)
        commands = importlib.import_module("cometmq.cli.main")
        commands.main([part, "--topic", topic, "--name-server", name_servers])


if __name__ == "__main__":
    main(*sys.argv[1:])
