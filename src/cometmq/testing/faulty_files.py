"""Files in memory that crash, fill up and fail on request: ``base.ports.Files`` for tests.

    files = FaultyFiles(FakeClock(), seed=1)
    files.crash_in(7, Moment.MIDDLE)      # the seventh disk call from here on
    ...                                   # raises Crashed, and so does every later call
    files.restart(Outage.POWER_LOSS)      # what a new process finds

Every call that changes the disk counts; calls that take several steps in the real implementation (``create`` with
``allocate``, ``replace``, ``remove_tree``) count as that many calls. ``memory_disk`` decides what survives.
"""

from __future__ import annotations

import enum
import errno
import posixpath
import threading
from collections import deque
from collections.abc import Callable, Sequence
from random import Random

from cometmq.base.errors import DiskFull, StoreError
from cometmq.base.ports import TEMPORARY_SUFFIX, Buffer, Clock, File, Lock
from cometmq.testing.memory_disk import BLOCK_BYTES, Inode, MemoryDisk


class Crashed(BaseException):
    """The process or machine is down. Not an Exception, so that code under test cannot catch it by mistake."""


class Moment(enum.Enum):
    """When the crash happens relative to a disk call. MIDDLE of a write leaves the first part of its bytes."""

    BEFORE = "before"
    MIDDLE = "middle"
    AFTER = "after"


class Outage(enum.Enum):
    """PROCESS_KILL keeps everything written; POWER_LOSS keeps what was synced, and a random part of the rest."""

    PROCESS_KILL = "process kill"
    POWER_LOSS = "power loss"


