"""The binary header: limits of its fields, lengths that lie."""

from __future__ import annotations

import struct

import pytest

from cometmq.base.errors import LocalProtocolError, RemoteProtocolError
from cometmq.protocol.command import BINARY, Command
from cometmq.protocol.header_binary import decode_header, encode_header

MINIMAL = struct.pack(">hbhiiii", 10, 0, 409, 7, 0, 0, 0)


def ext_header(entries: bytes, claimed: int | None = None) -> bytes:
    size = len(entries) if claimed is None else claimed
    return MINIMAL[:-4] + struct.pack(">i", size) + entries


def test_the_smallest_header_has_21_bytes() -> None:
    assert len(MINIMAL) == 21
    command = decode_header(MINIMAL, b"body")
    assert command == Command(
        code=10, body=b"body", opaque=7, language="JAVA", version=409, encoding=BINARY
    )
    assert encode_header(command) == MINIMAL


def test_an_empty_value_keeps_its_key() -> None:
    command = Command(code=17, ext={"attributes": "", "force": "false"}, encoding=BINARY)
    assert decode_header(encode_header(command), b"").ext == command.ext


def test_an_empty_remark_is_none() -> None:
    assert decode_header(encode_header(Command(code=0, remark="")), b"").remark is None


def test_unknown_languages_are_other() -> None:
    assert decode_header(MINIMAL[:2] + b"\x63" + MINIMAL[3:], b"").language == "OTHER"
    assert encode_header(Command(code=0, language="klingon"))[2] == 7


@pytest.mark.parametrize("at", range(21))
def test_a_header_cut_off_anywhere_is_refused(at: int) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_header(MINIMAL[:at], b"")


@pytest.mark.parametrize(
    "header",
    [
        MINIMAL[:13] + struct.pack(">ii", -1, 0),
        MINIMAL[:13] + struct.pack(">ii", 5, 0),
        MINIMAL[:13] + struct.pack(">ii", 0x7FFFFFFF, 0),
        ext_header(b"", -1),
        ext_header(b"", 1),
        ext_header(b"\x00", 1),
        ext_header(struct.pack(">h", -1) + b"\x00" * 8),
        ext_header(struct.pack(">h", 3) + b"abc"),
        ext_header(struct.pack(">h", 1) + b"a" + struct.pack(">i", -1)),
        ext_header(struct.pack(">h", 1) + b"a" + struct.pack(">i", -2) + b"xx"),
        ext_header(struct.pack(">h", 1) + b"a" + struct.pack(">i", 2) + b"x"),
        ext_header(struct.pack(">h", 1) + b"a" + struct.pack(">i", 0x7FFFFFFF) + b"x"),
        ext_header(struct.pack(">h", 1) + b"\xff" + struct.pack(">i", 0)),
        ext_header(struct.pack(">h", 1) + b"a" + struct.pack(">i", 1) + b"\xff"),
        MINIMAL[:13] + struct.pack(">i", 1) + b"\xff" + struct.pack(">i", 0),
    ],
)
def test_lengths_that_lie_and_texts_that_are_none_are_refused(header: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_header(header, b"")


@pytest.mark.parametrize(
    "command",
    [
        Command(code=200050),
        Command(code=1, version=70000),
        Command(code=1, opaque=1 << 31),
        Command(code=1, ext={"k" * 40000: "v"}),
    ],
)
def test_what_does_not_fit_cannot_leave(command: Command) -> None:
    with pytest.raises(LocalProtocolError):
        encode_header(command)


def test_half_characters_leave_as_question_marks() -> None:
    command = decode_header(
        encode_header(Command(code=1, remark="\udcff", ext={"a": "\ud800"})), b""
    )
    assert (command.remark, command.ext) == ("?", {"a": "?"})
