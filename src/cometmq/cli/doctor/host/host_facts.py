"""What is known about a machine: plain data, gathered by ``host_gather`` and judged by ``host_checks``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """The place of a store.

    Args:
        path: that was asked about; the nearest directory that exists is meant.
        file_system: its type, such as ext4.
        options: it is mounted with these.
        device: name of the whole disk, such as nvme0n1; empty if it is none.
        scheduler: of the disk's queue; empty if unknown.
        is_rotating: None if unknown.
    """

    path: str
    mount_point: str
    file_system: str
    options: frozenset[str]
    total_bytes: int
    free_bytes: int
    device: str = ""
    scheduler: str = ""
    is_rotating: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """Numbers are None, and texts empty, where they could not be read."""

    disk: Disk
    memory_bytes: int
    swap_bytes: int | None
    swappiness: int | None
    map_count_max: int | None
    dirty_background_ratio: int | None
    zone_reclaim_mode: int | None
    backlog_max: int | None
    huge_pages: str
    """never, madvise or always."""
    numa_nodes: int
    descriptors_max: int
    is_clock_synchronized: bool | None
