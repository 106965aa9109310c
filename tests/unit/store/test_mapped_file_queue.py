from __future__ import annotations

from pathlib import Path

import pytest

from cometmq.base.errors import CorruptFile
from cometmq.base.system import SystemFiles
from cometmq.store.mapped_file_queue import MappedFileQueue

SIZE = 4096


def row(directory: Path) -> MappedFileQueue:
    return MappedFileQueue(str(directory), SIZE, SystemFiles())


def write(directory: Path, start: int, size: int = SIZE) -> Path:
    path = directory / f"{start:020d}"
    path.write_bytes(bytes(size))
    return path


def test_files_are_found_by_the_bytes_they_hold(tmp_path: Path) -> None:
    write(tmp_path, SIZE)
    write(tmp_path, 2 * SIZE)
    files = row(tmp_path)
    files.load()
    assert (files.start, files.end) == (SIZE, 3 * SIZE)
    assert files.at(SIZE - 1) is None
    assert files.at(3 * SIZE) is None
    found = files.at(2 * SIZE - 1)
    assert found is not None
    assert found.start == SIZE
    files.close()


@pytest.mark.parametrize("name", ["notes.txt", "0", "0000000000000000000x", "0" * 21])
def test_a_foreign_file_is_refused_by_name_and_left_alone(tmp_path: Path, name: str) -> None:
    write(tmp_path, 0)
    (tmp_path / name).write_bytes(b"precious")
    with pytest.raises(CorruptFile, match=name):
        row(tmp_path).load()
    assert (tmp_path / name).read_bytes() == b"precious"


def test_a_file_of_another_length_is_refused_with_the_setting_to_change(tmp_path: Path) -> None:
    write(tmp_path, 0, 1024)
    with pytest.raises(CorruptFile, match=r"1024 bytes long where 4096.*mappedFileSizeCommitLog"):
        row(tmp_path).load()


def test_a_missing_file_in_the_middle_is_named(tmp_path: Path) -> None:
    write(tmp_path, 0)
    write(tmp_path, 2 * SIZE)
    with pytest.raises(CorruptFile, match=f"{SIZE:020d}"):
        row(tmp_path).load()


def test_a_last_file_of_no_length_and_files_in_the_making_go(tmp_path: Path) -> None:
    write(tmp_path, 0)
    write(tmp_path, SIZE, 0)
    (tmp_path / f"{SIZE:020d}.tmp").write_bytes(b"")
    files = row(tmp_path)
    files.load()
    assert [path.name for path in sorted(tmp_path.iterdir())] == [f"{0:020d}"]
    files.close()


def test_an_empty_file_that_is_not_the_last_is_refused(tmp_path: Path) -> None:
    write(tmp_path, 0, 0)
    write(tmp_path, SIZE)
    with pytest.raises(CorruptFile, match="0 bytes long"):
        row(tmp_path).load()


def test_the_last_file_is_never_dropped(tmp_path: Path) -> None:
    write(tmp_path, 0)
    write(tmp_path, SIZE)
    files = row(tmp_path)
    files.load()
    assert files.drop_first(5) == [str(tmp_path / f"{0:020d}")]
    assert files.start == SIZE
    files.close()
