"""The dashboard of ``cometmq up``, in a process of its own: whatever it does, the broker's event loop does not notice.

The port is opened here and handed over, so that its address is known at once; who opens the page meanwhile waits in
the port's queue. The process ends when its standard input is closed, which happens when we end in whatever way.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Mapping
from typing import Final

from cometmq.cli.children.child import Child
from cometmq.dashboard.dashboard_config import PORT
from cometmq.dashboard.listen import listen
from cometmq.model.address import join_address

log = logging.getLogger("cometmq.dashboard")

HOST: Final = "127.0.0.1"
STOP_SECONDS_MAX: Final = 10.0


class DashboardProcess:
    """
    Args:
        port: None takes the usual one, or any other if that is taken.
        account: access_key and secret_key, if the servers want one.
    """

    def __init__(
        self,
        *,
        port: int | None,
        settings: Mapping[str, str],
        account: Mapping[str, str] | None,
        log_level: str,
    ) -> None:
        self._port = port
        self._settings = dict(settings)
        self._account = account
        self._child = Child(
            *("cometmq.cli", "dashboard", "--from-stdin", "--log-level", log_level),
            stop_seconds_max=STOP_SECONDS_MAX,
        )
        self._watching: asyncio.Task[None] | None = None
        self.url = ""

    async def start(self) -> None:
        """Returns when the port is open. Raises OSError: it is taken."""
        listening = self._listen()
        with listening:
            self.url = f"http://{join_address(HOST, listening.getsockname()[1])}/"
            told: dict[str, object] = {"settings": self._settings, "descriptor": listening.fileno()}
            if self._account is not None:
                told["account"] = dict(self._account)
            await self._child.start(told, descriptors=[listening.fileno()])
        self._watching = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await self._child.stop()

    def _listen(self) -> socket.socket:
        if self._port is not None:
            return listen(HOST, self._port)
        try:
            return listen(HOST, PORT)
        except OSError:
            return listen(HOST, 0)

    async def _watch(self) -> None:
        code = await self._child.wait()
        log.error("the dashboard ended by itself code=%d; the servers go on without it", code)
