"""How ``cometmq produce`` reads its lines."""

from __future__ import annotations

import io
from typing import Any

import pytest

from cometmq.base.errors import UsageError
from cometmq.cli import produce
from cometmq.cli.produce import chunks, sent
from cometmq.client.sync import PartlySent
from cometmq.model.messages.message import Message
from cometmq.protocol.reply_errors import NoPermission, SystemBusy


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


BUSY = SystemBusy(2, "broker busy", "127.0.0.1:10911")
MESSAGES: list[Any] = [Message(topic="T", body=body) for body in (b"a", b"b", b"c")]


def partly(results: list[Any], unsent: list[Any], why: Exception) -> PartlySent:
    error = PartlySent(results, unsent)
    error.__cause__ = why
    return error


def test_a_busy_broker_gets_the_rest_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(produce, "BUSY_PAUSE_SECONDS", 0)
    asked: list[list[Any]] = []
    answers: list[Any] = [BUSY, partly(["first"], MESSAGES[1:], BUSY), ["second"]]

    def send(messages: list[Message]) -> list[Any]:
        asked.append(messages)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return [*answer]

    results: list[Any] = list(sent(send, MESSAGES))
    assert results == ["first", "second"]
    assert asked == [MESSAGES, MESSAGES, MESSAGES[1:]]


def test_not_for_ever_and_not_for_other_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = NoPermission(16, "not for you", "127.0.0.1:10911")
    for error in (refused, partly(["first"], MESSAGES[1:], refused)):

        def send(messages: list[Message], error: Exception = error) -> list[Any]:
            raise error

        with pytest.raises(type(error)):
            list(sent(send, MESSAGES))
    monkeypatch.setattr(produce, "BUSY_SECONDS_MAX", 0)

    def busy(messages: list[Message]) -> list[Any]:
        raise BUSY

    with pytest.raises(SystemBusy):
        list(sent(busy, MESSAGES))
