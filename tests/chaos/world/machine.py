"""A broker's machine, as far as a test has to be its master: syncs that fail, a clock that jumps, power that goes.

``machine.c`` is compiled once and loaded into the server before its system library. It keeps a shadow of each file as
of its last sync. ``lose_power`` gives a dead server's files the content that a disk could have after a power loss: what
was synced, and of the rest nothing or a random part.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import shutil
import struct
import subprocess
import tempfile
import time
import uuid
from pathlib import Path
from random import Random
from typing import Final

SOURCE: Final = Path(__file__).with_name("machine.c")
PAGE_BYTES: Final = 4096
NAME_SECONDS: Final = 5.0
"""After so long a file system has written the names and sizes of its files by itself (ext4's commit interval)."""
_CONTROL: Final = struct.Struct("=qq")
_GET_GENERATION: Final = 0x80087601


def compiler() -> str | None:
    return shutil.which("cc")


def compile_library(directory: Path) -> Path:
    """Raises CalledProcessError with the compiler's own words."""
    library = directory / "machine.so"
    command = [
        "cc",
        "-O2",
        "-shared",
        "-fPIC",
        "-o",
        str(library),
        str(SOURCE),
        "-ldl",
        "-lpthread",
    ]
    subprocess.run(command, check=True, stderr=subprocess.PIPE, text=True)
    return library


class Machine:
    """Args:
    library: what ``compile_library`` made; None: a machine that the test is not master of.
    disk: the directory with all that a power loss concerns.
    """

    def __init__(self, library: Path | None, directory: Path, disk: Path) -> None:
        self._library = library
        self._disk = disk
        self._shadow = directory / "shadow"
        self._boot = directory / "boot_id"
        self._control = directory / "control"
        self._shadow.mkdir(parents=True, exist_ok=True)
        self._control.write_bytes(bytes(PAGE_BYTES))
        self._sync_fails = False
        self._clock_seconds = 0.0
        self._new_boot()

    @property
    def environment(self) -> dict[str, str]:
        if self._library is None:
            return {}
        return {
            "LD_PRELOAD": str(self._library),
            "CHAOS_CONTROL": str(self._control),
            "CHAOS_SHADOW": str(self._shadow),
            "CHAOS_ROOT": str(self._disk),
            "CHAOS_BOOT": str(self._boot),
        }

    def fail_syncs(self, fails: bool) -> None:
        self._sync_fails = fails
        self._write()

    def jump_clock(self, seconds: float) -> None:
        """0 puts it right again."""
        self._clock_seconds = seconds
        self._write()

    def lose_power(self, random: Random) -> str:
        """The server must be dead. Returns what happened, for the report."""
        share = random.choice((0.0, 0.5))
        lost = sum(
            lose_unsynced(path, self._shadow, random, share)
            for path in sorted(self._disk.rglob("*"))
            if path.is_file()
        )
        self._new_boot()
        return f"{lost} unsynced pages, {share:.0%} kept"

    def replace(self) -> None:
        """By a new one, which knows nothing of what was ever synced."""
        shutil.rmtree(self._shadow)
        self._shadow.mkdir()
        self._new_boot()

    def _new_boot(self) -> None:
        self._boot.write_text(f"{uuid.uuid4()}\n")

    def _write(self) -> None:
        values = _CONTROL.pack(int(self._sync_fails), int(self._clock_seconds * 1e9))
        with self._control.open("r+b") as file, mmap.mmap(file.fileno(), PAGE_BYTES) as page:
            page[: len(values)] = values


def lose_unsynced(path: Path, shadow: Path, random: Random, share: float) -> int:
    """Give a file what a disk could have after a power loss; ``share`` of the changed pages are there all the same.
    How many pages were not synced."""
    with path.open("r+b") as file:
        kept = shadow / _shadow_name(file.fileno())
        if not kept.exists():
            is_known = time.time() - path.stat().st_ctime > NAME_SECONDS
            if not is_known and random.random() < 0.5:
                path.unlink()
            else:
                size = path.stat().st_size
                file.truncate(0)
                file.truncate(size)
            return 0
        lost = 0
        with kept.open("rb") as old:
            position = 0
            while True:
                was, now = old.read(PAGE_BYTES), file.read(PAGE_BYTES)
                if not was and not now:
                    break
                if was != now:
                    lost += 1
                    if random.random() >= share:
                        file.seek(position)
                        file.write(was)
                        file.seek(position + PAGE_BYTES)
                position += PAGE_BYTES
        file.truncate(kept.stat().st_size)
        return lost


def has_tmpfs() -> bool:
    """Whether a small file system can be mounted here."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        return False
    with tempfile.TemporaryDirectory(prefix="chaos-") as directory:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", directory], stderr=subprocess.DEVNULL
        )
        if mounted.returncode == 0:
            subprocess.run(["umount", directory], check=True)
        return mounted.returncode == 0


def _shadow_name(descriptor: int) -> str:
    number = os.fstat(descriptor).st_ino
    try:
        answer = fcntl.ioctl(descriptor, _GET_GENERATION, bytes(8))
        (generation,) = struct.unpack_from("=I", answer)
    except OSError:
        generation = 0
    return f"{number}-{generation}"
