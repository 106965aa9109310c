"""Under which address other machines most likely reach this one."""

from __future__ import annotations

import socket

_ELSEWHERE = ("192.0.2.1", 9)


def local_address() -> str:
    """An IPv4 address of this machine; loopback when there is none."""
    # Connecting a datagram socket sends nothing, it only asks the routing table which interface it would use.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ELSEWHERE)
        except OSError:
            return "127.0.0.1"
        found: str = probe.getsockname()[0]
        return found
