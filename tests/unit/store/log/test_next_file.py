"""The next log file: why there is none is told to everybody who is refused for it."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from cometmq.base.disk import SystemFiles
from cometmq.base.errors import DiskFull
from cometmq.base.ports import File
from cometmq.store.log.next_file import NextFile
from cometmq.testing.fake_clock import FakeClock


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "cannot be made: .*Too many open files"),
        (DiskFull("no space left to write"), "no space left to write"),
    ],
)
def test_the_reason_is_told_to_those_who_come_later_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str
) -> None:
    files = SystemFiles()
    real = files.create
    failures = [error]

    def create(path: str, size_bytes: int, *, allocate: bool) -> File:
        if failures:
            raise failures.pop()
        return real(path, size_bytes, allocate=allocate)

    monkeypatch.setattr(files, "create", create)
    clock = FakeClock()
    next_file = NextFile(files, 4096, clock)
    path = str(tmp_path / "next")
    for _ in range(3):
        with pytest.raises(DiskFull, match=reason):
            next_file.take(path)
    clock.advance(1.0)
    next_file.take(path).close()
