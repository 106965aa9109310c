"""The real disk, as the store needs it: Linux only. The protocol it meets is ``ports.Files``.

Thread rule: a file is written by one thread; ``sync`` may run in another.
"""

from __future__ import annotations

import sys

if sys.platform != "linux":
    raise ImportError("the servers of CometMQ need Linux; its client works everywhere")

import ctypes
import errno
import fcntl
import mmap
import os
import resource
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence

from cometmq.base.errors import StoreError
from cometmq.base.ports import TEMPORARY_SUFFIX, Buffer, File, Lock
from cometmq.base.small_files import SystemSmallFiles, disk_errors, refuse_if_full

# syncfs is what we need and Python does not offer.
_LIBC = ctypes.CDLL(None, use_errno=True)
# Errors from file systems that do not support files without a name (O_TMPFILE), such as NFS.
_NO_NAMELESS = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL)
_OPEN_UNLIMITED = 1 << 20
_CHUNK_BYTES = 1 << 20
# The first store into a page of the mapping fills it with zeros and costs a page fault. Measured with memory that is
# new to the machine: 2.4 µs/KB, against 0.9 for a call with 36 KB. Below this size, the call itself costs more.
_CALLED_BYTES_MIN = 16 << 10
# The kernel decides how many pages one such fault fills: as many as it would read ahead from the disk. If that is 8
# MB, the process stalls for 20 ms. Pages that a call has filled before avoid this, and cost less, too.
_READY_BYTES = 64 << 10
_ZEROS = bytes(_CHUNK_BYTES)
# Whether bytes are in memory is asked about the first, the last, and one in so many between.
_ASKED_BYTES = 512 << 10
_ASKED = [bytearray(1)]


class _OpenFile(ABC):
    """What a file does by its descriptor, whether it is mapped or not."""

    __slots__ = ("_fd", "path", "size_bytes")

    path: str
    size_bytes: int
    _fd: int

    @property
    def descriptor(self) -> int:
        return self._fd

    @abstractmethod
    def write_at(self, position: int, data: Buffer) -> None: ...

    @abstractmethod
    def read_at(self, position: int, length: int) -> bytes: ...

    def prefetch(self, position: int, length: int = 1) -> None:
        os.posix_fadvise(self._fd, position, length, os.POSIX_FADV_WILLNEED)

    def is_loaded(self, position: int, length: int) -> bool:
        last = position + length - 1
        fd = self._fd
        try:
            for at in range(position, last, _ASKED_BYTES):
                os.preadv(fd, _ASKED, at, os.RWF_NOWAIT)
            os.preadv(fd, _ASKED, last, os.RWF_NOWAIT)
        except BlockingIOError:
            return False
        except OSError:
            # Not all file systems can tell.
            return True
        return True

    def zero_from(self, position: int) -> None:
        # Extent by extent, and only what is not zero: holes remain holes.
        for start, end in _data_extents(self._fd, position, self.size_bytes):
            while start < end:
                data = self.read_at(start, min(_CHUNK_BYTES, end - start))
                zeros = _ZEROS[: len(data)]
                if data != zeros:
                    self.write_at(start, zeros)
                start += len(data)

    def is_whole(self) -> bool:
        return os.fstat(self._fd).st_size >= self.size_bytes

    def first_hole(self) -> int:
        return _first_hole(self._fd, self.size_bytes)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path} {self.size_bytes} bytes>"


class MappedFile(_OpenFile):
    """A file with allocated space, read through a mapping; written through it or, if cheaper, by system calls."""

    __slots__ = ("_ready", "_view")

    def __init__(self, path: str, fd: int, size_bytes: int, *, writable: bool) -> None:
        self.path = path
        self.size_bytes = size_bytes
        # Up to here, the pages for an append are in memory.
        self._ready = 0
        # Not ours to close until the constructor has succeeded.
        self._fd = -1
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        self._view = memoryview(mmap.mmap(fd, size_bytes, access=access))
        self._fd = fd

    def write_at(self, position: int, data: Buffer) -> None:
        size_bytes = len(data)
        if size_bytes < _CALLED_BYTES_MIN or position + size_bytes > self.size_bytes:
            self._view[position : position + size_bytes] = data
        else:
            _write_at(self._fd, position, data)

    def append_at(self, position: int, data: Buffer, *, in_order: bool = False) -> None:
        end = position + len(data)
        if in_order and end <= self.size_bytes:
            # A copy into the mapping may well write its first bytes last, and ends where a kill finds it.
            _write_at(self._fd, position, data)
            self._ready = max(self._ready, end)
            return
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

    def read_into(self, position: int, target: memoryview) -> int:
        data = self._view[position : position + len(target)]
        target[: len(data)] = data
        return len(data)

    def view(self, position: int, length: int) -> memoryview:
        return self._view[position : position + length]

    def lengthen(self, size_bytes: int) -> None:
        raise StoreError(f"{self.path} is mapped: it has the length it was made with")

    def sync(self) -> None:
        # fdatasync also writes dirty pages of shared mappings, and unlike msync needs no address range.
        os.fdatasync(self._fd)

    def close(self) -> None:
        # The mapping, which has a descriptor of its own, lives on while somebody (such as a reply being sent) still
        # holds a view. We release ours, so that the last view unmaps it, whoever still refers to the closed file:
        # the traceback of an error may do so until the garbage collector runs.
        if self._fd >= 0:
            self._view.release()
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        # For a file that was abandoned without a close, because the flusher may still be using it.
        self.close()


