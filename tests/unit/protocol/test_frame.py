"""Frames: prefixes, limits, partial input, the self-check vectors of both header encodings."""

from __future__ import annotations

import time

import pytest

from cometmq.base.errors import LocalProtocolError, RemoteProtocolError
from cometmq.protocol.command import BINARY, FLAG_ONEWAY, FLAG_RESPONSE, Command
from cometmq.protocol.frame import FrameDecoder, decode_bytes, encode, encode_bytes

ROUTE_REQUEST = Command(code=105, ext={"topic": "TopicTest"}, language="JAVA", version=409)


def frame(header: bytes, body: bytes = b"", encoding: int = 0) -> bytes:
    return (
        (4 + len(header) + len(body)).to_bytes(4, "big")
        + (encoding << 24 | len(header)).to_bytes(4, "big")
        + header
        + body
    )


def feed_all(decoder: FrameDecoder, stream: bytes, chunk_bytes: int) -> list[Command]:
    return [
        command
        for at in range(0, len(stream), chunk_bytes)
        for command in decoder.feed(stream[at : at + chunk_bytes])
    ]


def test_json_frame_is_java_s() -> None:
    header = (
        b'{"code":105,"extFields":{"topic":"TopicTest"},"flag":0,"language":"JAVA","opaque":0,'
        b'"serializeTypeCurrentRPC":"JSON","version":409}'
    )
    assert encode_bytes(ROUTE_REQUEST) == bytes.fromhex("0000008700000083") + header


def test_binary_frame_is_java_s() -> None:
    command = Command(
        code=105,
        ext={"topic": "TopicTest"},
        language="JAVA",
        version=409,
        opaque=1,
        encoding=BINARY,
    )
    assert encode_bytes(command) == bytes.fromhex(
        "0000002d01000029 0069 00 0199 00000001 00000000 00000000 00000014"
        "0005746f706963 00000009546f70696354657374"
    )


def test_a_reply_keeps_opaque_and_encoding_and_nothing_else() -> None:
    request = Command(
        code=11, ext={"a": "b"}, body=b"x", opaque=7, flag=FLAG_ONEWAY, encoding=BINARY
    )
    reply = request.reply(17, "no such topic")
    assert (reply.code, reply.remark, reply.opaque, reply.encoding) == (17, "no such topic", 7, 1)
    assert (reply.flag, reply.ext, reply.body) == (FLAG_RESPONSE, None, b"")
    assert reply.is_response
    assert not reply.is_oneway
    assert request.is_oneway
    assert not request.is_response


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (b"\x00\x00\x00\x03\x00\x00\x00\x00", "frame of 3 bytes"),
        (b"\x00\x00\x00\x00\x00\x00\x00\x00", "frame of 0 bytes"),
        (b"\xff\xff\xff\xff\x00\x00\x00\x00", "frame of -1 bytes"),
        (b"\x7f\xff\xff\xff\x00\x00\x00\x00", "frame of 2147483647 bytes"),
        (b"\x00\x00\x01\x01\x00\x00\x00\x00", "frame of 257 bytes; expected 4 to 256"),
        (b"\x00\x00\x00\x08\x00\x00\x00\x05", "header of 5 bytes in a frame of 8"),
        (b"\x00\x00\x00\x04\x02\x00\x00\x00", "header encoding 2"),
        (b"\x00\x00\x00\x04\xff\x00\x00\x00", "header encoding 255"),
        (b"\x00\x00\x00\x04\x00\x00\x00\x00", "header is not JSON"),
        (b"\x00\x00\x00\x04\x01\x00\x00\x00", "cut off"),
        (b"GET / HTTP/1.1\r\n\r\n", "frame of 1195725856 bytes"),
    ],
)
@pytest.mark.parametrize("chunk_bytes", [1, 5, 100])
def test_a_broken_stream_is_refused(stream: bytes, message: str, chunk_bytes: int) -> None:
    with pytest.raises(RemoteProtocolError, match=message):
        feed_all(FrameDecoder(frame_bytes_max=256), stream, chunk_bytes)


def test_an_unchecked_length_is_never_waited_for() -> None:
    # Five bytes are not yet a whole prefix: the claim of two gigabytes must not be taken on trust.
    decoder = FrameDecoder()
    assert list(decoder.feed(b"\x7f\xff\xff\xff\x00")) == []
    with pytest.raises(RemoteProtocolError):
        list(decoder.feed(b"\x00\x00\x00"))


def test_an_unfinished_frame_takes_no_more_than_what_came() -> None:
    decoder = FrameDecoder()
    whole = encode_bytes(Command(code=10, body=bytes(1 << 20)))
    assert list(decoder.feed(whole[:100])) == []
    assert decoder.pending_bytes == 100
    assert [command.code for command in decoder.feed(whole[100:])] == [10]
    assert decoder.pending_bytes == 0


