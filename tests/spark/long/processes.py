"""``cometmq pipeline run`` as a process, and something for it to read."""

from __future__ import annotations

import sys
from pathlib import Path

from cometmq.client.sync import Producer
from cometmq.model.messages.message import Message


def command(file: str, *options: str, master: str = "local[2]") -> list[str]:
    main = "from cometmq.cli.main import main; main()"
    return [sys.executable, "-c", main, "pipeline", "run", "--master", master, *options, file]


def send(name_servers: str, numbers: range) -> None:
    with Producer("shop", name_servers=name_servers) as producer:
        producer.send_all(Message(topic="Orders", body=b"%d" % number) for number in numbers)


def java_of(pid: int) -> int:
    """The JVM of a run: Spark's scripts become Java in place, so that it is a child of the driver."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # 4711 (name) state parent ...
            before, _, after = stat.read_text().rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue  # It has ended meanwhile.
        if before.endswith("(java") and int(after.split()[1]) == pid:
            return int(stat.parent.name)
    raise AssertionError(f"process {pid} has no Java below it")
