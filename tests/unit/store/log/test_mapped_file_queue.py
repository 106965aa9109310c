from __future__ import annotations

import os
from pathlib import Path

import pytest

from cometmq.base.disk import SystemFiles
from cometmq.base.errors import CorruptFile
from cometmq.store.log.mapped_file_queue import MappedFileQueue

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


def test_old_files_are_open_within_a_bound_and_views_outlive_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = SystemFiles()
    monkeypatch.setattr(files, "open_max", lambda: 4 * 32)
    for number in range(10):
        write(tmp_path, number * SIZE).write_bytes(bytes([number]) * SIZE)
    row = MappedFileQueue(str(tmp_path), SIZE, files)
    row.load()

    def open_count() -> int:
        links = [os.path.realpath(path) for path in Path("/proc/self/fd").iterdir()]
        return sum(link.startswith(str(tmp_path)) for link in links)

    for _ in range(2):
        for number, one in enumerate(row.files):
            assert one.file.read_at(5, 1) == bytes([number])
            # Two each: that of the file and that of its mapping.
            assert open_count() <= 2 * 4
    view = row.files[0].file.view(0, SIZE)
    for one in row.files:
        one.file.read_at(0, 1)
    assert bytes(view[:1]) == b"\0"
    del view
    for one in row.files[:3]:
        row.drop_first(1)
        one.close()
    assert row.files[0].file.read_at(0, 1) == b"\3"
    row.close()
    assert open_count() == 0
