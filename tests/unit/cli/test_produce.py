"""How ``cometmq produce`` reads its lines."""

from __future__ import annotations

import io
from typing import Any

import pytest

from cometmq.base.errors import UsageError
from cometmq.cli import produce
from cometmq.cli.produce import chunks


class Pipe(io.RawIOBase):
    """Gives one part at each read, as a slow writer does."""

    def __init__(self, *parts: bytes) -> None:
        self._parts = list(parts)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._parts.pop(0) if self._parts else b""
        buffer[: len(part)] = part
        return len(part)


def read(*parts: bytes, size: int = 10, count: int | None = None) -> list[list[tuple[int, bytes]]]:
    return list(chunks(io.BufferedReader(Pipe(*parts)), size, count))


def test_lines_that_are_there_come_together_and_those_that_are_not_are_not_waited_for() -> None:
    assert read(b"a\nb\nc", b"c\nd\n", b"e") == [
        [(1, b"a"), (2, b"b")],
        [(3, b"cc"), (4, b"d")],
        [(5, b"e")],
    ]


def test_no_more_than_a_batch_and_no_more_than_the_count() -> None:
    given = b"a\nb\nc\nd\ne\n"
    assert [len(chunk) for chunk in read(given, size=2)] == [2, 2, 1]
    assert [len(chunk) for chunk in read(given, size=2, count=3)] == [2, 1]
    assert [len(chunk) for chunk in read(given, size=1, count=1)] == [1]


def test_empty_lines_are_passed_over_but_counted() -> None:
    assert read(b"\n\na\n\nb\n\n") == [[(3, b"a"), (5, b"b")]]
    assert read(b"") == []


def test_a_carriage_return_belongs_to_the_line() -> None:
    assert read(b"a\r\n") == [[(1, b"a\r")]]


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(produce, "LINE_BYTES_MAX", 10)
    with pytest.raises(UsageError, match="line 2 is longer than 10 bytes"):
        read(b"a\n", b"x" * 11)
