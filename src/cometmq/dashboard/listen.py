"""The dashboard's port, opened without loading the web server: ``cometmq up`` hands it to a process of its own."""

from __future__ import annotations

import os
import socket

from cometmq.model.address import join_address

WAITING_MAX = 256


def listen(host: str, port: int) -> socket.socket:
    """Args: port: 0 takes any free one. Raises OSError with the address in its text."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(WAITING_MAX)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        reason = os.strerror(error.errno) if error.errno else str(error)
        address = join_address(host, port)
        raise OSError(error.errno, f"the dashboard cannot listen on {address}: {reason}") from None
    return listening
