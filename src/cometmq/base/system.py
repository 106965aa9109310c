"""The real clock and the real disk; the only importer of ``time``, ``os`` and ``mmap`` below the servers.

Thread rule: a file is written by one thread; ``sync`` may run in another.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import resource
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cometmq.base.errors import DiskFull, StoreError
from cometmq.base.ports import TEMPORARY_SUFFIX, Buffer, File, Lock

# syncfs and mallopt are what we need and Python does not offer.
_LIBC = ctypes.CDLL(None, use_errno=True)
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# What the kernel says where a file system makes no files without a name (O_TMPFILE), NFS for one.
_NO_NAMELESS = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL)
_OPEN_UNLIMITED = 1 << 20
_CHUNK_BYTES = 1 << 20
# A page that is stored into through the mapping is filled with zeros first, and costs a fault. Measured where memory is
# new to the machine: 2.4 µs/KB, a call 0.9 for 36 KB at once; for less than this the call itself costs more.
_CALLED_BYTES_MIN = 16 << 10
# ... and the kernel decides how many pages one such fault fills: as many as it would read ahead from the disk. Where
# that is 8 MB nobody is served for 20 ms. Pages that a call has filled before are found there, and cost less, too.
_READY_BYTES = 64 << 10
_ZEROS = bytes(_CHUNK_BYTES)
# Of malloc.h.
_M_MMAP_THRESHOLD = -3


class SystemClock:
    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


class MappedFile:
    """A file whose space is allocated, read through a mapping; written through it or, if that costs less, by calls."""

    __slots__ = ("_fd", "_map", "_ready", "_view", "path", "size_bytes")

    def __init__(self, path: str, fd: int, size_bytes: int, *, writable: bool) -> None:
        self.path = path
        self.size_bytes = size_bytes
        # Up to here an append finds its pages in memory.
        self._ready = 0
        # Not ours to close before all is well.
        self._fd = -1
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        self._map = mmap.mmap(fd, size_bytes, access=access)
        self._view = memoryview(self._map)
        self._fd = fd

    @property
    def descriptor(self) -> int:
        return self._fd

    def write_at(self, position: int, data: Buffer) -> None:
        size_bytes = len(data)
        if size_bytes < _CALLED_BYTES_MIN or position + size_bytes > self.size_bytes:
            self._view[position : position + size_bytes] = data
        else:
            _write_at(self._fd, position, data)

    def append_at(self, position: int, data: Buffer) -> None:
        end = position + len(data)
        if end > self._ready:
            self._make_ready(position, end)
        self.write_at(position, data)

    def _make_ready(self, position: int, end: int) -> None:
        start = max(position, self._ready)
        if end - position < _CALLED_BYTES_MIN:
            end = min(end + _READY_BYTES, self.size_bytes)
            _write_at(self._fd, start, _ZEROS[: end - start])
        self._ready = end

    def read_at(self, position: int, length: int) -> bytes:
        return bytes(self._view[position : position + length])

    def view(self, position: int, length: int) -> memoryview:
        return self._view[position : position + length]

    def prefetch(self, position: int) -> None:
        os.posix_fadvise(self._fd, position, 1, os.POSIX_FADV_WILLNEED)

    def zero_from(self, position: int) -> None:
        _zero_from(self, self._fd, position)

    def is_whole(self) -> bool:
        return os.fstat(self._fd).st_size >= self.size_bytes

    def lengthen(self, size_bytes: int) -> None:
        raise StoreError(f"{self.path} is mapped: it has the length it was made with")

    def first_hole(self) -> int:
        return _first_hole(self._fd, self.size_bytes)

    def sync(self) -> None:
        # fdatasync writes dirty pages of shared mappings too, and unlike msync needs no address range.
        os.fdatasync(self._fd)

    def close(self) -> None:
        # The mapping lives on while somebody (a reply on its way out) still holds a view; dropping
        # our references lets the last of them unmap it.
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        # One that was given up without a close, because the flusher may be at it.
        self.close()

    def __repr__(self) -> str:
        return f"<MappedFile {self.path} {self.size_bytes} bytes>"


class PositionedFile:
    """A sparse file, written with pwrite so that a full disk is an error and not a SIGBUS."""

    __slots__ = ("_fd", "path", "size_bytes")

    def __init__(self, path: str, fd: int, size_bytes: int) -> None:
        self.path = path
        self.size_bytes = size_bytes
        self._fd = fd

    @property
    def descriptor(self) -> int:
        return self._fd

    def write_at(self, position: int, data: Buffer) -> None:
        # No context manager here: it would cost more than a small write.
        try:
            _write_at(self._fd, position, data)
        except OSError as error:
            _refuse_if_full(error, self.path)
            raise

    def append_at(self, position: int, data: Buffer) -> None:
        self.write_at(position, data)

    def read_at(self, position: int, length: int) -> bytes:
        return os.pread(self._fd, length, position)

    def view(self, position: int, length: int) -> memoryview:
        return memoryview(os.pread(self._fd, length, position))

    def prefetch(self, position: int) -> None:
        os.posix_fadvise(self._fd, position, 1, os.POSIX_FADV_WILLNEED)

    def zero_from(self, position: int) -> None:
        _zero_from(self, self._fd, position)

    def is_whole(self) -> bool:
        return os.fstat(self._fd).st_size >= self.size_bytes

    def lengthen(self, size_bytes: int) -> None:
        if os.fstat(self._fd).st_size < size_bytes:
            with _disk_errors(self.path):
                os.ftruncate(self._fd, size_bytes)
        self.size_bytes = max(self.size_bytes, size_bytes)

    def first_hole(self) -> int:
        return _first_hole(self._fd, self.size_bytes)

    def sync(self) -> None:
        with _disk_errors(self.path):
            os.fdatasync(self._fd)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __repr__(self) -> str:
        return f"<PositionedFile {self.path} {self.size_bytes} bytes>"


class SystemFiles:
    def create(self, path: str, size_bytes: int, *, allocate: bool) -> File:
        if allocate:
            return self._create_allocated(path, size_bytes)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            with _disk_errors(path):
                os.ftruncate(fd, size_bytes)
            return PositionedFile(path, fd, size_bytes)
        except BaseException:
            os.close(fd)
            os.unlink(path)
            raise

    def _create_allocated(self, path: str, size_bytes: int) -> File:
        """Nameless until it is whole: RocketMQ refuses a directory in which a kill left anything unfinished."""
        if os.path.exists(path):
            raise FileExistsError(path)
        temporary = path + TEMPORARY_SUFFIX
        try:
            fd = os.open(
                os.path.dirname(path) or ".", os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o644
            )
            is_nameless = True
        except OSError as error:
            if error.errno not in _NO_NAMELESS:
                raise
            fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
            is_nameless = False
        try:
            with _disk_errors(path):
                os.posix_fallocate(fd, 0, size_bytes)
                os.fsync(fd)
                if is_nameless:
                    # Python follows the link to the file only when it is given a directory, too.
                    os.link(f"/proc/self/fd/{fd}", path, src_dir_fd=fd, follow_symlinks=True)
                else:
                    os.rename(temporary, path)
                self.sync_directory(os.path.dirname(path))
            return MappedFile(path, fd, size_bytes, writable=True)
        except BaseException:
            os.close(fd)
            self.remove(temporary)
            self.remove(path)
            raise

    def open(self, path: str, *, mapped: bool, writable: bool = True) -> File:
        fd = os.open(path, (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC)
        try:
            size_bytes = os.fstat(fd).st_size
            if mapped:
                if writable and size_bytes:
                    # A file copied with holes, or written by Java, which leaves them: a store into a
                    # mapped hole of a full disk would end the process with SIGBUS.
                    with _disk_errors(path):
                        os.posix_fallocate(fd, 0, size_bytes)
                return MappedFile(path, fd, size_bytes, writable=writable)
            return PositionedFile(path, fd, size_bytes)
        except BaseException:
            os.close(fd)
            raise

    def names(self, directory: str) -> Sequence[str]:
        try:
            return sorted(os.listdir(directory))
        except FileNotFoundError:
            return []

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def replace(self, path: str, data: bytes) -> None:
        temporary = path + TEMPORARY_SUFFIX
        with _disk_errors(path):
            with open(temporary, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            self.sync_directory(os.path.dirname(path))

    def remove(self, path: str) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass

    def make_directory(self, path: str) -> None:
        with _disk_errors(path):
            os.makedirs(path, exist_ok=True)

    def remove_tree(self, path: str) -> None:
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            pass

    def sync_directory(self, path: str) -> None:
        fd = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def sync_partition(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if _LIBC.syncfs(fd) != 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), path)
        finally:
            os.close(fd)

    def boot_id(self) -> str:
        try:
            return self.read("/proc/sys/kernel/random/boot_id").decode().strip()
        except OSError:
            return ""

    def open_max(self) -> int:
        # What a shell starts with is often far below what the process may ask for.
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return _OPEN_UNLIMITED if hard == resource.RLIM_INFINITY else hard

    def memory_bytes(self) -> int:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

    def used_ratio(self, path: str) -> float:
        total, free = self.space(path)
        return (total - free) / total if total > 0 else 0.0

    def space(self, path: str) -> tuple[int, int]:
        # The directory may not exist yet; its nearest existing parent is on the same partition.
        while not os.path.exists(path):
            path = os.path.dirname(path) or "."
        usage = os.statvfs(path)
        # f_bavail leaves out what only root may use: a broker should stop before root's reserve.
        used = (usage.f_blocks - usage.f_bfree) * usage.f_frsize
        free = usage.f_bavail * usage.f_frsize
        return used + free, free

    def lock(self, path: str) -> Lock:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            # Java's FileLock is a POSIX record lock: use the same kind, so that a Java broker and we
            # exclude each other on one directory.
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            raise StoreError(
                f"{path} is held by another process: is a broker already running on this directory? "
                "Stop it, or give this one its own storePathRootDir."
            ) from error
        os.ftruncate(fd, 0)
        os.pwrite(fd, b"lock", 0)
        return _FileLock(fd)


def give_big_blocks_back() -> None:
    """Let freed memory of a megabyte and more go back to the system at once.

    Otherwise glibc takes what was freed once for what will be needed again, and keeps it between smaller blocks: 60 MB
    stayed after 120 peers had sent 16 MB each. Without glibc there is nothing to be done.
    """
    if hasattr(_LIBC, "mallopt"):
        _LIBC.mallopt(_M_MMAP_THRESHOLD, 1 << 20)


class _FileLock:
    def __init__(self, fd: int) -> None:
        self._fd = fd

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _write_at(fd: int, position: int, data: Buffer) -> None:
    written = os.pwrite(fd, data, position)
    while written < len(data):
        written += os.pwrite(fd, memoryview(data)[written:], position + written)


def _first_hole(fd: int, size_bytes: int) -> int:
    try:
        return min(os.lseek(fd, 0, os.SEEK_HOLE), size_bytes)
    except OSError:
        return size_bytes


def _zero_from(file: MappedFile | PositionedFile, fd: int, position: int) -> None:
    """Overwrite what is not zero, extent by extent, so that holes stay holes."""
    for start, end in _data_extents(fd, position, file.size_bytes):
        while start < end:
            data = file.read_at(start, min(_CHUNK_BYTES, end - start))
            zeros = _ZEROS[: len(data)]
            if data != zeros:
                file.write_at(start, zeros)
            start += len(data)


def _data_extents(fd: int, position: int, size_bytes: int) -> list[tuple[int, int]]:
    """Where a file holds data from ``position`` on.

    All of them before any is read: reading brings further pages into the cache, and those count as data, too.
    """
    extents: list[tuple[int, int]] = []
    while position < size_bytes:
        try:
            start = max(os.lseek(fd, position, os.SEEK_DATA), position)
            end = os.lseek(fd, start, os.SEEK_HOLE)
        except OSError as error:
            if error.errno != errno.ENXIO:
                extents.append((position, size_bytes))
            return extents
        extents.append((start, min(end, size_bytes)))
        position = end
    return extents


@contextmanager
def _disk_errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        _refuse_if_full(error, path)
        raise


def _refuse_if_full(error: OSError, path: str) -> None:
    if error.errno in _NO_SPACE:
        raise DiskFull(f"no space left to write {path}") from error
