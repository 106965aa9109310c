"""One broker with its host: a place in the network, a disk, a machine, a role."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path
from random import Random
from typing import Final

from tests.chaos.plan.modes import Mode
from tests.chaos.world.machine import Machine
from tests.chaos.world.network import Place
from tests.chaos.world.processes import ServerProcess, accepts
from tests.interop.servers import ServerCommands
from tests.interop.systems import RELIEF, remove_empty_files

MIB: Final = 1 << 20
DISK: Final = "size=512m"
LEFT_BYTES: Final = 64 << 10
"""A full disk has this much left."""
FILL_TRIES: Final = 20

SETTINGS: Final[dict[str, object]] = {
    "brokerClusterName": "chaos",
    "mappedFileSizeCommitLog": 4 * MIB,
    "mappedFileSizeConsumeQueue": 20 * 1000,
    "maxHashSlotNum": 5000,
    "maxIndexNum": 20000,
    "maxMessageSize": MIB,
    "messageDelayLevel": "1s 2s " + " ".join(["1s"] * 16),
    "transactionTimeOut": 2000,
    "transactionCheckInterval": 2000,
    # A half message is not given up because nobody could be asked for a while.
    "transactionCheckMax": 10_000,
    "registerNameServerPeriod": 10_000,
    "slaveReadEnable": "true",
    "rocketmq.broker.rebalance.lockMaxLiveTime": 5000,
    # A full disk is to be full for real, not by a ratio, and nothing is deleted to make room.
    "diskMaxUsedSpaceRatio": 95,
    "cleanFileForciblyEnable": "false",
}


class BrokerHost:
    """Args:
    controllers: addresses of who decides whether it is a master; empty: its ``broker_id``, 0, does.
    with_disk: whether it has a disk of its own, which can be full.
    """

    def __init__(
        self,
        name: str,
        group: str,
        broker_id: int,
        *,
        mode: Mode,
        commands: ServerCommands,
        place: Place,
        directory: Path,
        library: Path | None,
        controllers: str,
        with_disk: bool,
    ) -> None:
        self.name = name
        self.group = group
        self.broker_id = broker_id
        self.place = place
        self.is_theirs = "ROCKETMQ_HOME" in commands.environment
        self._mode = mode
        self._controllers = controllers
        self._disk = directory / "disk"
        self._disk.mkdir(parents=True)
        self._is_mounted = with_disk
        if with_disk:
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", DISK, "tmpfs", str(self._disk)], check=True
            )
        self.machine = Machine(library, directory / "machine", self._disk)
        self._conf = directory / "broker.conf"
        self.process = ServerProcess(
            name,
            [*place.command, *commands.broker, "-n", place.name_server, "-c", str(self._conf)],
            commands.environment | self.machine.environment,
            directory,
        )

    @property
    def store(self) -> Path:
        return self._disk / "store"

    @property
    def is_master(self) -> bool:
        """By its configuration, where nobody elects."""
        return self.broker_id == 0

    @property
    def address(self) -> str:
        return f"{self.place.address}:{self.place.port}"

    async def start(self) -> None:
        """Returns when it accepts connections."""
        if self.is_theirs:
            remove_empty_files(self.store)
        values = self._settings()
        self._conf.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        await self.process.start(lambda: accepts(self.place))

    async def lose_power(self, random: Random) -> str:
        """Returns what happened; it stays off."""
        await self.process.kill()
        return self.machine.lose_power(random)

    async def lose_disk(self) -> None:
        """The machine is gone with all that it had; what starts next under this name is a new one, and empty."""
        await self.process.kill()
        # Not the directory itself: a small disk may be mounted there.
        for entry in self._disk.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink()
        self.machine.replace()

    def fill_disk(self) -> None:
        ballast = os.open(self._disk / "ballast", os.O_WRONLY | os.O_CREAT)
        try:
            for _ in range(FILL_TRIES):
                free_bytes = self._free_bytes() - LEFT_BYTES
                if free_bytes <= 0:
                    break
                try:
                    os.posix_fallocate(ballast, 0, os.fstat(ballast).st_size + free_bytes)
                except OSError as error:
                    # The broker took some of it meanwhile: fill what it left.
                    if error.errno != errno.ENOSPC:
                        raise
        finally:
            os.close(ballast)

    def _free_bytes(self) -> int:
        usage = os.statvfs(self._disk)
        return usage.f_bavail * usage.f_frsize

    def free_disk(self) -> None:
        (self._disk / "ballast").unlink()

    async def remove(self) -> None:
        """With everything that it has."""
        await self.process.kill()
        self._remove_disk()

    def _remove_disk(self) -> None:
        if self._is_mounted:
            subprocess.run(["umount", "--lazy", str(self._disk)], check=True)
            self._is_mounted = False
        shutil.rmtree(self._disk, ignore_errors=True)

    def _settings(self) -> dict[str, object]:
        place, mode = self.place, self._mode
        settings: dict[str, object] = {**RELIEF} if self.is_theirs else {}
        settings |= SETTINGS
        settings |= {
            "brokerName": self.group,
            "brokerId": self.broker_id,
            "brokerRole": mode.role if self.is_master else "SLAVE",
            "flushDiskType": mode.flush,
            "listenPort": place.port,
            "haListenPort": place.ha_port,
            "bindAddress": place.bind,
            "allowAnonymous": "true",
            "brokerIP1": place.address,
            "brokerIP2": place.address,
            "storePathRootDir": self.store,
            "storePathCommitLog": self.store / "commitlog",
        }
        if self._controllers:
            # Who is elected has all that was acknowledged: all members of the set are waited for.
            settings |= {
                "enableControllerMode": "true",
                "controllerAddr": self._controllers,
                "allAckInSyncStateSet": "true",
            }
        elif mode.role == "SYNC_MASTER":
            settings["inSyncReplicas"] = 2
        return settings
