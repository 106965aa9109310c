"""Two logs are compared as far as both go."""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random

from tests.chaos.judge.history import make_body
from tests.chaos.judge.log_compare import difference, end_of
from tests.chaos.world.bit_rot import flip_a_bit

FILE_BYTES = 256


def record(body: bytes) -> bytes:
    return struct.pack(">iI", 8 + len(body), 0xDAA320A7) + body


def write_log(store: Path, *files: bytes) -> Path:
    directory = store / "commitlog"
    directory.mkdir(parents=True)
    for number, content in enumerate(files):
        name = f"{number * FILE_BYTES:020}"
        (directory / name).write_bytes(content.ljust(FILE_BYTES, b"\0"))
    return directory


def full(content: bytes) -> bytes:
    return content + struct.pack(">iI", FILE_BYTES - len(content), 0xCBD43194)


def test_the_end_is_behind_the_last_record(tmp_path: Path) -> None:
    log = write_log(tmp_path, full(record(b"one")), record(b"two") + record(b"three"))
    assert end_of(log) == FILE_BYTES + 11 + 13


def test_a_log_that_is_behind_is_no_different_log(tmp_path: Path) -> None:
    one = write_log(tmp_path / "a", full(record(b"one")), record(b"two") + record(b"three"))
    other = write_log(tmp_path / "b", full(record(b"one")), record(b"two"))
    assert difference(one, other) == ""


def test_the_first_byte_that_differs_is_named(tmp_path: Path) -> None:
    one = write_log(tmp_path / "a", full(record(b"one")), record(b"two"))
    other = write_log(tmp_path / "b", full(record(b"one")), record(b"twi"))
    assert f"differ from {FILE_BYTES + 10} on" in difference(one, other)


def test_a_slave_may_begin_with_a_later_file(tmp_path: Path) -> None:
    one = write_log(tmp_path / "a", full(record(b"one")), record(b"two"))
    other = write_log(tmp_path / "b", full(record(b"one")), record(b"two"))
    (other / f"{0:020}").unlink()
    assert end_of(other) == end_of(one)
    assert difference(one, other) == ""


def test_a_flipped_bit_names_the_message_it_hit(tmp_path: Path) -> None:
    bodies = [make_body(f"sends/0/{number}", b"filler") for number in range(3)]
    log = write_log(tmp_path, b"".join(map(record, bodies)))
    before = (log / f"{0:020}").read_bytes()
    flipped = flip_a_bit(tmp_path, Random(1))
    after = (log / f"{0:020}").read_bytes()
    changed = [at for at in range(FILE_BYTES) if before[at] != after[at]]
    assert len(changed) == 1
    assert flipped.ids == {f"sends/0/{changed[0] // len(record(bodies[0]))}"}
