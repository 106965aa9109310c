"""What every disk promises, run on the real one and on the one with faults (while it has none)."""

from __future__ import annotations

from pathlib import Path

import pytest

from cometmq.base.disk import SystemFiles
from cometmq.base.errors import StoreError
from cometmq.base.ports import Files
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles

PAGE = 4096


@pytest.fixture(params=["system", "memory"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Files, str]:
    """The files and a directory to work in."""
    if request.param == "system":
        return SystemFiles(), str(tmp_path)
    files = FaultyFiles(FakeClock())
    files.make_directory("/data")
    return files, "/data"


@pytest.fixture
def files(disk: tuple[Files, str]) -> Files:
    return disk[0]


@pytest.fixture
def root(disk: tuple[Files, str]) -> str:
    return disk[1]


KINDS = [
    pytest.param({"allocate": True}, id="allocated"),
    pytest.param({"allocate": False}, id="sparse"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_file_is_zero_and_takes_writes_anywhere(
    files: Files, root: str, kind: dict[str, int]
) -> None:
    file = files.create(f"{root}/one", 3 * PAGE, **kind)  # type: ignore[arg-type]
    assert file.path == f"{root}/one"
    assert file.size_bytes == 3 * PAGE
    assert file.read_at(0, 3 * PAGE) == bytes(3 * PAGE)
    file.write_at(998, b"across")
    file.write_at(3 * PAGE - 3, memoryview(b"end"))
    file.write_at(0, bytearray(b"start"))
    expected = bytearray(3 * PAGE)
    expected[0:5], expected[998:1004], expected[-3:] = b"start", b"across", b"end"
    assert file.read_at(0, 3 * PAGE) == expected
    assert file.read_at(3 * PAGE - 3, 100) == b"end"
    assert files.read(f"{root}/one") == expected
    file.sync()
    file.close()
    file.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [16 * 1024 - 1, 16 * 1024, 100_000])
def test_a_long_write_is_seen_at_once_and_changes_nothing_else(
    files: Files, root: str, kind: dict[str, int], length: int
) -> None:
    file = files.create(f"{root}/one", 200_000, **kind)  # type: ignore[arg-type]
    data = bytes(range(256)) * (length // 256 + 1)
    file.write_at(77, memoryview(data)[:length])
    assert file.read_at(0, 200_000) == bytes(77) + data[:length] + bytes(200_000 - 77 - length)
    assert bytes(file.view(77, length)) == data[:length]


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_are_read_into_memory_of_the_reader(
    files: Files, root: str, kind: dict[str, int]
) -> None:
    file = files.create(f"{root}/one", 2 * PAGE, **kind)  # type: ignore[arg-type]
    file.write_at(PAGE - 2, b"across")
    target = bytearray(b"." * 10)
    assert file.read_into(PAGE - 2, memoryview(target)[1:7]) == 6
    assert target == b".across..."
    file.write_at(2 * PAGE - 3, b"end")
    assert file.read_into(2 * PAGE - 3, memoryview(target)) == 3
    assert target == b"endross..."
    assert file.read_into(2 * PAGE, memoryview(target)) == 0
    assert file.read_into(0, memoryview(bytearray())) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_content_is_there_when_opened_again(files: Files, root: str, kind: dict[str, int]) -> None:
    file = files.create(f"{root}/one", PAGE, **kind)  # type: ignore[arg-type]
    file.write_at(10, b"hello")
    file.close()
    for mapped in (False, True):
        for writable in (False, True):
            again = files.open(f"{root}/one", mapped=mapped, writable=writable)
            assert again.size_bytes == PAGE
            assert again.read_at(10, 5) == b"hello"
            again.close()


def test_a_view_of_a_mapped_file_follows_writes_and_outlives_close(files: Files, root: str) -> None:
    file = files.create(f"{root}/one", PAGE, allocate=True)
    view = file.view(100, 5)
    file.write_at(100, b"hello")
    assert bytes(view) == b"hello"
    file.close()
    assert bytes(view) == b"hello"


@pytest.mark.parametrize("kind", KINDS)
def test_prefetching_changes_nothing(files: Files, root: str, kind: dict[str, int]) -> None:
    file = files.create(f"{root}/one", 3 * PAGE, **kind)  # type: ignore[arg-type]
    file.write_at(PAGE, b"there")
    for position in (0, PAGE + 3, 3 * PAGE - 1):
        file.prefetch(position)
    assert file.read_at(0, 3 * PAGE) == bytes(PAGE) + b"there" + bytes(2 * PAGE - 5)


def test_two_open_files_see_each_other(files: Files, root: str) -> None:
    first = files.create(f"{root}/one", PAGE, allocate=False)
    second = files.open(f"{root}/one", mapped=True, writable=False)
    first.write_at(7, b"x")
    assert second.read_at(7, 1) == b"x"
    assert bytes(second.view(7, 1)) == b"x"


def test_zero_from_clears_the_rest_and_nothing_else(files: Files, root: str) -> None:
    for allocate in (True, False):
        file = files.create(f"{root}/{allocate}", 5 * PAGE, allocate=allocate)
        file.write_at(0, b"a" * (2 * PAGE))
        file.write_at(4 * PAGE, b"b" * 10)
        file.zero_from(PAGE + 1)
        assert file.read_at(0, 5 * PAGE) == b"a" * (PAGE + 1) + bytes(4 * PAGE - 1)
        file.zero_from(5 * PAGE)


def test_first_hole_is_behind_what_was_written_first(files: Files, root: str) -> None:
    file = files.create(f"{root}/one", 64 * PAGE, allocate=False)
    file.write_at(0, b"x" * 100)
    assert 100 <= file.first_hole() <= file.size_bytes


@pytest.mark.parametrize("allocate", [True, False])
def test_an_existing_file_is_not_created_again(files: Files, root: str, allocate: bool) -> None:
    files.create(f"{root}/one", PAGE, allocate=allocate).write_at(0, b"keep")
    with pytest.raises(FileExistsError):
        files.create(f"{root}/one", PAGE, allocate=allocate)
    assert files.read(f"{root}/one")[:4] == b"keep"


def test_missing_files_are_missing(files: Files, root: str) -> None:
    path = f"{root}/nothing"
    assert not files.exists(path)
    with pytest.raises(FileNotFoundError):
        files.open(path, mapped=False)
    with pytest.raises(FileNotFoundError):
        files.read(path)
    with pytest.raises(FileNotFoundError):
        files.size(path)
    with pytest.raises(FileNotFoundError):
        files.modified_ms(path)
    with pytest.raises(FileNotFoundError):
        files.create(f"{root}/no/directory", 1, allocate=False)
    assert files.names(path) == []
    files.remove(path)
    files.remove_tree(path)


def test_names_are_sorted_and_of_this_directory_only(files: Files, root: str) -> None:
    files.make_directory(f"{root}/d/inner")
    files.make_directory(f"{root}/d/inner")
    for name in ("b", "a", "inner/c"):
        files.create(f"{root}/d/{name}", 1, allocate=False)
    assert list(files.names(f"{root}/d")) == ["a", "b", "inner"]
    assert files.exists(f"{root}/d/inner")
    with pytest.raises(NotADirectoryError):
        files.names(f"{root}/d/a")
    files.remove(f"{root}/d/a")
    assert list(files.names(f"{root}/d")) == ["b", "inner"]
    files.remove_tree(f"{root}/d")
    assert not files.exists(f"{root}/d")
    assert not files.exists(f"{root}/d/inner/c")


def test_replace_makes_and_changes_whole_files(files: Files, root: str) -> None:
    path = f"{root}/config.json"
    files.replace(path, b"first, and longer")
    files.replace(path, b"second")
    assert files.read(path) == b"second"
    assert files.size(path) == 6
    files.replace(path, b"")
    assert files.read(path) == b""
    assert list(files.names(root)) == ["config.json"]


def test_an_allocated_file_leaves_no_other_name(files: Files, root: str) -> None:
    files.create(f"{root}/one", PAGE, allocate=True)
    assert list(files.names(root)) == ["one"]
    files.sync_directory(root)


def test_a_partition_is_synced_as_a_whole(files: Files, root: str) -> None:
    file = files.create(f"{root}/one", PAGE, allocate=False)
    file.write_at(0, b"abc")
    files.sync_partition(root)
    assert file.read_at(0, 3) == b"abc"
    file.close()
    with pytest.raises(FileNotFoundError):
        files.sync_partition(f"{root}/absent")


def test_a_lock_is_held_until_released(files: Files, root: str) -> None:
    lock = files.lock(f"{root}/lock")
    assert files.exists(f"{root}/lock")
    lock.release()
    lock.release()
    files.lock(f"{root}/lock").release()


def test_a_lock_of_another_process_is_refused_by_the_fake() -> None:
    # POSIX record locks belong to the process, so the real one cannot be tried within a single one.
    files = FaultyFiles(FakeClock())
    files.lock("/lock")
    with pytest.raises(StoreError, match="another process"):
        files.lock("/lock")


def test_space_and_time_are_told(files: Files, root: str) -> None:
    files.replace(f"{root}/one", b"x")
    total, free = files.space(root)
    assert 0 <= free <= total
    assert 0 <= files.used_ratio(root) <= 1
    assert files.modified_ms(f"{root}/one") > 1_690_000_000_000
    assert files.memory_bytes() > 0
    assert files.boot_id() == files.boot_id()


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_just_written_or_read_is_in_memory(
    files: Files, root: str, kind: dict[str, int]
) -> None:
    file = files.create(f"{root}/one", 3 * PAGE, **kind)  # type: ignore[arg-type]
    file.write_at(0, bytes(3 * PAGE))
    file.prefetch(PAGE, 2 * PAGE)
    assert file.read_into(PAGE, memoryview(bytearray(PAGE))) == PAGE
    for position, length in ((0, 1), (PAGE - 1, 2), (0, 3 * PAGE), (3 * PAGE - 1, 1)):
        assert file.is_loaded(position, length)
    file.close()
