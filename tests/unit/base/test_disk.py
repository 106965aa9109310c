"""The real disk, as far as a directory of a test goes."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cometmq.base.disk import SystemFiles
from cometmq.base.errors import StoreError

FILES = SystemFiles()


@pytest.mark.parametrize("allocate", [True, False])
def test_a_new_file_is_zero_and_keeps_what_is_written(tmp_path: Path, allocate: bool) -> None:
    path = str(tmp_path / "f")
    file = FILES.create(path, 8192, allocate=allocate)
    assert (file.path, file.size_bytes) == (path, 8192)
    assert file.read_at(0, 8192) == bytes(8192)
    file.write_at(4090, b"0123456789")
    assert file.read_at(4088, 6) == b"\0\x000123"
    assert bytes(file.view(4090, 10)) == b"0123456789"
    file.sync()
    file.close()
    file.close()
    assert FILES.size(path) == 8192
    again = FILES.open(path, mapped=allocate, writable=False)
    assert again.read_at(4090, 10) == b"0123456789"
    assert again.read_at(8190, 100) == b"\0\0"
    again.close()


@pytest.mark.parametrize("allocate", [True, False])
def test_a_closed_file_holds_no_descriptor_whoever_still_refers_to_it(
    tmp_path: Path, allocate: bool
) -> None:
    """A mapping has a descriptor of its own, and the traceback of an error may refer to the file for long."""
    before = descriptors()
    file = FILES.create(str(tmp_path / "f"), 8192, allocate=allocate)
    view = file.view(0, 10)
    file.close()
    del view
    assert descriptors() == before, file


def descriptors() -> list[str]:
    return os.listdir("/proc/self/fd")  # noqa: PTH208 - names only


@pytest.mark.parametrize("allocate", [True, False])
def test_appends_of_all_sizes_lie_one_behind_the_other(tmp_path: Path, allocate: bool) -> None:
    """Pages are made ready ahead of small ones and not of large ones; the last ones reach the end of the file."""
    size_bytes = 1 << 18
    path = tmp_path / "f"
    file = FILES.create(str(path), size_bytes, allocate=allocate)
    sizes = [1, 5000, 70_000, 3, 16_384, 65_536, 4096, 16_383, 40_000, 1200]
    written = b""
    for number, size in enumerate([*sizes, size_bytes - sum(sizes) - 9, 9], 1):
        file.append_at(len(written), bytes([number]) * size)
        written += bytes([number]) * size
        if number == len(sizes):
            # What follows is still zero, and a file that was closed goes on from there.
            assert path.read_bytes() == written.ljust(size_bytes, b"\0")
            file.close()
            file = FILES.open(str(path), mapped=allocate)
    assert path.read_bytes() == written
    assert bytes(file.view(0, size_bytes)) == written
    file.close()


def test_an_append_fills_few_pages_of_a_mapped_file(tmp_path: Path) -> None:
    """Those around a fault are as many as the kernel likes: 8 MB is 20 ms of nobody being served."""
    size_bytes = 64 << 20
    file = FILES.create(str(tmp_path / "f"), size_bytes, allocate=True)
    file.append_at(0, b"x" * 1200)
    file.append_at(1200, b"y" * 16_384)
    assert 0 < pages_in_memory(tmp_path / "f", size_bytes) * mmap.PAGESIZE <= 128 << 10
    file.close()


def test_records_appended_together_are_there_from_the_first_on_when_the_process_dies(
    tmp_path: Path,
) -> None:
    """A copy through a mapping may write its first bytes last; a sound record behind them would look like damage."""
    records = bytes(range(1, 256)) * 40
    path = str(tmp_path / "f")
    FILES.create(path, 4 * mmap.PAGESIZE, allocate=True).close()
    child = os.fork()
    if not child:
        try:
            file = FILES.open(path, mapped=True)
            file.append_at(0, b"." * 100)
            # Whoever copies across this end dies there, as if killed while the page was being fetched.
            os.truncate(path, 2 * mmap.PAGESIZE)
            file.append_at(100, records, in_order=True)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    written = (tmp_path / "f").read_bytes()[100:].rstrip(b"\0")
    assert records.startswith(written)


def pages_in_memory(path: Path, size_bytes: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    found = (ctypes.c_ubyte * (size_bytes // mmap.PAGESIZE))()
    with path.open("r+b") as file, mmap.mmap(file.fileno(), size_bytes) as mapped:
        first = ctypes.c_char.from_buffer(mapped)
        start = ctypes.c_void_p(ctypes.addressof(first))
        assert libc.mincore(start, ctypes.c_size_t(size_bytes), found) == 0, ctypes.get_errno()
        del first
    return sum(page & 1 for page in found)


@pytest.mark.parametrize("allocate", [True, False])
def test_a_file_is_not_made_over_another(tmp_path: Path, allocate: bool) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"precious")
    with pytest.raises(FileExistsError):
        FILES.create(str(path), 4096, allocate=allocate)
    assert path.read_bytes() == b"precious"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("is_nameless", [True, False])
def test_an_allocated_file_gets_its_name_when_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_nameless: bool
) -> None:
    allocate, open_ = os.posix_fallocate, os.open
    names: list[str] = []

    def look(fd: int, offset: int, length: int) -> None:
        names.extend(os.listdir(tmp_path))  # noqa: PTH208
        allocate(fd, offset, length)

    def refuse(path: str, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "no such files here")
        return open_(path, flags, mode)

    monkeypatch.setattr(os, "posix_fallocate", look)
    if not is_nameless:
        monkeypatch.setattr(os, "open", refuse)
    file = FILES.create(str(tmp_path / "f"), 4096, allocate=True)
    file.write_at(0, b"x")
    file.close()
    # RocketMQ does not start over a directory with an unfinished file in it.
    assert names == ([] if is_nameless else ["f.tmp"])
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
    assert (tmp_path / "f").read_bytes() == b"x" + bytes(4095)


def test_a_view_outlives_its_file(tmp_path: Path) -> None:
    file = FILES.create(str(tmp_path / "f"), 4096, allocate=True)
    file.write_at(0, b"still here")
    view = file.view(0, 10)
    file.close()
    FILES.remove(str(tmp_path / "f"))
    assert bytes(view) == b"still here"


def test_replacing_leaves_the_new_content_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "config.json")
    FILES.replace(path, b"old")
    FILES.replace(path, b"new")
    assert FILES.read(path) == b"new"
    assert FILES.names(str(tmp_path)) == ["config.json"]


def test_reading_nothing(tmp_path: Path) -> None:
    missing = str(tmp_path / "no" / "where")
    assert FILES.names(missing) == []
    assert not FILES.exists(missing)
    with pytest.raises(FileNotFoundError):
        FILES.read(missing)
    FILES.remove(missing)
    FILES.remove_tree(missing)


def test_directories_come_and_go_with_all_below(tmp_path: Path) -> None:
    directory = str(tmp_path / "a" / "b")
    FILES.make_directory(directory)
    FILES.make_directory(directory)
    FILES.replace(directory + "/f", b"x")
    assert FILES.modified_ms(directory + "/f") > 1_700_000_000_000
    FILES.remove_tree(str(tmp_path / "a"))
    assert FILES.names(str(tmp_path)) == []


def test_space_is_told_of_a_directory_to_be(tmp_path: Path) -> None:
    total, free = FILES.space(str(tmp_path / "not" / "yet"))
    assert total >= free > 0
    assert 0 <= FILES.used_ratio(str(tmp_path)) <= 1


def test_a_lock_keeps_other_processes_out(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    lock = FILES.lock(path)
    attempt = (
        "import sys; from cometmq.base.disk import SystemFiles; "
        "from cometmq.base.errors import StoreError\n"
        "try: SystemFiles().lock(sys.argv[1])\n"
        "except StoreError: sys.exit(3)"
    )
    assert subprocess.run([sys.executable, "-c", attempt, path], check=False).returncode == 3
    lock.release()
    lock.release()
    assert subprocess.run([sys.executable, "-c", attempt, path], check=False).returncode == 0


def test_a_lock_refusal_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def held(*_: object) -> None:
        raise BlockingIOError

    monkeypatch.setattr("cometmq.base.disk.fcntl.lockf", held)
    with pytest.raises(StoreError, match="storePathRootDir"):
        FILES.lock(str(tmp_path / "lock"))
