"""Hosts in network namespaces of their own, joined by ``switch``, which decides for each packet. Needs root."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.chaos.world.network import CLIENTS, NAME_SERVER, Links, Place

ROOT: Final = Path(__file__).parents[3]
NAME_SERVER_PORT: Final = 9876
BROKER_PORT: Final = 10911


def is_possible() -> bool:
    if os.geteuid() != 0 or shutil.which("ip") is None or not Path("/dev/net/tun").exists():
        return False
    name = f"chaos{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], stderr=subprocess.DEVNULL)
    if made.returncode == 0:
        subprocess.run(["ip", "netns", "del", name], check=True)
    return made.returncode == 0


class Namespaces:
    def __init__(self, seed: int) -> None:
        self._seed = seed
        # Several runs at a time have different networks.
        self._prefix = f"10.{100 + os.getpid() % 100}.{os.getpid() // 100 % 250}"
        self._addresses: dict[str, str] = {}
        self._namespaces: list[str] = []
        self._switch: asyncio.subprocess.Process | None = None
        self.name_server = f"{self._prefix}.2:{NAME_SERVER_PORT}"

    async def start(self) -> None:
        self._switch = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.chaos.world.switch", str(self._seed)),
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        await self._join(CLIENTS, "")

    async def add(self, host: str, group: str) -> Place:
        namespace = f"chaos{os.getpid()}-{host}"
        await _ip("netns", "add", namespace)
        self._namespaces.append(namespace)
        address = await self._join(host, namespace)
        port = NAME_SERVER_PORT if host == NAME_SERVER else BROKER_PORT
        command = ("ip", "netns", "exec", namespace)
        return Place("0.0.0.0", address, port, port + 1, self.name_server, command)

    async def set_links(self, links: Links) -> None:
        rows = [
            (
                self._addresses[source],
                self._addresses[target],
                link.is_cut,
                link.delay_ms,
                link.loss,
            )
            for (source, target), link in links.items()
            if source in self._addresses and target in self._addresses
        ]
        await self._tell({"links": rows})

    async def stop(self) -> None:
        if self._switch is not None:
            assert self._switch.stdin is not None
            self._switch.stdin.close()
            await self._switch.wait()
        for namespace in self._namespaces:
            await _ip("netns", "del", namespace)

    async def _join(self, host: str, namespace: str) -> str:
        number = len(self._addresses) + 1
        address = self._addresses[host] = f"{self._prefix}.{number}"
        device = f"ch{os.getpid() % 100_000}x{number}"
        await self._tell({"add": address, "device": device})
        within = ("-n", namespace) if namespace else ()
        if namespace:
            await _ip("link", "set", device, "netns", namespace)
            await _ip(*within, "link", "set", "lo", "up")
        await _ip(*within, "addr", "add", f"{address}/24", "dev", device)
        await _ip(*within, "link", "set", device, "up")
        return address

    async def _tell(self, command: object) -> None:
        assert self._switch is not None
        assert self._switch.stdin is not None
        assert self._switch.stdout is not None
        self._switch.stdin.write(json.dumps(command).encode() + b"\n")
        answer = await self._switch.stdout.readline()
        if answer != b"done\n":
            raise RuntimeError(f"the switch ended at {command}")


async def _ip(*arguments: str) -> None:
    process = await asyncio.create_subprocess_exec("ip", *arguments)
    if await process.wait():
        raise RuntimeError(f"failed: ip {' '.join(arguments)}")
