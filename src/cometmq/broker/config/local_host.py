"""What this machine calls itself, for settings that were left out."""

from __future__ import annotations

import socket
from pathlib import Path

from cometmq.remoting.local_address import local_address


def name() -> str:
    """The host name; ``DEFAULT_BROKER`` when the machine has none, as in RocketMQ."""
    return socket.gethostname() or "DEFAULT_BROKER"


def home() -> str:
    """The user's home directory, below which RocketMQ keeps its data by default."""
    return str(Path.home())


def address() -> str:
    """The address other machines most likely reach this one at; loopback when there is none."""
    return local_address()
