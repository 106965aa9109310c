"""The worker's part of filter functions, without a process."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from cometmq.broker.filters.functions.protocol import (
    Answer,
    Batch,
    Fault,
    FunctionMessage,
    Loaded,
    Ready,
    Unusable,
    Verdict,
    answer_of,
    batch_of,
    frame,
)
from cometmq.broker.filters.functions.worker import Functions, judge, serve
from cometmq.model.messages.compression import compress


def message(body: bytes = b"x", text: str = "", sys_flag: int = 0) -> FunctionMessage:
    return FunctionMessage("T", 7, text, sys_flag, body)


def answers(directory: Path, *messages: FunctionMessage, function: str = "f") -> list[Answer]:
    found: list[Answer] = []
    judge(Functions(directory), Batch(function, list(messages)), found.append)
    return found


def verdicts(found: list[Answer]) -> list[bool]:
    assert found[0] == Loaded()
    return [answer.wanted for answer in found[1:] if isinstance(answer, Verdict)]


def test_a_function_sees_the_whole_message(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text(
        "def wants(m):\n"
        "    return (m.topic, m.queue_offset, m.tag, m.keys, m.properties['a'], m.body)"
        " == ('T', 7, 'red', ['k1', 'k2'], '5', b'plain' * 9)\n"
    )
    text = "TAGS\x01red\x02KEYS\x01k1 k2\x02a\x015\x02"
    packed, flag = compress(b"plain" * 9)
    assert verdicts(
        answers(
            tmp_path,
            message(b"plain" * 9, text),
            message(packed, text, flag),
            message(b"other", text),
        )
    ) == [True, True, False]


def test_a_function_that_fails_does_so_for_one_message(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text(
        "def wants(m):\n    if m.body == b'exit': raise SystemExit(3)\n    return 1 / int(m.body) > 0\n"
    )
    found = answers(tmp_path, message(b"1"), message(b"0"), message(b"exit"), message(b"2"))
    assert found == [
        Loaded(),
        Verdict(True),
        Fault("ZeroDivisionError: division by zero"),
        Fault("SystemExit: 3"),
        Verdict(True),
    ]


def test_a_function_that_is_out_of_memory_ends_its_process(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text("def wants(m): raise MemoryError\n")
    with pytest.raises(MemoryError):
        answers(tmp_path, message())


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def wants(m:", "SyntaxError: "),
        ("raise ValueError('no')", "ValueError: no"),
        ("import sys; sys.exit(1)", "SystemExit: 1"),
        ("wants = 5", "TypeError: expected a function wants(message) in f.py, found none"),
        (None, "FileNotFoundError: "),
    ],
)
def test_a_file_without_a_function_is_unusable(
    tmp_path: Path, source: str | None, reason: str
) -> None:
    if source is not None:
        (tmp_path / "f.py").write_text(source)
    (found,) = answers(tmp_path, message())
    assert isinstance(found, Unusable)
    assert found.reason.startswith(reason)


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    functions = Functions(tmp_path)
    path = tmp_path / "f.py"
    path.write_text(
        "count = 0\ndef wants(m):\n    global count\n    count += 1\n    return count == 2"
    )
    seen: list[Answer] = []
    for _ in range(2):
        judge(functions, Batch("f", [message()]), seen.append)
    assert seen == [Loaded(), Verdict(False), Loaded(), Verdict(True)]
    path.write_text("def wants(m): return False")
    judge(functions, Batch("f", [message()]), seen.append)
    assert seen[-1] == Verdict(False)


def test_a_worker_serves_until_its_input_ends(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text("def wants(m): return m.body == b'y'")
    batches = [Batch("f", [message(b"y"), message(b"n")]), Batch("f", [message(b"y")])]
    source = io.BytesIO(b"".join(frame(batch) for batch in batches))
    seen: list[Answer] = []
    alarms: list[bool] = []
    serve(Functions(tmp_path), source, seen.append, alarms.append)
    assert seen == [
        *(Ready(), Loaded(), Verdict(True), Verdict(False), Loaded(), Verdict(True)),
    ]
    assert alarms == [True, False, True, False]


@pytest.mark.parametrize(
    "answer", [Ready(), Loaded(), Unusable("why"), Verdict(True), Verdict(False), Fault("ü")]
)
def test_answers_survive_the_pipe(answer: Answer) -> None:
    data = frame(answer)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    assert answer_of(data[4:]) == answer


def test_batches_survive_the_pipe() -> None:
    batch = Batch("f", [message(b"\xff\x00", "a\x01ü\x02", 1)])
    assert batch_of(frame(batch)[4:]) == batch
