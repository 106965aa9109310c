"""What the broker and a worker process say to each other, through a pair of pipes.

    broker -> worker   Batch
    worker -> broker   Ready (once, at its start)
                       then for each batch: Unusable, or Loaded and for each message a Verdict or a Fault

A frame is 4 bytes of length, big-endian, and MessagePack. Each message is answered as soon as it is judged, so that the
broker knows which one a worker died of.
"""

from __future__ import annotations

from typing import Final, cast

import msgspec

LENGTH_BYTES: Final = 4
TEXT_CHARS_MAX: Final = 500
"""Of an error's text."""


class FunctionMessage(msgspec.Struct, array_like=True):
    """A message as stored: the body may be compressed, which ``sys_flag`` tells."""

    topic: str
    queue_offset: int
    properties_text: str
    sys_flag: int
    body: bytes


class Batch(msgspec.Struct, array_like=True):
    function: str
    messages: list[FunctionMessage]


class Ready(msgspec.Struct, array_like=True, tag=0):
    pass


class Loaded(msgspec.Struct, array_like=True, tag=1):
    pass


class Unusable(msgspec.Struct, array_like=True, tag=2):
    """There is no such function, or its file cannot be run."""

    reason: str


class Verdict(msgspec.Struct, array_like=True, tag=3):
    wanted: bool


class Fault(msgspec.Struct, array_like=True, tag=4):
    """The function failed for this message."""

    reason: str


Answer = Ready | Loaded | Unusable | Verdict | Fault

_encode = msgspec.msgpack.Encoder().encode
_decode_batch = msgspec.msgpack.Decoder(Batch).decode
_decode_answer = msgspec.msgpack.Decoder(Answer).decode


def frame(content: Batch | Answer) -> bytes:
    payload = _encode(content)
    return len(payload).to_bytes(LENGTH_BYTES, "big") + payload


def batch_of(payload: bytes) -> Batch:
    return _decode_batch(payload)


def answer_of(payload: bytes) -> Answer:
    return cast(Answer, _decode_answer(payload))


def error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:TEXT_CHARS_MAX]
