"""A controller of either make as a process: ours, or RocketMQ 5.5.0's."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from .servers import Server, ServerCommands, accepts, ask, free_ports
from .systems import OURS

GET_REPLICA_INFO = 1004


class Controller:
    """One controller, alone in its group."""

    def __init__(self, make: str, commands: ServerCommands, directory: Path) -> None:
        directory.mkdir(parents=True)
        (self.port,) = free_ports(0)
        conf = directory / "controller.conf"
        conf.write_text(
            f"controllerDLegerGroup=group\n"
            f"controllerDLegerPeers=n0-127.0.0.1:{self.port}\n"
            f"controllerDLegerSelfId=n0\n"
            f"controllerStorePath={directory / 'store'}\n"
        )
        command = [sys.executable, "-m", "cometmq.controller", "-c", str(conf)]
        if make != OURS:
            *flags, _ = commands.broker
            command = [*flags, "org.apache.rocketmq.controller.ControllerStartup", "-c", str(conf)]
        self._server = Server("controller", command, commands.environment, directory)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Of the running process."""
        return self._server.pid

    @contextlib.contextmanager
    def running(self) -> Iterator[Controller]:
        try:
            self._server.start(lambda: accepts(self.port))
            yield self
        finally:
            self._server.kill()

    def members(self, broker_name: str) -> set[int]:
        """The SyncStateSet."""
        try:
            code, body = ask(self.port, GET_REPLICA_INFO, {"brokerName": broker_name})
        except OSError:
            return set()
        return set(json.loads(body)["syncStateSet"]) if code == 0 and body else set()
