"""The load program judges: right replies pass, wrong ones never go unnoticed, and it stays on this machine."""

from __future__ import annotations

import json
import shutil
import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks.compare.load import LoadFailed, LoadProgram, NoCompiler, build

from cometmq.protocol.request_signature import signature_of

Answer = Callable[[dict[str, Any]], dict[str, Any]]


@pytest.fixture(scope="module")
def program() -> LoadProgram:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler: the load program cannot be built")
    return build()


class Peer:
    """A server that answers every request with what a function makes of its header."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def _accept(self) -> None:
        # One connection prepares the topic, one carries the load.
        for _ in range(2):
            connection, _ = self._listener.accept()
            with connection, connection.makefile("rb") as stream:
                self._serve(connection, stream.read)

    def _serve(self, connection: socket.socket, read: Callable[[int], bytes]) -> None:
        while len(prefix := read(8)) == 8:
            length, header_length = struct.unpack(">ii", prefix)
            request = json.loads(read(header_length))
            request["body"] = read(length - 4 - header_length)
            reply = json.dumps(self._answer(request), separators=(",", ":")).encode()
            try:
                connection.sendall(struct.pack(">ii", 4 + len(reply), len(reply)) + reply)
            except OSError:
                return

    def close(self) -> None:
        self._thread.join(10)
        self._listener.close()


def right(request: dict[str, Any]) -> dict[str, Any]:
    fields = {"msgId": "0", "queueId": "0", "queueOffset": "0"}
    return {"code": 0, "flag": 1, "opaque": request["opaque"], "extFields": fields}


def run_against(program: LoadProgram, answer: Answer, *arguments: str) -> dict[str, Any]:
    peer = Peer(answer)
    flags = ("--address", peer.address, "--connections", "1", "--in-flight", "4", "--count", "20")
    try:
        return program.run("send", (*flags, *arguments), seconds=5)
    finally:
        peer.close()


def only_sends(change: dict[str, Any]) -> Answer:
    return lambda request: right(request) | (change if request["code"] == 310 else {})


def test_right_replies_are_counted(program: LoadProgram) -> None:
    result = run_against(program, right)
    assert (result["messages"], result["sent"], result["wrong"]) == (20, 20, 0)


@pytest.mark.parametrize(
    "change",
    [
        {"code": 2, "remark": "busy"},
        {"code": 14},
        {"flag": 0},
        {"extFields": {}},
        {"extFields": {"queueOffset": "none"}},
    ],
)
def test_a_wrong_reply_is_an_error(program: LoadProgram, change: dict[str, Any]) -> None:
    with pytest.raises(LoadFailed, match="exit code 1"):
        run_against(program, only_sends(change))


def test_busy_replies_are_counted_apart_when_allowed(program: LoadProgram) -> None:
    result = run_against(program, only_sends({"code": 2}), "--busy-ok")
    assert (result["messages"], result["busy"]) == (0, 20)


@pytest.mark.parametrize("change", [{"code": 0}, {"code": 19}, {"code": 21}])
def test_a_pull_that_brings_no_message_is_an_error(
    program: LoadProgram, change: dict[str, Any]
) -> None:
    fields = {"offset": "64", "nextBeginOffset": "32", "minOffset": "0", "maxOffset": "64"}

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        return right(request) | {"extFields": fields} | (change if request["code"] == 11 else {})

    peer = Peer(answer)
    flags = ("--address", peer.address, "--connections", "1", "--queues", "1")
    with pytest.raises(LoadFailed, match="exit code 1"):
        program.run("pull", flags, seconds=5)
    peer.close()


def test_a_refused_topic_ends_the_run(program: LoadProgram) -> None:
    peer = Peer(lambda request: right(request) | {"code": 1})
    with pytest.raises(LoadFailed, match="preparing request was answered"):
        program.run("send", ("--address", peer.address), seconds=1)
    # The second connection that the peer waits for.
    socket.create_connection(("127.0.0.1", int(peer.address.split(":")[1]))).close()
    peer.close()


def test_requests_carry_what_a_java_client_sends(program: LoadProgram) -> None:
    seen: list[dict[str, Any]] = []

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        seen.append(request)
        return right(request)

    run_against(program, answer, "--queues", "2", "--topic", "T")
    create, *sends = seen
    assert create["code"] == 17
    assert create["extFields"]["writeQueueNums"] == "2"
    assert {send["extFields"]["e"] for send in sends} == {"0", "1"}
    assert list(sends[0]["extFields"]) == list("abcdefghijkmn")
    properties = [
        dict(pair.split("\x01") for pair in send["extFields"]["i"].split("\x02")) for send in sends
    ]
    assert properties[0] | {"UNIQ_KEY": ""} == {"UNIQ_KEY": "", "WAIT": "true", "TAGS": "TagA"}
    keys = {each["UNIQ_KEY"] for each in properties}
    assert len(keys) == len(sends) == 20
    assert {len(key) for key in keys} == {32}


def test_one_message_in_ten_of_each_queue_is_marked(program: LoadProgram) -> None:
    seen: list[dict[str, Any]] = []

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        seen.append(request)
        return right(request)

    run_against(program, answer, "--queues", "2", "--marked", "--count", "40")
    for queue in ("0", "1"):
        texts = [one["extFields"]["i"] for one in seen[1:] if one["extFields"]["e"] == queue]
        pairs = [dict(pair.split("\x01") for pair in text.split("\x02")) for text in texts]
        assert [one["n"] for one in pairs] == [str(number % 10) for number in range(20)]
        assert all((one["TAGS"] == "TagB") == (one["n"] == "0") for one in pairs)


@pytest.mark.parametrize(
    ("kind", "expression"), [("tag", ("TagB", "TAG")), ("sql", ("n < 1", "SQL92"))]
)
def test_a_filter_that_lets_too_few_through_is_an_error(
    program: LoadProgram, kind: str, expression: tuple[str, str]
) -> None:
    """The broker says that nothing of a queue of 64 matches."""
    seen: list[dict[str, Any]] = []
    fields = {"offset": "64", "nextBeginOffset": "64", "minOffset": "0", "maxOffset": "64"}

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        seen.append(request)
        change = {"code": 20} if request["code"] == 11 else {}
        return right(request) | {"extFields": fields} | change

    peer = Peer(answer)
    flags = ("--address", peer.address, "--connections", "1", "--queues", "1", "--filter", kind)
    with pytest.raises(LoadFailed, match="0 of 64 messages of queue 0 came through the filter"):
        program.run("pull", flags, seconds=5)
    peer.close()
    asked = seen[1]["extFields"]
    assert (asked["subscription"], asked["expressionType"]) == expression


@pytest.mark.parametrize(
    "flags",
    [
        ("send",),
        ("send", "--batch", "32"),
        ("send", "--marked"),
        ("pull", "--queues", "2"),
        ("pull", "--queues", "2", "--filter", "tag"),
    ],
)
def test_its_own_canned_server_is_always_right(
    program: LoadProgram, flags: tuple[str, ...]
) -> None:
    result = program.run(flags[0], (*flags[1:], "--echo", "--connections", "2"), seconds=0.1)
    assert result["messages"] > 0
    assert result["wrong"] == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--address", "10.0.0.1:10911"), "only loopback"),
        (("--address", "localhost:10911"), "only loopback"),
        (("--address", "127.0.0.1:99999"), "from 1 to 65535"),
        (("--echo", "--connections", "0"), "from 1 to"),
        (("--echo", "--in-flight", "5000"), "from 1 to 4096"),
        (("--echo", "--topic", 'a"b'), "letters"),
        ((), "either --address"),
        (("--echo", "--marked", "--batch", "2"), "one by one"),
        (("--echo", "--filter", "tag"), "--filter is for pull"),
        (("--echo", "--filter", "regex"), "expected tag or sql"),
    ],
)
def test_bad_arguments_are_refused(
    program: LoadProgram, arguments: tuple[str, ...], told: str
) -> None:
    with pytest.raises(LoadFailed, match=f"exit code 2: .*{told}"):
        program.run("send", arguments, seconds=1)


def test_a_missing_compiler_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMETMQ_CACHE", str(tmp_path))
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(NoCompiler, match=r"no-such-compiler.*install a C compiler"):
        build()


@pytest.mark.parametrize("body", [16, 55, 64, 1024, 5000])
@pytest.mark.parametrize("batch", [1, 3])
def test_requests_of_an_account_are_signed(program: LoadProgram, body: int, batch: int) -> None:
    seen: list[dict[str, Any]] = []

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        seen.append(request)
        return right(request) | {"extFields": {"msgId": ",".join("0" * batch), "queueOffset": "0"}}

    account = ("--account", "bench-account:a secret", "--no-create")
    sizes = ("--body", str(body), "--batch", str(batch))
    run_against(program, answer, *account, *sizes)
    assert len(seen) * batch >= 20
    for request in seen:
        ext = request["extFields"]
        assert ext["AccessKey"] == "bench-account"
        assert ext["Signature"] == signature_of(ext, request["body"], "a secret")


def test_only_sends_are_signed(program: LoadProgram) -> None:
    for mode, flags in (("pull", ("--no-create",)), ("send", ())):
        target = ("--address", "127.0.0.1:1", "--account", "name:secret")
        with pytest.raises(LoadFailed, match="only sends are signed"):
            program.run(mode, (*target, *flags), seconds=1)
