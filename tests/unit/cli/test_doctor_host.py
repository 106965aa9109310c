"""``cometmq doctor --host``: checks over plain data, and where the data come from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from cometmq.cli.doctor.diagnosis import diagnose_host, is_healthy
from cometmq.cli.doctor.finding import Level
from cometmq.cli.doctor.host.host_facts import Disk, HostFacts
from cometmq.cli.doctor.host.host_gather import gather_host
from cometmq.cli.main import main

GIB = 1 << 30
PAGE = (Path(__file__).parents[3] / "docs" / "operating-system.md").read_text()

DISK = Disk(
    path="/data/store",
    mount_point="/data",
    file_system="xfs",
    options=frozenset({"rw", "noatime"}),
    total_bytes=100 * GIB,
    free_bytes=60 * GIB,
    device="nvme0n1",
    scheduler="none",
    is_rotating=False,
)
GOOD = HostFacts(
    disk=DISK,
    memory_bytes=16 * GIB,
    swap_bytes=0,
    swappiness=60,
    map_count_max=262_144,
    dirty_background_ratio=5,
    zone_reclaim_mode=0,
    backlog_max=4096,
    huge_pages="madvise",
    numa_nodes=1,
    descriptors_max=1_048_576,
    is_clock_synchronized=True,
)


def test_a_good_machine_needs_nothing() -> None:
    assert diagnose_host(GOOD) == []


@pytest.mark.parametrize(
    ("changed", "name", "level"),
    [
        ({"file_system": "tmpfs"}, "volatile-store", Level.PROBLEM),
        ({"file_system": "nfs4"}, "network-file-system", Level.PROBLEM),
        ({"file_system": "fuse.sshfs"}, "network-file-system", Level.PROBLEM),
        ({"file_system": "overlay"}, "container-layer", Level.PROBLEM),
        ({"file_system": "btrfs"}, "copy-on-write", Level.NOTE),
        ({"file_system": ""}, "file-system-unknown", Level.UNKNOWN),
        ({"options": frozenset({"rw", "barrier=0"})}, "no-barriers", Level.PROBLEM),
        ({"free_bytes": 20 * GIB}, "disk-nearly-full", Level.PROBLEM),
        ({"scheduler": "bfq"}, "disk-scheduler", Level.NOTE),
        ({"is_rotating": True}, "disk-scheduler", Level.NOTE),
    ],
)
def test_disks(changed: dict[str, object], name: str, level: Level) -> None:
    disk = replace(DISK, **changed)  # type: ignore[arg-type]
    [finding] = diagnose_host(replace(GOOD, disk=disk))
    assert (finding.name, finding.level, finding.subject) == (name, level, "store /data/store")
    assert finding.remedy
    assert level is Level.UNKNOWN or f"`{name}`" in PAGE


@pytest.mark.parametrize(
    ("changed", "name", "level"),
    [
        ({"descriptors_max": 20_000}, "few-descriptors", Level.PROBLEM),
        ({"map_count_max": 30_000}, "few-mappings", Level.PROBLEM),
        ({"map_count_max": None}, "map-count-unknown", Level.UNKNOWN),
        ({"is_clock_synchronized": False}, "clock-not-synchronized", Level.PROBLEM),
        ({"is_clock_synchronized": None}, "clock-unknown", Level.UNKNOWN),
        ({"memory_bytes": GIB}, "little-memory", Level.NOTE),
        ({"swap_bytes": GIB}, "swappiness", Level.NOTE),
        ({"huge_pages": "always"}, "huge-pages", Level.NOTE),
        ({"dirty_background_ratio": 20}, "dirty-pages", Level.NOTE),
        ({"numa_nodes": 2, "zone_reclaim_mode": 1}, "zone-reclaim", Level.NOTE),
        ({"backlog_max": 128}, "short-backlog", Level.NOTE),
    ],
)
def test_machines(changed: dict[str, object], name: str, level: Level) -> None:
    findings = diagnose_host(replace(GOOD, **changed))  # type: ignore[arg-type]
    assert [(one.name, one.level) for one in findings] == [(name, level)]
    assert is_healthy(findings) is (level is Level.NOTE)
    assert level is Level.UNKNOWN or f"`{name}`" in PAGE


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """``/proc`` and ``/sys`` of a machine with two NUMA nodes, and a partition of a disk below ``tmp_path``."""
    root = tmp_path / "root"
    device = root / "sys/devices/pci/block/sdb"
    write(root, "proc/meminfo", "MemTotal:       16384 kB\nSwapTotal:       2048 kB\n")
    for name, number in [
        ("swappiness", 60),
        ("max_map_count", 65530),
        ("dirty_background_ratio", 10),
        ("zone_reclaim_mode", 1),
    ]:
        write(root, f"proc/sys/vm/{name}", f"{number}\n")
    write(root, "proc/sys/net/core/somaxconn", "4096\n")
    write(root, "sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n")
    write(root, "sys/block/sdb/queue/scheduler", "none [mq-deadline] bfq\n")
    write(root, "sys/block/sdb/queue/rotational", "1\n")
    for number in (0, 1):
        (root / f"sys/devices/system/node/node{number}").mkdir(parents=True)
    (device / "sdb1").mkdir(parents=True)
    (device / "sdb1" / "partition").touch()
    (root / "sys/dev/block").mkdir(parents=True)
    (root / "sys/dev/block" / "8:17").symlink_to(device / "sdb1")
    (tmp_path / "my data").mkdir()
    mounts = (
        "1 0 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
        f"2 1 8:17 / {tmp_path}/my\\040data rw,noatime shared:1 - xfs /dev/sdb1 rw,nobarrier\n"
    )
    write(root, "proc/self/mountinfo", mounts)
    return root


def test_where_the_data_come_from(machine: Path, tmp_path: Path) -> None:
    facts = gather_host(f"{tmp_path}/my data/later/store", machine)
    assert facts.disk == replace(
        facts.disk,
        mount_point=f"{tmp_path}/my data",
        file_system="xfs",
        options=frozenset({"rw", "noatime", "nobarrier"}),
        device="sdb",
        scheduler="mq-deadline",
        is_rotating=True,
    )
    assert facts == replace(
        facts,
        memory_bytes=16384 * 1024,
        swap_bytes=2048 * 1024,
        swappiness=60,
        map_count_max=65530,
        dirty_background_ratio=10,
        zone_reclaim_mode=1,
        backlog_max=4096,
        huge_pages="always",
        numa_nodes=2,
    )


def test_what_is_not_there_is_unknown(machine: Path, tmp_path: Path) -> None:
    (machine / "proc/sys/vm/max_map_count").unlink()
    (machine / "sys/dev/block/8:17").unlink()
    facts = gather_host(f"{tmp_path}/my data", machine)
    assert facts.map_count_max is None
    assert (facts.disk.device, facts.disk.scheduler, facts.disk.is_rotating) == ("", "", None)


def test_this_machine(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["doctor", "--host", str(tmp_path / "store"), "--json"])
    assert done.exit_code in (0, 1), done.output
    told = json.loads(done.stdout)
    assert told["healthy"] is (done.exit_code == 0)
    assert told["store"] == str(tmp_path / "store")
    text = CliRunner().invoke(main, ["doctor", "--host", str(tmp_path)])
    assert "looked at this machine, " in text.stdout