class FaultyFiles:
    def __init__(self, clock: Clock, *, seed: int = 0, total_bytes: int = 1 << 40) -> None:
        self._clock = clock
        self._random = Random(seed)
        self._disk = MemoryDisk(total_bytes)
        self._mutex = threading.RLock()
        self._locks: set[str] = set()
        self._process = 0
        self._power_losses = 0
        self._calls_left: int | None = None
        self._moment = Moment.BEFORE
        self._syncs_to_fail = 0
        self._syncs_before = 0
        self.is_down = False
        self.call_count = 0
        self.last_calls: deque[str] = deque(maxlen=50)
        """The most recent disk calls, for the message of a failed test."""

    def crash_in(self, calls: int, moment: Moment) -> None:
        """Crash in the ``calls``-th disk call from now; 1 is the next."""
        assert calls >= 1, calls
        self._calls_left = calls
        self._moment = moment

    def cancel_crash(self) -> None:
        """Forget ``crash_in``."""
        self._calls_left = None

    def crash_now(self) -> None:
        """Crash between two calls."""
        self.is_down = True

    def restart(self, outage: Outage) -> None:
        """Restart after a crash, or at any time. The files and locks of the old process are gone."""
        with self._mutex:
            if outage is Outage.POWER_LOSS:
                self._disk.lose_power(self._random)
                self._power_losses += 1
            self._process += 1
            self._locks = set()
            self._calls_left = None
            self._syncs_to_fail = self._syncs_before = 0
            self.is_down = False
            self.last_calls.append(f"-- {outage.value} --")

    def fail_syncs(self, count: int, *, after: int = 0) -> None:
        """Let the next ``after`` syncs succeed; then ``count`` raise EIO, and their data never reaches the disk."""
        self._syncs_to_fail = count
        self._syncs_before = after

    def evict(self) -> None:
        """Let no file be in memory, as far as it is asked. ``read_into`` brings bytes back, and nothing else does."""
        for inode in self._disk.names.values():
            inode.evicted = set(_blocks(0, inode.size_bytes))

    def set_free(self, free_bytes: int) -> None:
        """Resize the disk so that this much is free."""
        self._disk.total_bytes += free_bytes - self._disk.free_bytes

    def create(self, path: str, size_bytes: int, *, allocate: bool) -> File:
        if self.exists(path):
            raise FileExistsError(path)
        if allocate:
            return self._create_allocated(path, size_bytes)
        inode = Inode(0, self._clock.wall_ms())
        self._call("create", path, lambda: self._disk.link(path, inode))
        try:
            self._call("set size", path, lambda: self._resize(inode, size_bytes))
        except DiskFull:
            self.remove(path)
            raise
        return MemoryFile(self, path, inode, 0)

    def open(self, path: str, *, mapped: bool, writable: bool = True) -> File:
        with self._mutex:
            self._check_up()
            inode = self._disk.find(path)
            mapped_bytes = inode.size_bytes if mapped else 0
            if writable and mapped_bytes:
                self._disk.allocate(inode, 0, mapped_bytes, path)
            return MemoryFile(self, path, inode, mapped_bytes)

    def names(self, directory: str) -> Sequence[str]:
        with self._mutex:
            self._check_up()
            if directory in self._disk.names:
                raise NotADirectoryError(directory)
            below = directory + "/"
            paths = [*self._disk.names, *self._disk.directories]
            return sorted(
                {
                    path[len(below) :]
                    for path in paths
                    if path.startswith(below) and "/" not in path[len(below) :]
                }
            )

    def exists(self, path: str) -> bool:
        self._check_up()
        return path in self._disk.names or path in self._disk.directories

    def size(self, path: str) -> int:
        self._check_up()
        return self._disk.find(path).size_bytes

    def modified_ms(self, path: str) -> int:
        self._check_up()
        return self._disk.find(path).modified_ms

    def read(self, path: str) -> bytes:
        self._check_up()
        return bytes(self._disk.find(path).live)

    def replace(self, path: str, data: bytes) -> None:
        temporary = path + TEMPORARY_SUFFIX
        inode = Inode(len(data), self._clock.wall_ms())
        self._call("create", temporary, lambda: self._disk.link(temporary, inode))
        MemoryFile(self, temporary, inode, 0).write_at(0, data)
        self._call("sync", temporary, lambda: self._sync(inode))
        self._call("rename", path, lambda: self._disk.rename(temporary, path))
        self.sync_directory(posixpath.dirname(path))

    def remove(self, path: str) -> None:
        if self.exists(path):
            self._call("remove", path, lambda: self._disk.unlink(path))

    def make_directory(self, path: str) -> None:
        if not self.exists(path):
            self._call("make directory", path, lambda: self._disk.make_directory(path))

    def remove_tree(self, path: str) -> None:
        self._check_up()
        for name in [one for one in self._disk.names if one.startswith(path + "/")]:
            self.remove(name)
        if path in self._disk.directories:
            self._call("remove directory", path, lambda: self._disk.remove_directory(path))

    def sync_directory(self, path: str) -> None:
        self._call("sync directory", path, lambda: self._disk.sync_directory(path))

    def sync_partition(self, path: str) -> None:
        def sync_all() -> None:
            self._disk.sync_directory(path)
            for inode in self._disk.names.values():
                self._sync(inode)
            self._disk.sync_names()

        self._call("sync partition", path, sync_all)

    def boot_id(self) -> str:
        return f"boot-{self._power_losses}"

    def memory_bytes(self) -> int:
        return 1 << 30

    def open_max(self) -> int:
        return 1024

    def used_ratio(self, path: str) -> float:
        total, free = self.space(path)
        return (total - free) / total if total > 0 else 0.0

    def space(self, path: str) -> tuple[int, int]:
        self._check_up()
        return self._disk.total_bytes, self._disk.free_bytes

    def lock(self, path: str) -> Lock:
        with self._mutex:
            self._check_up()
            if path in self._locks:
                raise StoreError(f"{path} is held by another process")
            if not self.exists(path):
                inode = Inode(0, self._clock.wall_ms())
                self._call("create", path, lambda: self._disk.link(path, inode))
            self._locks.add(path)
            return _MemoryLock(self, path, self._process)

    def _create_allocated(self, path: str, size_bytes: int) -> File:
        temporary = path + TEMPORARY_SUFFIX
        inode = Inode(0, self._clock.wall_ms())
        self._call("create", temporary, lambda: self._disk.link(temporary, inode))
        try:
            self._call(
                "allocate",
                temporary,
                lambda: self._disk.allocate(inode, 0, size_bytes, path),
            )
        except DiskFull:
            self.remove(temporary)
            raise
        self._resize(inode, size_bytes)
        self._call("sync", temporary, lambda: self._sync(inode))
        self._call("rename", path, lambda: self._disk.rename(temporary, path))
        self.sync_directory(posixpath.dirname(path))
        return MemoryFile(self, path, inode, size_bytes)

    def _resize(self, inode: Inode, size_bytes: int) -> None:
        inode.live = bytearray(size_bytes)
        inode.durable = bytearray(size_bytes)

    def _sync(self, inode: Inode) -> None:
        if self._syncs_before > 0:
            self._syncs_before -= 1
        elif self._syncs_to_fail > 0:
            self._syncs_to_fail -= 1
            inode.forget_writes()
            raise OSError(errno.EIO, "sync failed on request")
        inode.sync()

    def _call(
        self,
        what: str,
        path: str,
        effect: Callable[[], None],
        part: Callable[[], None] | None = None,
    ) -> None:
        """Make one disk call, or crash before, during or after it."""
        with self._mutex:
            self._check_up()
            self.call_count += 1
            self.last_calls.append(f"{what} {path}")
            if self._calls_left is not None:
                self._calls_left -= 1
            if self._calls_left != 0:
                effect()
                return
            if self._moment is Moment.MIDDLE and part is not None:
                part()
            elif self._moment is not Moment.BEFORE:
                effect()
            self.is_down = True
            raise Crashed(f"{self._moment.value} {what} {path}")

    def _check_up(self) -> None:
        if self.is_down:
            raise Crashed("the machine is down")

    def __repr__(self) -> str:
        state = "down" if self.is_down else "up"
        return f"<FaultyFiles {state} calls={self.call_count} last={list(self.last_calls)}>"


