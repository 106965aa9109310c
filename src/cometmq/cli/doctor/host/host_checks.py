"""What a machine should be like for a broker. A problem may lose messages or stop it, a note makes it slower."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from cometmq.base.descriptors import DescriptorShares
from cometmq.cli.doctor.finding import Finding, Level
from cometmq.cli.doctor.host.host_facts import HostFacts

GIB: Final = 1 << 30
DESCRIPTORS_MIN: Final = 65_536
OTHER_MAPPINGS: Final = 4096
"""What libraries and Python have mapped, generously."""
SWAPPINESS_MAX: Final = 10
BACKLOG_MIN: Final = 1024
DIRTY_BACKGROUND_MAX: Final = 10
MEMORY_MIN: Final = 2 * GIB
FULL_PERCENT: Final = 75
"""From here on a broker deletes expired files at any hour."""

NETWORK: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "glusterfs", "lustre"})
VOLATILE: Final = frozenset({"tmpfs", "ramfs"})
COPY_ON_WRITE: Final = frozenset({"btrfs", "zfs"})
NO_BARRIERS: Final = frozenset({"nobarrier", "barrier=0"})
FAIR_SCHEDULERS: Final = frozenset({"bfq", "cfq"})


def file_system(facts: HostFacts) -> Iterator[Finding]:
    disk = facts.disk
    kind = disk.file_system
    if kind in VOLATILE:
        yield _problem(
            facts, "volatile-store", f"is in memory ({kind}): a restart loses it", "use a disk"
        )
    elif kind in NETWORK or kind.startswith("fuse"):
        yield _problem(
            facts,
            "network-file-system",
            f"is on {kind}: locks, syncs and full disks are not what they are on a disk",
            "use a local disk or a block device, with XFS or ext4",
        )
    elif kind == "overlay":
        yield _problem(
            facts,
            "container-layer",
            "is in the layer of a container (overlay), which goes with it",
            "mount a volume there",
        )
    elif kind in COPY_ON_WRITE:
        yield _note(
            facts,
            "copy-on-write",
            f"is on {kind}, which writes every block elsewhere: appends to allocated files are slower",
            "use XFS or ext4; on btrfs, `chattr +C` on the empty directory helps",
        )
    elif not kind:
        yield _unknown(facts, "file-system-unknown", "its file system could not be found out")
    if found := disk.options & NO_BARRIERS:
        yield _problem(
            facts,
            "no-barriers",
            f"is mounted with {', '.join(sorted(found))}: a power failure loses what was synced",
            "remount it with barriers",
        )


def space(facts: HostFacts) -> Iterator[Finding]:
    disk = facts.disk
    if not disk.total_bytes:
        return
    used = 100 - disk.free_bytes * 100 // disk.total_bytes
    if used > FULL_PERCENT:
        yield _problem(
            facts,
            "disk-nearly-full",
            f"is on a disk that is {used} % full: from {FULL_PERCENT} % on expired files go at any hour, from 85 % on "
            "also those that have not expired, and from 90 % on nothing is stored",
            "free space, use a larger disk, or lower fileReservedTime",
        )


def scheduler(facts: HostFacts) -> Iterator[Finding]:
    disk = facts.disk
    if disk.scheduler in FAIR_SCHEDULERS and not disk.is_rotating:
        yield _note(
            facts,
            "disk-scheduler",
            f"is on {disk.device} with the scheduler {disk.scheduler}, which makes syncs wait for others",
            f"echo none > /sys/block/{disk.device}/queue/scheduler, and keep it by a udev rule",
        )
    elif disk.scheduler == "none" and disk.is_rotating:
        yield _note(
            facts,
            "disk-scheduler",
            f"is on {disk.device}, which rotates, without a scheduler",
            f"echo mq-deadline > /sys/block/{disk.device}/queue/scheduler",
        )


def memory(facts: HostFacts) -> Iterator[Finding]:
    if facts.memory_bytes < MEMORY_MIN:
        yield _host(
            Level.NOTE,
            "little-memory",
            f"has {facts.memory_bytes / GIB:.1f} GiB of memory: reads go to the disk sooner",
            "give it more; what Python leaves is page cache for the newest messages",
        )
    if facts.swap_bytes and facts.swappiness is not None and facts.swappiness > SWAPPINESS_MAX:
        yield _host(
            Level.NOTE,
            "swappiness",
            f"swaps early (vm.swappiness={facts.swappiness}): a broker that is paged in answers late",
            "sysctl vm.swappiness=1, or no swap",
        )
    if facts.huge_pages == "always":
        yield _host(
            Level.NOTE,
            "huge-pages",
            "makes huge pages everywhere (transparent_hugepage=always): putting them together stops processes",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        )
    ratio = facts.dirty_background_ratio
    if ratio is not None and ratio > DIRTY_BACKGROUND_MAX:
        yield _host(
            Level.NOTE,
            "dirty-pages",
            f"collects up to {ratio} % of memory before it writes (vm.dirty_background_ratio): the disk then gets all "
            "of it at once",
            "sysctl vm.dirty_background_ratio=5 vm.dirty_ratio=20",
        )


def numa(facts: HostFacts) -> Iterator[Finding]:
    if facts.numa_nodes > 1 and facts.zone_reclaim_mode:
        yield _host(
            Level.NOTE,
            "zone-reclaim",
            f"has {facts.numa_nodes} NUMA nodes and frees page cache of one rather than using another "
            f"(vm.zone_reclaim_mode={facts.zone_reclaim_mode})",
            "sysctl vm.zone_reclaim_mode=0",
        )


def limits(facts: HostFacts) -> Iterator[Finding]:
    if facts.descriptors_max < DESCRIPTORS_MIN:
        yield _host(
            Level.PROBLEM,
            "few-descriptors",
            f"lets a process open {facts.descriptors_max} files and connections: clients are refused early",
            "raise LimitNOFILE of the service (`cometmq service install` does), or nofile in /etc/security/limits.conf",
        )
    needed = DescriptorShares(facts.descriptors_max).log_files_max + OTHER_MAPPINGS
    if facts.map_count_max is None:
        yield _host(
            Level.UNKNOWN,
            "map-count-unknown",
            "does not tell vm.max_map_count",
            "look at it outside of the container",
        )
    elif facts.map_count_max < needed:
        yield _host(
            Level.PROBLEM,
            "few-mappings",
            f"allows {facts.map_count_max} mappings (vm.max_map_count); a broker with many log files needs {needed}",
            f"sysctl vm.max_map_count={max(needed, 262_144)}",
        )
    if facts.backlog_max is not None and facts.backlog_max < BACKLOG_MIN:
        yield _host(
            Level.NOTE,
            "short-backlog",
            f"lets {facts.backlog_max} connections wait (net.core.somaxconn): when all clients come back at once, "
            "some try again a second later",
            "sysctl net.core.somaxconn=4096",
        )


def clock(facts: HostFacts) -> Iterator[Finding]:
    if facts.is_clock_synchronized is None:
        yield _host(
            Level.UNKNOWN,
            "clock-unknown",
            "does not tell whether its clock is kept right",
            "run chrony or systemd-timesyncd, and look at `timedatectl`",
        )
    elif not facts.is_clock_synchronized:
        yield _host(
            Level.PROBLEM,
            "clock-not-synchronized",
            "has a clock that nobody keeps right: times of messages, deliveries and certificates depend on it",
            "run chrony or systemd-timesyncd",
        )


CHECKS: Final[tuple[Callable[[HostFacts], Iterator[Finding]], ...]] = (
    file_system,
    space,
    limits,
    clock,
    memory,
    scheduler,
    numa,
)


def _problem(facts: HostFacts, name: str, text: str, remedy: str) -> Finding:
    return _store(facts, Level.PROBLEM, name, text, remedy)


def _note(facts: HostFacts, name: str, text: str, remedy: str) -> Finding:
    return _store(facts, Level.NOTE, name, text, remedy)


def _unknown(facts: HostFacts, name: str, text: str) -> Finding:
    return _store(facts, Level.UNKNOWN, name, text, "look at the output of `findmnt`")


def _store(facts: HostFacts, level: Level, name: str, text: str, remedy: str) -> Finding:
    subject = f"store {facts.disk.path}"
    return Finding(level=level, name=name, subject=subject, text=text, remedy=remedy)


def _host(level: Level, name: str, text: str, remedy: str) -> Finding:
    return Finding(level=level, name=name, subject="this machine", text=text, remedy=remedy)