@pytest.mark.parametrize("encoding", [0, BINARY])
def test_a_large_frame_is_handed_over_once_its_header_is_here(encoding: int) -> None:
    body = bytes(range(256)) * 40
    reply = Command(code=0, ext={"a": "b"}, body=body, flag=FLAG_RESPONSE, opaque=7)
    reply.encoding = encoding
    whole, small = encode_bytes(reply), encode_bytes(ROUTE_REQUEST)
    header_end = len(whole) - len(body)
    decoder = FrameDecoder()
    assert decoder.take_large(1000) is None
    assert list(decoder.feed(small + whole[: header_end - 1])) == [ROUTE_REQUEST]
    assert decoder.take_large(1000) is None, "its header is not whole"
    assert list(decoder.feed(whole[header_end - 1 : header_end + 100])) == []
    assert decoder.take_large(len(body)) is None, "less than that is missing"
    large = decoder.take_large(1000)
    assert large is not None
    assert (large.command.opaque, large.command.ext, large.command.body) == (7, {"a": "b"}, b"")
    assert (large.body_bytes, large.begun) == (len(body), body[:100])
    assert decoder.pending_bytes == 0
    assert decoder.take_large(1000) is None
    # The caller has received the rest.
    assert list(decoder.feed(small)) == [ROUTE_REQUEST]
    assert decoder.take_large(1) is None


def test_an_unknown_header_encoding_is_refused_before_the_frame_is_whole() -> None:
    stream = frame(b"header", bytes(1000), encoding=2)
    with pytest.raises(RemoteProtocolError, match="header encoding 2; expected 0 or 1"):
        list(FrameDecoder().feed(stream[:20]))


def test_frames_before_a_broken_one_are_delivered() -> None:
    commands = FrameDecoder().feed(encode_bytes(ROUTE_REQUEST) * 2 + b"\xff" * 8)
    assert [next(commands), next(commands)] == [ROUTE_REQUEST, ROUTE_REQUEST]
    with pytest.raises(RemoteProtocolError):
        next(commands)


def test_a_frame_at_the_limit_passes() -> None:
    whole = encode_bytes(Command(code=10, body=b"x" * 100))
    decoder = FrameDecoder(frame_bytes_max=len(whole) - 4)
    assert len(list(decoder.feed(whole))) == 1
    with pytest.raises(RemoteProtocolError):
        list(FrameDecoder(frame_bytes_max=len(whole) - 5).feed(whole))


def test_tiny_chunks_of_a_large_frame_cost_linear_time() -> None:
    # 2 MiB in pieces of 16 bytes: copying what is pending at each piece would move 130 GB.
    whole = encode_bytes(Command(code=10, body=bytes(2 << 20)))
    started = time.process_time()
    assert len(feed_all(FrameDecoder(), whole, 16)) == 1
    assert time.process_time() - started < 3


def test_large_body_parts_leave_unjoined_and_small_ones_joined() -> None:
    record = memoryview(b"record" * 1000)
    parts = encode(Command(code=0, body_parts=[record, record]))
    assert parts[1] is record
    assert decode_bytes(b"".join(parts)).body == b"record" * 2000
    (whole,) = encode(Command(code=0, body_parts=[memoryview(b"record"), b"next"]))
    assert decode_bytes(bytes(whole)).body == b"recordnext"


def test_a_command_without_body_is_one_part() -> None:
    assert len(encode(Command(code=0))) == 1


@pytest.mark.parametrize("extra", [b"", b"\x00", b"\x00" * 9])
def test_decode_bytes_wants_exactly_one_frame(extra: bytes) -> None:
    whole = encode_bytes(ROUTE_REQUEST)
    if not extra:
        assert decode_bytes(whole) == ROUTE_REQUEST
        with pytest.raises(RemoteProtocolError):
            decode_bytes(whole[:-1])
        with pytest.raises(RemoteProtocolError):
            decode_bytes(whole * 2)
    else:
        with pytest.raises(RemoteProtocolError):
            decode_bytes(whole + extra)


def test_a_header_of_more_than_a_megabyte_cannot_leave() -> None:
    encode(Command(code=0, remark="x" * 1_000_000))
    for remark in ("x" * (1 << 20), "x" * (1 << 24)):
        with pytest.raises(LocalProtocolError):
            encode(Command(code=0, remark=remark))


def test_a_header_of_more_than_a_megabyte_is_refused_before_it_has_come() -> None:
    """One of 16 MB with a million fields took a second and 217 MB to read."""
    prefix = (1 << 23).to_bytes(4, "big") + ((1 << 20) + 1).to_bytes(4, "big")
    with pytest.raises(
        RemoteProtocolError, match="header of 1048577 bytes; expected at most 1048576"
    ):
        list(FrameDecoder().feed(prefix))


def test_garbage_behind_the_ext_fields_of_a_binary_header_is_ignored() -> None:
    header = encode_bytes(Command(code=5, encoding=BINARY))[8:]
    assert decode_bytes(frame(header + b"\x01\x02", encoding=1)).code == 5