class PositionedFile(_OpenFile):
    """A sparse file, written with pwrite so that a full disk is an error and not a SIGBUS."""

    __slots__ = ()

    def __init__(self, path: str, fd: int, size_bytes: int) -> None:
        self.path = path
        self.size_bytes = size_bytes
        self._fd = fd

    def write_at(self, position: int, data: Buffer) -> None:
        # No context manager here: it would cost more than a small write.
        try:
            _write_at(self._fd, position, data)
        except OSError as error:
            refuse_if_full(error, self.path)
            raise

    def append_at(self, position: int, data: Buffer, *, in_order: bool = False) -> None:
        self.write_at(position, data)

    def read_at(self, position: int, length: int) -> bytes:
        return os.pread(self._fd, length, position)

    def read_into(self, position: int, target: memoryview) -> int:
        done = 0
        while done < len(target):
            count = os.preadv(self._fd, [target[done:]], position + done)
            if not count:
                break
            done += count
        return done

    def view(self, position: int, length: int) -> memoryview:
        return memoryview(os.pread(self._fd, length, position))

    def lengthen(self, size_bytes: int) -> None:
        if os.fstat(self._fd).st_size < size_bytes:
            with disk_errors(self.path):
                os.ftruncate(self._fd, size_bytes)
        self.size_bytes = max(self.size_bytes, size_bytes)

    def sync(self) -> None:
        with disk_errors(self.path):
            os.fdatasync(self._fd)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class SystemFiles(SystemSmallFiles):
    def create(self, path: str, size_bytes: int, *, allocate: bool) -> File:
        if allocate:
            return self._create_allocated(path, size_bytes)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            with disk_errors(path):
                os.ftruncate(fd, size_bytes)
            return PositionedFile(path, fd, size_bytes)
        except BaseException:
            os.close(fd)
            os.unlink(path)
            raise

    def _create_allocated(self, path: str, size_bytes: int) -> File:
        """No name until it is complete: RocketMQ refuses a directory with unfinished files left by a kill."""
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
            with disk_errors(path):
                os.posix_fallocate(fd, 0, size_bytes)
                os.fsync(fd)
                if is_nameless:
                    # Python follows the link to the file only if it is given a directory as well.
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
                    # The file may have holes, because it was copied or written by Java. On a full disk, a store into
                    # a mapped hole would kill the process with SIGBUS.
                    with disk_errors(path):
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

    def remove(self, path: str) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass

    def remove_tree(self, path: str) -> None:
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            pass

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
        # The limit that a shell starts with is often far below what the process may ask for.
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
        # f_bavail excludes what only root may use: a broker should stop before root's reserve.
        used = (usage.f_blocks - usage.f_bfree) * usage.f_frsize
        free = usage.f_bavail * usage.f_frsize
        return used + free, free

    def lock(self, path: str) -> Lock:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            # Java's FileLock is a POSIX record lock. We use the same kind, so that a Java broker and ours exclude
            # each other.
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            raise StoreError(
                f"{path} is held by another process: is a broker already running on this directory? "
                "Stop it, or give this one another directory (storePathRootDir, or --data of cometmq up)."
            ) from error
        os.ftruncate(fd, 0)
        os.pwrite(fd, b"lock", 0)
        return _FileLock(fd)


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


def _data_extents(fd: int, position: int, size_bytes: int) -> list[tuple[int, int]]:
    """The extents in which a file holds data, from ``position`` on.

    All are collected before any is read: reading brings more pages into the cache, and those would count as data, too.
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
