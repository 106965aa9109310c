"""What systemd is told: that the server is up, that it stops, and, as a watchdog asks for it, that it is well.

The protocol of sd_notify(3): datagrams to the socket that ``NOTIFY_SOCKET`` names. Without it nobody is told.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Mapping

logger = logging.getLogger("cometmq.monitor")


class ServiceManager:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "")
        self._watchdog_seconds = _watchdog_seconds(environment)
        self._timer: asyncio.TimerHandle | None = None
        self._was_well = True

    def ready(self, is_well: Callable[[], bool]) -> None:
        """The server is up. From now on the watchdog is fed as long as it is well."""
        self._tell("READY=1")
        if self._watchdog_seconds:
            self._feed(is_well)

    def stopping(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._tell("STOPPING=1")

    def _feed(self, is_well: Callable[[], bool]) -> None:
        if is_well():
            self._was_well = True
            self._tell("WATCHDOG=1")
        elif self._was_well:
            self._was_well = False
            logger.error("watchdog not fed: this server is not well, see /healthz")
        # Twice as often as asked for, as systemd advises.
        self._timer = asyncio.get_running_loop().call_later(
            self._watchdog_seconds / 2, self._feed, is_well
        )

    def _tell(self, state: str) -> None:
        if not self._address:
            return
        # "@" stands for the zero byte of a name without a file.
        address = "\0" + self._address[1:] if self._address[0] == "@" else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                # Not to wait for a manager that does not read.
                sock.setblocking(False)
                sock.sendto(state.encode(), address)
        except OSError as error:
            logger.warning("service manager not told state=%s reason=%s", state, error)


def _watchdog_seconds(environment: Mapping[str, str]) -> float:
    """0 unless a watchdog waits for this very process."""
    micros = environment.get("WATCHDOG_USEC", "")
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    return int(micros) / 1e6 if micros.isdecimal() else 0.0