class MemoryFile:
    """An open file. Views of the first ``mapped_bytes`` follow later writes, as with a mapping."""

    def __init__(self, files: FaultyFiles, path: str, inode: Inode, mapped_bytes: int) -> None:
        self.path = path
        self._files = files
        self._inode = inode
        self._mapped_bytes = mapped_bytes
        self._process = files._process

    @property
    def size_bytes(self) -> int:
        return self._inode.size_bytes

    @property
    def descriptor(self) -> int:
        return -1

    def write_at(self, position: int, data: Buffer) -> None:
        copy = bytes(data)
        assert position + len(copy) <= self.size_bytes, (self.path, position, len(copy))
        self._check_process()
        files = self._files
        self._call_write(position, copy, lambda: files._random.randint(0, len(copy)))

    def append_at(self, position: int, data: Buffer, *, in_order: bool = False) -> None:
        self.write_at(position, data)

    def read_at(self, position: int, length: int) -> bytes:
        self._check_process()
        self._files._check_up()
        return bytes(self._inode.live[position : position + length])

    def read_into(self, position: int, target: memoryview) -> int:
        data = self.read_at(position, len(target))
        target[: len(data)] = data
        self._inode.evicted.difference_update(_blocks(position, len(data)))
        return len(data)

    def view(self, position: int, length: int) -> memoryview:
        if position + length <= self._mapped_bytes:
            self._check_process()
            return memoryview(self._inode.live)[position : position + length].toreadonly()
        return memoryview(self.read_at(position, length))

    def prefetch(self, position: int, length: int = 1) -> None:
        """Nothing to do: what is not in memory comes when it is read into a buffer."""

    def is_loaded(self, position: int, length: int) -> bool:
        return self._inode.evicted.isdisjoint(_blocks(position, length))

    def zero_from(self, position: int) -> None:
        while position < self.size_bytes:
            until = min(self.size_bytes, (position // BLOCK_BYTES + 1) * BLOCK_BYTES)
            if any(self._inode.live[position:until]):
                self.write_at(position, bytes(until - position))
            position = until

    def is_whole(self) -> bool:
        return True

    def lengthen(self, size_bytes: int) -> None:
        assert size_bytes <= self.size_bytes, "nobody truncates these"

    def first_hole(self) -> int:
        self._check_process()
        block = 0
        while block in self._inode.blocks:
            block += 1
        return min(block * BLOCK_BYTES, self.size_bytes)

    def sync(self) -> None:
        self._check_process()
        self._files._call("sync", self.path, lambda: self._files._sync(self._inode))

    def close(self) -> None:
        """Nothing to do: an in-memory file needs no descriptor."""

    def _call_write(self, position: int, data: bytes, cut: Callable[[], int]) -> None:
        files = self._files
        disk = files._disk

        def write(content: bytes) -> None:
            disk.allocate(self._inode, position, len(content), self.path)
            disk.write(self._inode, position, content, files._clock.wall_ms())

        what = f"write {position}+{len(data)}"
        files._call(what, self.path, lambda: write(data), lambda: write(data[: cut()]))

    def _check_process(self) -> None:
        if self._process != self._files._process:
            raise Crashed(f"{self.path} was opened by a process that is gone")

    def __repr__(self) -> str:
        return f"<MemoryFile {self.path} {self.size_bytes} bytes>"


def _blocks(position: int, length: int) -> range:
    return range(position // BLOCK_BYTES, (position + length - 1) // BLOCK_BYTES + 1)


class _MemoryLock:
    def __init__(self, files: FaultyFiles, path: str, process: int) -> None:
        self._files = files
        self._path = path
        self._process = process

    def release(self) -> None:
        if self._process == self._files._process:
            self._files._locks.discard(self._path)
