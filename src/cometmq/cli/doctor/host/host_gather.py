"""Looks at this machine, in ``/proc`` and ``/sys``; changes nothing."""

from __future__ import annotations

import ctypes
import re
import resource
from pathlib import Path
from typing import Final

from cometmq.base.disk import SystemFiles
from cometmq.cli.doctor.host.host_facts import Disk, HostFacts

_UNLIMITED: Final = 1 << 20
_TIME_ERROR: Final = 5
"""What ``adjtimex(2)`` returns while nobody keeps the clock right."""
_TIMEX_BYTES: Final = 256
"""More than its structure has; all zeros means that it only reads."""


def gather_host(store: str, root: Path = Path("/")) -> HostFacts:
    """
    Args:
        root: where ``/proc`` and ``/sys`` are.
    """
    vm = root / "proc/sys/vm"
    memory = (root / "proc/meminfo").read_text()
    return HostFacts(
        disk=_disk(store, root),
        memory_bytes=_meminfo(memory, "MemTotal") or 0,
        swap_bytes=_meminfo(memory, "SwapTotal"),
        swappiness=_number(vm / "swappiness"),
        map_count_max=_number(vm / "max_map_count"),
        dirty_background_ratio=_number(vm / "dirty_background_ratio"),
        zone_reclaim_mode=_number(vm / "zone_reclaim_mode"),
        backlog_max=_number(root / "proc/sys/net/core/somaxconn"),
        huge_pages=_chosen(root / "sys/kernel/mm/transparent_hugepage/enabled"),
        numa_nodes=len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or 1,
        descriptors_max=_descriptors_max(),
        is_clock_synchronized=_is_clock_synchronized(),
    )


def _disk(store: str, root: Path) -> Disk:
    place = Path(store).absolute()
    while not place.exists():
        place = place.parent
    place = place.resolve()
    device, mount_point, file_system, options = _mount(
        place, (root / "proc/self/mountinfo").read_text()
    )
    total_bytes, free_bytes = SystemFiles().space(str(place))
    name = _whole_disk(root, device)
    queue = root / "sys/block" / name / "queue"
    rotating = _number(queue / "rotational") if name else None
    return Disk(
        path=str(store),
        mount_point=mount_point,
        file_system=file_system,
        options=options,
        total_bytes=total_bytes,
        free_bytes=free_bytes,
        device=name,
        scheduler=_chosen(queue / "scheduler") if name else "",
        is_rotating=None if rotating is None else bool(rotating),
    )


def _mount(place: Path, mounts: str) -> tuple[str, str, str, frozenset[str]]:
    """Device number, mount point, type and options of what a path lies on: the last of the longest."""
    best = ("", "", "", frozenset[str]())
    for line in mounts.splitlines():
        head, _, tail = line.partition(" - ")
        fields, told = head.split(), tail.split()
        if len(fields) < 6 or len(told) < 3:
            continue
        point = re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), fields[4])
        if place.is_relative_to(point) and len(point) >= len(best[1]):
            options = frozenset(fields[5].split(",")) | frozenset(told[2].split(","))
            best = (fields[2], point, told[0], options)
    return best


def _whole_disk(root: Path, device: str) -> str:
    """The disk of a partition; empty if it is none, as for network file systems."""
    link = root / "sys/dev/block" / device
    if not device or not link.exists():
        return ""
    place = link.resolve()
    return place.parent.name if (place / "partition").exists() else place.name


def _chosen(path: Path) -> str:
    """The one in brackets of ``always [madvise] never``."""
    found = re.search(r"\[([\w-]+)\]", _text(path))
    return found[1] if found else _text(path)


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.isdecimal() else None


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        # Not in this container, or not in this kernel: it is told as unknown.
        return ""


def _meminfo(text: str, name: str) -> int | None:
    found = re.search(rf"^{name}:\s+(\d+) kB$", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _descriptors_max() -> int:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _UNLIMITED if hard == resource.RLIM_INFINITY else hard


def _is_clock_synchronized() -> bool | None:
    libc = ctypes.CDLL(None, use_errno=True)
    state = libc.adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    return None if state < 0 else state != _TIME_ERROR
