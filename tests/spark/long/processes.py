"""``cometmq pipeline run`` as a process, and something for it to read."""

from __future__ import annotations

import sys

from cometmq.client.sync import Producer
from cometmq.model.message import Message


def command(file: str, *options: str, master: str = "local[2]") -> list[str]:
    main = "from cometmq.cli.main import main; main()"
    return [sys.executable, "-c", main, "pipeline", "run", "--master", master, *options, file]


def send(name_servers: str, numbers: range) -> None:
    with Producer("shop", name_servers=name_servers) as producer:
        producer.send_all(Message(topic="Orders", body=b"%d" % number) for number in numbers)
