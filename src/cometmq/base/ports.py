"""What the operating system offers, as protocols: a clock and a disk.

``base.system`` implements them for real, ``cometmq.testing`` with fakes that jump in time and lose writes.
Whatever decides anything takes these as arguments, so that a test can stand in for the machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

TEMPORARY_SUFFIX = ".tmp"
"""Ends the name of a file in the making: an allocated or replaced file gets its real name when it is whole."""

Buffer = bytes | bytearray | memoryview


class Clock(Protocol):
    def wall_ms(self) -> int:
        """Milliseconds since 1970, UTC. May jump."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary start. Never goes back."""
        ...


class File(Protocol):
    """One open file. Writes come from one thread; ``sync`` may be called from another at the same time."""

    @property
    def path(self) -> str: ...

    @property
    def size_bytes(self) -> int: ...

    @property
    def descriptor(self) -> int:
        """Its number, which is the lowest that was free; see ``base.descriptors``. -1 when it has none."""
        ...

    def write_at(self, position: int, data: Buffer) -> None:
        """Write all of ``data`` inside the file, visible to readers on return, durable only after ``sync``.

        Raises:
            DiskFull: no space; bytes of ``data`` may or may not be in the file.
        """
        ...

    def append_at(self, position: int, data: Buffer) -> None:
        """As ``write_at``, where all from ``position`` to the end is zero and will be written next, piece by piece.

        Raises:
            DiskFull: as ``write_at``.
        """
        ...

    def read_at(self, position: int, length: int) -> bytes:
        """A copy of ``length`` bytes, fewer only at the end of the file."""
        ...

    def view(self, position: int, length: int) -> memoryview:
        """The bytes without a copy where the file is mapped; stays valid after ``close``."""
        ...

    def prefetch(self, position: int) -> None:
        """Have the page around ``position`` in memory soon, without waiting for it: a write there is to come."""
        ...

    def zero_from(self, position: int) -> None:
        """Make every byte from ``position`` to the end zero, writing only where there is something else.

        Raises:
            DiskFull: no space; the rest is as it was.
        """
        ...

    def is_whole(self) -> bool:
        """Whether the file is as long as it was when it was made or opened: others can truncate it."""
        ...

    def lengthen(self, size_bytes: int) -> None:
        """Give a sparse file that is too short so many bytes: what is new is zero. Raises DiskFull."""
        ...

    def first_hole(self) -> int:
        """Where a sparse file stops holding data: all from here to some later position is zero.

        A hint to search from, rounded up to the file system's block; the file's size where nothing is known.
        """
        ...

    def sync(self) -> None:
        """Return once everything written before the call is on the disk (fdatasync)."""
        ...

    def close(self) -> None: ...


class Lock(Protocol):
    def release(self) -> None: ...


class Files(Protocol):
    """The disk. Paths are plain strings; directories are created by ``make_directory``."""

    def create(self, path: str, size_bytes: int, *, allocate: bool) -> File:
        """A new zero-filled file of a fixed size, which must not exist yet.

        With ``allocate`` the space is reserved at once and the file is mapped: a later write cannot run out of disk,
        and the file itself survives a power loss. Without, it is sparse, and read and written by position.

        Raises:
            DiskFull: the space could not be had; no file is left behind.
        """
        ...

    def open(self, path: str, *, mapped: bool, writable: bool = True) -> File:
        """An existing file. What is both mapped and writable has the space of its holes allocated first.

        Raises:
            DiskFull: that space could not be had.
            FileNotFoundError: there is no such file.
        """
        ...

    def names(self, directory: str) -> Sequence[str]:
        """Sorted names in a directory; empty when it does not exist."""
        ...

    def exists(self, path: str) -> bool: ...

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def read(self, path: str) -> bytes:
        """All of a small file. Raises FileNotFoundError."""
        ...

    def replace(self, path: str, data: bytes) -> None:
        """Make ``data`` the whole content of ``path``, atomically and durably: old or new after a crash, no mix."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file; no error when it is already gone."""
        ...

    def make_directory(self, path: str) -> None:
        """With its parents; no error when it exists."""
        ...

    def remove_tree(self, path: str) -> None:
        """Remove a directory and all below it; no error when it is already gone."""
        ...

    def sync_directory(self, path: str) -> None:
        """Return once files created in and removed from a directory are so after a power loss, too."""
        ...

    def sync_partition(self, path: str) -> None:
        """As ``sync`` of every file and ``sync_directory`` of every directory on the partition that holds ``path``."""
        ...

    def boot_id(self) -> str:
        """Which run of the operating system this is, empty when unknown.

        As long as it stays the same, what a process wrote before it died is there, synced or not.
        """
        ...

    def open_max(self) -> int:
        """How many files and connections this process may hold open at once."""
        ...

    def memory_bytes(self) -> int:
        """Physical memory of the machine: what the page cache can hold at most."""
        ...

    def used_ratio(self, path: str) -> float:
        """Used part of the partition that holds ``path`` (0..1)."""
        ...

    def space(self, path: str) -> tuple[int, int]:
        """Total and free bytes of the partition that holds ``path``."""
        ...

    def lock(self, path: str) -> Lock:
        """Own ``path`` for this process. Raises StoreError when another process holds it."""
        ...
