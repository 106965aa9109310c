"""What this machine calls itself, for settings that were left out."""

from __future__ import annotations

import socket
from pathlib import Path

_ELSEWHERE = ("192.0.2.1", 9)


def name() -> str:
    """The host name; ``DEFAULT_BROKER`` when the machine has none, as in RocketMQ."""
    return socket.gethostname() or "DEFAULT_BROKER"


def home() -> str:
    """The user's home directory, below which RocketMQ keeps its data by default."""
    return str(Path.home())


def address() -> str:
    """The address other machines most likely reach this one at; loopback when there is none."""
    # Connecting a datagram socket sends nothing, it only asks the routing table which interface it would use.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ELSEWHERE)
        except OSError:
            return "127.0.0.1"
        found: str = probe.getsockname()[0]
        return found
