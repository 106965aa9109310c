"""The library that makes a test the master of a server's machine, with a real process and a real mapped file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from tests.chaos.world.machine import Machine, compile_library, compiler

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")

WRITES = """
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.posix_fallocate(fd, 0, 3 * 4096)
file = mmap.mmap(fd, 3 * 4096)
file[0:6] = b"synced"
os.fdatasync(fd)
file[6:12] = b" never"
file[8192:8197] = b"never"
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_library(tmp_path_factory.mktemp("machine"))


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    (tmp_path / "disk").mkdir()
    return tmp_path / "disk"


@pytest.fixture
def machine(library: Path, tmp_path: Path, disk: Path) -> Machine:
    return Machine(library, tmp_path / "machine", disk)


def run(machine: Machine, program: str, *arguments: object) -> str:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    environment = {**os.environ, **machine.environment}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_power_loss_keeps_what_was_synced_and_no_more(machine: Machine, disk: Path) -> None:
    run(machine, WRITES, disk / "log")
    assert (disk / "log").read_bytes().startswith(b"synced never")
    # Seed 1 keeps no page that was not synced.
    assert machine.lose_power(Random(1)) == "2 unsynced pages, 0% kept"
    assert (disk / "log").read_bytes() == b"synced".ljust(3 * 4096, b"\0")


def test_a_new_machine_knows_nothing_of_what_the_lost_one_had_synced(
    machine: Machine, disk: Path
) -> None:
    run(machine, WRITES, disk / "log")
    machine.replace()
    machine.lose_power(Random(1))
    assert not (disk / "log").exists() or not any((disk / "log").read_bytes())


def test_a_renamed_file_keeps_its_content(machine: Machine, disk: Path) -> None:
    run(machine, WRITES + "os.rename(sys.argv[1], sys.argv[2])", disk / "log.tmp", disk / "log")
    machine.lose_power(Random(1))
    assert (disk / "log").read_bytes().startswith(b"synced\0")


def test_syncs_fail_on_demand(machine: Machine, disk: Path) -> None:
    program = "import os, sys; fd = os.open(sys.argv[1], 66); os.fsync(fd)"
    run(machine, program, disk / "log")
    machine.fail_syncs(True)
    with pytest.raises(AssertionError, match="Input/output error"):
        run(machine, program, disk / "log")
    machine.fail_syncs(False)
    run(machine, program, disk / "log")


def test_the_wall_clock_jumps_and_the_monotonic_one_does_not(machine: Machine) -> None:
    program = "import time; print(time.time(), time.monotonic())"
    wall, steady = map(float, run(machine, program).split())
    machine.jump_clock(-3600)
    wall_later, steady_later = map(float, run(machine, program).split())
    assert wall - 3601 < wall_later < wall - 3500
    assert steady < steady_later < steady + 100


def test_a_power_loss_is_a_new_boot(machine: Machine) -> None:
    program = "print(open('/proc/sys/kernel/random/boot_id').read())"
    before = run(machine, program)
    assert run(machine, program) == before
    machine.lose_power(Random(1))
    later = run(machine, program)
    assert later != before
    machine.replace()
    assert run(machine, program) not in (before, later)
