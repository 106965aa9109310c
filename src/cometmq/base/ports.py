"""What the machine offers, as protocols: a clock, a disk, and the timers of an event loop.

``base.clock``, ``base.small_files`` and ``base.disk`` implement them for real, asyncio has the real loop, and
``cometmq.testing`` fakes that jump in time and lose writes.
Code that makes decisions takes these as arguments, so that a test can replace the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

TEMPORARY_SUFFIX = ".tmp"
"""Suffix of an unfinished file: an allocated or replaced file gets its real name once it is complete."""

Buffer = bytes | bytearray | memoryview


class Clock(Protocol):
    def wall_ms(self) -> int:
        """Milliseconds since 1970, UTC. May jump."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary start. Never goes back."""
        ...


class Timer(Protocol):
    def cancel(self) -> None: ...


class EventLoop(Protocol):
    """The two calls of an event loop that parts use which neither await nor run in a task."""

    def call_soon(self, callback: Callable[[], None]) -> object: ...

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer: ...


class File(Protocol):
    """One open file. Writes come from one thread; ``sync`` may be called from another at the same time."""

    @property
    def path(self) -> str: ...

    @property
    def size_bytes(self) -> int: ...

    @property
    def descriptor(self) -> int:
        """The descriptor's number, the lowest that was free; see ``base.descriptors``. -1 if there is none."""
        ...

    def write_at(self, position: int, data: Buffer) -> None:
        """Write all of ``data`` inside the file. Visible to readers on return, durable only after ``sync``.

        Raises:
            DiskFull: no space; bytes of ``data`` may or may not be in the file.
        """
        ...

    def append_at(self, position: int, data: Buffer, *, in_order: bool = False) -> None:
        """Like ``write_at``, for a file that is all zeros from ``position`` on and is written sequentially from there.

        Args:
            in_order: a process that is killed meanwhile leaves the beginning of ``data``, and zeros behind it.

        Raises:
            DiskFull: as ``write_at``.
        """
        ...

    def read_at(self, position: int, length: int) -> bytes:
        """A copy of ``length`` bytes, fewer only at the end of the file."""
        ...

    def read_into(self, position: int, target: memoryview) -> int:
        """Fill ``target``. How many bytes were read, fewer than it holds only at the end of the file."""
        ...

    def view(self, position: int, length: int) -> memoryview:
        """The bytes, without a copy if the file is mapped; stays valid after ``close``."""
        ...

    def prefetch(self, position: int, length: int = 1) -> None:
        """Start loading the pages around these bytes into memory, without waiting: they are about to be used."""
        ...

    def is_loaded(self, position: int, length: int) -> bool:
        """Whether these bytes are probably in memory, so that nobody who reads them waits for the disk.

        Asks about some of them only. True where it cannot be known.
        """
        ...

    def zero_from(self, position: int) -> None:
        """Make every byte from ``position`` to the end zero, writing only where it is not zero already.

        Raises:
            DiskFull: no space; the rest is unchanged.
        """
        ...

    def is_whole(self) -> bool:
        """Whether the file is still as long as when it was created or opened: others can truncate it."""
        ...

    def lengthen(self, size_bytes: int) -> None:
        """Extend a sparse file to ``size_bytes`` with zeros. Raises DiskFull."""
        ...

    def first_hole(self) -> int:
        """Where a sparse file stops holding data: everything from here to some later position is zero.

        A hint to search from, rounded up to the file system's block size; the file's size if nothing is known.
        """
        ...

    def sync(self) -> None:
        """Return once everything written before the call is on disk (fdatasync)."""
        ...

    def close(self) -> None: ...


class Lock(Protocol):
    def release(self) -> None: ...


class SmallFiles(Protocol):
    """Files that are read and written as a whole. Paths are plain strings."""

    def read(self, path: str) -> bytes:
        """All of a small file. Raises FileNotFoundError."""
        ...

    def replace(self, path: str, data: bytes) -> None:
        """Make ``data`` the whole content of ``path``, atomically and durably: old or new after a crash, no mix.

        Raises:
            DiskFull: no space; the old content stays.
        """
        ...

    def make_directory(self, path: str) -> None:
        """With its parents; no error when it exists."""
        ...

    def sync_directory(self, path: str) -> None:
        """Return once files created in and removed from a directory are so after a power loss, too."""
        ...


class Files(SmallFiles, Protocol):
    """The disk, as a store needs it."""

    def create(self, path: str, size_bytes: int, *, allocate: bool) -> File:
        """A new zero-filled file of a fixed size, which must not exist yet.

        With ``allocate`` the space is reserved at once and the file is mapped: a later write cannot run out of disk,
        and the file itself survives a power loss. Without, it is sparse, and read and written by position.

        Raises:
            DiskFull: the space could not be allocated; no file is left behind.
        """
        ...

    def open(self, path: str, *, mapped: bool, writable: bool = True) -> File:
        """An existing file. If it is both mapped and writable, space for its holes is allocated first.

        Raises:
            DiskFull: that space could not be allocated.
            FileNotFoundError: there is no such file.
        """
        ...

    def names(self, directory: str) -> Sequence[str]:
        """Sorted names in a directory; empty if it does not exist. Raises NotADirectoryError."""
        ...

    def exists(self, path: str) -> bool: ...

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def remove(self, path: str) -> None:
        """Remove a file; no error if it does not exist."""
        ...

    def remove_tree(self, path: str) -> None:
        """Remove a directory and everything below it; no error if it does not exist."""
        ...

    def sync_partition(self, path: str) -> None:
        """``sync`` every file and ``sync_directory`` every directory on the partition that holds ``path``."""
        ...

    def boot_id(self) -> str:
        """Identifies the current boot of the operating system; empty if unknown.

        As long as it stays the same, what a process wrote before it died is still there, synced or not.
        """
        ...

    def open_max(self) -> int:
        """How many files and connections this process may hold open at once."""
        ...

    def memory_bytes(self) -> int:
        """Physical memory of the machine: the maximum size of the page cache."""
        ...

    def used_ratio(self, path: str) -> float:
        """Used fraction of the partition that holds ``path`` (0..1)."""
        ...

    def space(self, path: str) -> tuple[int, int]:
        """Total and free bytes of the partition that holds ``path``."""
        ...

    def lock(self, path: str) -> Lock:
        """Lock ``path`` for this process. Raises StoreError if another process holds it."""
        ...
