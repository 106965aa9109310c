"""One member of etcd with its host. Clients call its first port, other members the second."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.world.network import Place
from tests.chaos.world.processes import ServerProcess, accepts


def is_installed() -> bool:
    return shutil.which("etcd") is not None


class EtcdHost:
    def __init__(self, name: str, place: Place, directory: Path) -> None:
        self.name = name
        self.place = place
        self._directory = directory
        directory.mkdir(parents=True)
        self.process: ServerProcess

    @property
    def url(self) -> str:
        return f"http://{self.place.address}:{self.place.port}"

    @property
    def peer(self) -> str:
        return f"{self.name}=http://{self.place.address}:{self.place.ha_port}"

    def configure(self, peers: Sequence[str]) -> None:
        place, peer_url = self.place, self.peer.partition("=")[2]
        command = [
            *(
                *place.command,
                "etcd",
                "--name",
                self.name,
                "--data-dir",
                str(self._directory / "data"),
            ),
            *("--listen-client-urls", f"http://{place.bind}:{place.port}"),
            *("--advertise-client-urls", self.url),
            *("--listen-peer-urls", f"http://{place.bind}:{place.ha_port}"),
            *("--initial-advertise-peer-urls", peer_url),
            *("--initial-cluster", ",".join(peers)),
        ]
        self.process = ServerProcess(self.name, command, {}, self._directory)

    async def start(self) -> None:
        """Returns when it accepts connections; it answers when most members are there."""
        await self.process.start(lambda: accepts(self.place))
