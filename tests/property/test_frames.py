"""The decoder meets any bytes in any chunks; commands survive both header encodings."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st

from cometmq.base.errors import RemoteProtocolError
from cometmq.protocol.command import BINARY, JSON, Command
from cometmq.protocol.frame import FrameDecoder, decode_bytes, encode, encode_bytes

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT16 = st.integers(-(1 << 15), (1 << 15) - 1)
TEXT = st.text(max_size=30)
LANGUAGES = st.sampled_from(["JAVA", "CPP", "GO", "PYTHON", "RUST", "OTHER"])


@st.composite
def commands(draw: st.DrawFn, encoding: int) -> Command:
    """Commands that differ from what is read back in nothing: a binary header holds no empty map or remark."""
    least = 1 if encoding == BINARY else 0
    return Command(
        code=draw(INT16 if encoding == BINARY else INT32),
        ext=draw(st.none() | st.dictionaries(TEXT, TEXT, min_size=least, max_size=6)),
        body=draw(st.binary(max_size=200)),
        flag=draw(INT32),
        opaque=draw(INT32),
        remark=draw(st.none() | TEXT.filter(lambda text: len(text) >= least)),
        language=draw(LANGUAGES),
        version=draw(INT16 if encoding == BINARY else INT32),
        encoding=encoding,
    )


ANY_COMMAND = commands(JSON) | commands(BINARY)


def feed_in_chunks(decoder: FrameDecoder, stream: bytes, sizes: list[int]) -> list[Command]:
    """Feed all of ``stream``, cut into pieces of ``sizes`` over and over."""
    found: list[Command] = []
    at = turn = 0
    while at < len(stream):
        size = sizes[turn % len(sizes)]
        found += decoder.feed(stream[at : at + size])
        at += size
        turn += 1
    return found


@given(ANY_COMMAND)
def test_a_command_survives_encoding(command: Command) -> None:
    assert decode_bytes(encode_bytes(command)) == command


@given(ANY_COMMAND, st.lists(st.binary(max_size=20), max_size=4))
def test_body_parts_are_the_body_joined(command: Command, parts: list[bytes]) -> None:
    command.body_parts = list(parts)
    written = b"".join(encode(command))
    command.body_parts, command.body = None, b"".join(parts)
    assert written == encode_bytes(command)


@given(st.lists(ANY_COMMAND, max_size=5), st.lists(st.integers(1, 50), min_size=1, max_size=5))
def test_frames_survive_any_chunking(sent: list[Command], sizes: list[int]) -> None:
    decoder = FrameDecoder()
    stream = b"".join(map(encode_bytes, sent))
    assert feed_in_chunks(decoder, stream, sizes) == sent
    assert decoder.pending_bytes == 0


@given(st.binary(max_size=300), st.lists(st.integers(1, 20), min_size=1, max_size=4))
@example(b"\x7f\xff\xff\xff" + b"x" * 100, [5])
@example(b"\x00\x00\x00\x04\x00\x00\x00\x00", [8])
@example(b"\xff\xff\xff\xff" * 4, [3])
def test_garbage_gives_commands_or_a_protocol_error(stream: bytes, sizes: list[int]) -> None:
    decoder = FrameDecoder(frame_bytes_max=64)
    try:
        feed_in_chunks(decoder, stream, sizes)
    except RemoteProtocolError:
        return
    # Whatever waits for its rest is shorter than the largest frame, length word included.
    assert decoder.pending_bytes < 64 + 4


@given(
    header=st.binary(max_size=120),
    encoding=st.integers(0, 3),
    body=st.binary(max_size=20),
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4),
)
def test_any_header_bytes_give_a_command_or_a_protocol_error(
    header: bytes, encoding: int, body: bytes, sizes: list[int]
) -> None:
    frame = (
        (4 + len(header) + len(body)).to_bytes(4, "big")
        + (encoding << 24 | len(header)).to_bytes(4, "big")
        + header
        + body
    )
    try:
        (command,) = feed_in_chunks(FrameDecoder(), frame, sizes)
    except RemoteProtocolError:
        return
    assert command.body == body
    assert command.encoding == encoding


@given(ANY_COMMAND, st.data())
def test_a_damaged_frame_gives_commands_or_a_protocol_error(
    command: Command, data: st.DataObject
) -> None:
    frame = bytearray(encode_bytes(command))
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    try:
        list(FrameDecoder(frame_bytes_max=1 << 16).feed(bytes(frame)))
    except RemoteProtocolError:
        pass


JSON_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(
            ["code", "language", "version", "opaque", "flag", "remark", "extFields", "other"]
        ),
        JSON_VALUE,
    )
)
@example({"code": 1e308})
@example({"extFields": {"a": 5, "b": True, "c": None, "d": [1]}})
@example({"code": "10", "language": 9, "remark": 5})
def test_any_json_object_as_header_gives_a_command_or_a_protocol_error(
    header: dict[str, object],
) -> None:
    text = json.dumps(header).encode()
    frame = (4 + len(text)).to_bytes(4, "big") + len(text).to_bytes(4, "big") + text
    try:
        command = decode_bytes(frame)
    except RemoteProtocolError:
        return
    for number in (command.code, command.flag, command.opaque, command.version):
        assert -(1 << 31) <= number < 1 << 31
    assert all(isinstance(value, str) for value in (command.ext or {}).values())
    # Whatever was accepted can be answered.
    assert decode_bytes(encode_bytes(command.reply())).opaque == command.opaque
