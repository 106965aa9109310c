"""A disk in memory that knows what would survive a power loss.

For every file it keeps three things: what processes see, what is on the platter, and the writes in between. For every
directory it keeps the names and the changes since its last sync. ``lose_power`` then decides at random:

- each sector holds its content after some number of the unsynced writes: none, all, or any in between. So writes get
  lost, torn and reordered across sectors, as with a real drive and page cache, but never within one sector;
- a first part of each directory's unsynced changes (create, rename, remove) has happened;
- a file whose length was never synced may be empty;
- directories themselves are durable at once.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from random import Random
from typing import Final

from cometmq.base.errors import DiskFull

SECTOR_BYTES: Final = 512
BLOCK_BYTES: Final = 4096


class Inode:
    """A file without its name."""

    __slots__ = ("blocks", "durable", "evicted", "is_size_durable", "live", "modified_ms", "writes")

    def __init__(self, size_bytes: int, modified_ms: int) -> None:
        self.live = bytearray(size_bytes)
        self.durable = bytearray(size_bytes)
        self.writes: list[tuple[int, bytes]] = []
        self.blocks: set[int] = set()
        self.evicted: set[int] = set()
        """Blocks that are said not to be in memory."""
        self.is_size_durable = False
        self.modified_ms = modified_ms

    @property
    def size_bytes(self) -> int:
        return len(self.live)

    def sync(self) -> None:
        for position, data in self.writes:
            self.durable[position : position + len(data)] = data
        self.writes = []
        self.is_size_durable = True

    def forget_writes(self) -> None:
        """A sync failed: the kernel clears the dirty marks, and no later sync will write these bytes."""
        self.writes = []

    def after_power_loss(self, random: Random) -> Inode:
        """The file as found by the next boot."""
        size_bytes = self.size_bytes
        if not self.is_size_durable and random.random() < 0.5:
            size_bytes = 0
        found = Inode(size_bytes, self.modified_ms)
        if size_bytes:
            found.live[:] = self.durable
            self._keep_some_writes(found.live, random)
            found.durable[:] = found.live
            found.blocks = set(self.blocks)
        found.is_size_durable = True
        return found

    def _keep_some_writes(self, content: bytearray, random: Random) -> None:
        total = len(self.writes)
        mood = random.choice(("none", "all", "some", "some"))
        kept_by_sector: dict[int, int] = {}
        for number, (position, data) in enumerate(self.writes):
            at = position
            end = position + len(data)
            while at < end:
                sector = at // SECTOR_BYTES
                until = min(end, (sector + 1) * SECTOR_BYTES)
                if sector not in kept_by_sector:
                    choices = {"none": 0, "all": total, "some": random.randint(0, total)}
                    kept_by_sector[sector] = choices[mood]
                if number < kept_by_sector[sector]:
                    content[at:until] = data[at - position : until - position]
                at = until


@dataclass(frozen=True, slots=True)
class NameChange:
    """``removed`` and ``added`` happen together: both are set for a rename."""

    removed: str | None = None
    added: str | None = None
    inode: Inode | None = None

    def apply(self, names: dict[str, Inode]) -> None:
        if self.removed is not None:
            names.pop(self.removed, None)
        if self.added is not None:
            assert self.inode is not None
            names[self.added] = self.inode


class MemoryDisk:
    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = total_bytes
        self.directories: set[str] = {"/"}
        self.names: dict[str, Inode] = {}
        self._durable_names: dict[str, Inode] = {}
        self._changes: dict[str, list[NameChange]] = {}

    @property
    def free_bytes(self) -> int:
        return self.total_bytes - sum(len(one.blocks) for one in self.names.values()) * BLOCK_BYTES

    def find(self, path: str) -> Inode:
        try:
            return self.names[path]
        except KeyError:
            raise FileNotFoundError(path) from None

    def link(self, path: str, inode: Inode) -> None:
        directory = posixpath.dirname(path)
        if directory not in self.directories:
            raise FileNotFoundError(directory)
        self._change(directory, NameChange(added=path, inode=inode))

    def unlink(self, path: str) -> None:
        self._change(posixpath.dirname(path), NameChange(removed=path))

    def rename(self, path: str, target: str) -> None:
        change = NameChange(removed=path, added=target, inode=self.find(path))
        self._change(posixpath.dirname(path), change)

    def make_directory(self, path: str) -> None:
        while path not in self.directories:
            if path in self.names:
                raise FileExistsError(path)
            self.directories.add(path)
            path = posixpath.dirname(path)

    def remove_directory(self, path: str) -> None:
        """Remove a directory and its subdirectories; its files must be gone."""
        below = path + "/"
        self.directories = {
            one for one in self.directories if one != path and not one.startswith(below)
        }

    def sync_directory(self, path: str) -> None:
        if path not in self.directories:
            raise FileNotFoundError(path)
        for change in self._changes.pop(path, []):
            change.apply(self._durable_names)

    def sync_names(self) -> None:
        """Like ``sync_directory`` for every directory, including removed ones."""
        for changes in self._changes.values():
            for change in changes:
                change.apply(self._durable_names)
        self._changes = {}

    def allocate(self, inode: Inode, position: int, length: int, path: str) -> None:
        """Allocate the blocks of a range. Raises DiskFull, and then allocates none."""
        if length == 0:
            return
        wanted = set(range(position // BLOCK_BYTES, (position + length - 1) // BLOCK_BYTES + 1))
        missing = wanted - inode.blocks
        if missing and len(missing) * BLOCK_BYTES > self.free_bytes:
            raise DiskFull(f"no space left to write {path}")
        inode.blocks |= missing

    def write(self, inode: Inode, position: int, data: bytes, now_ms: int) -> None:
        inode.live[position : position + len(data)] = data
        inode.writes.append((position, data))
        inode.modified_ms = now_ms

    def lose_power(self, random: Random) -> None:
        names = self._durable_names
        for changes in self._changes.values():
            for change in changes[: random.randint(0, len(changes))]:
                change.apply(names)
        found: dict[int, Inode] = {}
        for path in sorted(names):
            inode = names[path]
            if id(inode) not in found:
                found[id(inode)] = inode.after_power_loss(random)
            names[path] = found[id(inode)]
        # A name that reappears brings its directory with it.
        for path in names:
            self.make_directory(posixpath.dirname(path))
        self._changes = {}
        self._durable_names = names
        self.names = dict(names)

    def _change(self, directory: str, change: NameChange) -> None:
        change.apply(self.names)
        self._changes.setdefault(directory, []).append(change)
