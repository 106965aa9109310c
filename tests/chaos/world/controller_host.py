"""One controller with its host: a place in the network, a machine, its decisions in a file or in etcd."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.world.machine import Machine
from tests.chaos.world.network import Place
from tests.chaos.world.processes import ServerProcess, accepts
from tests.interop.servers import ServerCommands


class ControllerHost:
    def __init__(
        self,
        name: str,
        *,
        commands: ServerCommands,
        place: Place,
        directory: Path,
        library: Path | None,
    ) -> None:
        self.name = name
        self.place = place
        self._store = directory / "disk"
        self._store.mkdir(parents=True)
        self._conf = directory / "controller.conf"
        self.machine = Machine(library, directory / "machine", self._store)
        self.process = ServerProcess(
            name,
            [*place.command, *_command(commands), "-c", str(self._conf)],
            commands.environment | self.machine.environment,
            directory,
        )

    @property
    def address(self) -> str:
        return f"{self.place.address}:{self.place.port}"

    @property
    def peer(self) -> str:
        """As ``controllerDLegerPeers`` names it."""
        return f"{self.name}-{self.address}"

    def configure(self, peers: Sequence[str], etcd: Sequence[str]) -> None:
        """Args: etcd: URLs of its members; none for a controller that has a file, or a log of its own make."""
        settings: dict[str, object] = {
            "bindAddress": self.place.bind,
            "allowAnonymous": "true",
            "controllerDLegerGroup": "chaos",
            "controllerDLegerPeers": ";".join(peers),
            "controllerDLegerSelfId": self.name,
            "controllerStorePath": self._store / "store",
        }
        if etcd:
            settings["etcdEndpoints"] = ";".join(etcd)
        self._conf.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))

    async def start(self) -> None:
        """Returns when it accepts connections."""
        await self.process.start(lambda: accepts(self.place))


def _command(commands: ServerCommands) -> list[str]:
    if "ROCKETMQ_HOME" not in commands.environment:
        return [sys.executable, "-m", "cometmq.controller"]
    *flags, _ = commands.broker
    return [*flags, "org.apache.rocketmq.controller.ControllerStartup"]
