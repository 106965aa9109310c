"""Blocks that two files share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cometmq.store.backup.reflink import CLONED_BLOCK_BYTES, clone_range

SIZE = 4 * CLONED_BLOCK_BYTES


def test_a_cloned_range_has_the_bytes_and_does_not_follow_later_writes(tmp_path: Path) -> None:
    content = os.urandom(SIZE)
    (tmp_path / "source").write_bytes(content)
    (tmp_path / "target").write_bytes(bytes(SIZE))
    with (tmp_path / "source").open("r+b") as source, (tmp_path / "target").open("r+b") as target:
        start, length = CLONED_BLOCK_BYTES, 2 * CLONED_BLOCK_BYTES
        if not clone_range(source.fileno(), target.fileno(), start, length):
            pytest.skip(f"{tmp_path} is on a file system that shares no blocks")
        source.write(bytes(SIZE))
        source.flush()
        expected = bytes(start) + content[start : start + length] + bytes(start)
        assert (tmp_path / "target").read_bytes() == expected


def test_what_cannot_be_cloned_is_said(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(bytes(SIZE))
    with (
        (tmp_path / "source").open("rb") as source,
        Path("/proc/self/comm").open("r+b", buffering=0) as target,
    ):
        assert not clone_range(source.fileno(), target.fileno(), 0, SIZE)
        assert not clone_range(-1, target.fileno(), 0, SIZE)
