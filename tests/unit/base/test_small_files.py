"""Files as clients use them, also where directories cannot be opened."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from cometmq.base.errors import DiskFull
from cometmq.base.small_files import SystemSmallFiles

FILES = SystemSmallFiles()


@pytest.mark.parametrize("opens_directories", [True, False])
def test_a_file_in_a_new_directory_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opens_directories: bool
) -> None:
    if not opens_directories:
        for name in ("O_DIRECTORY", "O_CLOEXEC"):
            monkeypatch.delattr(os, name)
    path = str(tmp_path / "a" / "b" / "offsets.json")
    with pytest.raises(FileNotFoundError):
        FILES.read(path)
    FILES.make_directory(str(tmp_path / "a" / "b"))
    FILES.replace(path, b"old")
    FILES.replace(path, b"new")
    assert FILES.read(path) == b"new"
    assert [each.name for each in (tmp_path / "a" / "b").iterdir()] == ["offsets.json"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_told_and_keeps_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    path = str(tmp_path / "offsets.json")
    FILES.replace(path, b"old")

    def fail(fd: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(DiskFull, match=r"offsets\.json"):
        FILES.replace(path, b"new")
    assert FILES.read(path) == b"old"
