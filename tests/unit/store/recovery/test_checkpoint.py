from __future__ import annotations

from pathlib import Path

import pytest

from cometmq.base.disk import SystemFiles
from cometmq.base.errors import CorruptFile
from cometmq.store.recovery.checkpoint import Checkpoint, Marks, decode_marks

MARKS = Marks(5000, 6000, 7, 8, 9, 10, 11, 12, 13)


def test_marks_survive_a_round_trip_in_a_file_of_4096_bytes(tmp_path: Path) -> None:
    path = str(tmp_path / "checkpoint")
    checkpoint = Checkpoint(path, SystemFiles())
    assert not checkpoint.load()
    checkpoint.marks = MARKS
    checkpoint.save(sync=True)
    checkpoint.close()
    again = Checkpoint(path, SystemFiles())
    assert again.load()
    assert again.marks == MARKS
    assert again.marks.safe_ms == 2000
    raw = Path(path).read_bytes()
    assert len(raw) == 4096
    assert raw[:48] == b"".join(number.to_bytes(8, "big") for number in (5000, 6000, 7, 8, 9, 10))
    assert raw[48:512].strip(b"\0") == b""


def test_our_part_does_not_count_once_another_broker_has_written_its_times(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    checkpoint = Checkpoint(str(path), SystemFiles())
    checkpoint.marks = MARKS
    checkpoint.save(sync=False)
    checkpoint.close()
    raw = bytearray(path.read_bytes())
    raw[0:8] = (9999).to_bytes(8, "big")
    marks = decode_marks(bytes(raw))
    assert marks.physical_ms == 9999
    assert (marks.flushed_offset, marks.dispatched_offset) == (-1, -1)


def test_times_near_zero_give_no_negative_safe_time() -> None:
    assert Marks(100, 200).safe_ms == 0


def test_a_checkpoint_of_another_length_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(b"x" * 100)
    with pytest.raises(CorruptFile, match="checkpoint: 100 bytes"):
        Checkpoint(str(path), SystemFiles()).load()
    assert path.read_bytes() == b"x" * 100


def test_an_empty_checkpoint_is_none(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(b"")
    assert not Checkpoint(str(path), SystemFiles()).load()
