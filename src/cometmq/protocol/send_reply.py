"""The reply to a send, written and read directly as a frame: the most frequent reply, always of the same shape.

Through ``Command`` and ``frame.encode`` it takes 2.4 us, here 0.8 us. The text around the numbers comes from
``header_json`` itself, so that both ways produce the same bytes; the rarer binary encoding uses the general way.

Replies that say nothing but where a message is stored are read in passing where a compiled twin can: whoever waits gets
``Stored`` as soon as it has come. Without a twin such a reply is a command as all others, so whoever waits takes both.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from cometmq.native.choice import twin
from cometmq.protocol.command import FLAG_RESPONSE, JSON, Command
from cometmq.protocol.frame import encode_bytes
from cometmq.protocol.header_json import encode_header

_PREFIX = struct.Struct(">iI")
# Placeholders for what differs.
_CODE: Final = 1_000_000_001
_OPAQUE: Final = 1_000_000_002
_OFFSET: Final = "<physical offset>"
_QUEUE_ID: Final = "<queue id>"
_QUEUE_OFFSET: Final = "<queue offset>"


class SendReplies:
    """Writes the replies of one broker.

    Args:
        host: the broker's packed address, the first part of offset ids.
        ext: what every reply carries in addition to its numbers.
    """

    def __init__(self, host: bytes, ext: dict[str, str]) -> None:
        self._id_prefix = host.hex().upper()
        self.id_prefix = self._id_prefix.encode()
        """What offset ids begin with."""
        self._ext = ext
        sample = self._command(_CODE, _OPAQUE, JSON, _OFFSET, _QUEUE_ID, _QUEUE_OFFSET)
        rest = encode_header(sample).decode()
        pieces: list[str] = []
        for mark in (str(_CODE), _OFFSET, _QUEUE_ID, _QUEUE_OFFSET):
            piece, _, rest = rest.partition(mark)
            pieces.append(piece)
        # Searched from the end, because the fields of ``ext`` may hold anything.
        before, _, after = rest.rpartition(str(_OPAQUE))
        self._pieces = (*pieces, before, after)
        self.encoded_pieces = tuple(piece.encode() for piece in self._pieces)
        """What is around the numbers of a JSON reply, in their order: code, physical offset, queue id, queue offset,
        opaque. For those who write many replies at once."""

    def frame(
        self,
        code: int,
        opaque: int,
        encoding: int,
        physical_offset: int,
        queue_id: int,
        queue_offset: int,
    ) -> bytes:
        if encoding != JSON:
            offset = f"{physical_offset:016X}"
            return encode_bytes(
                self._command(code, opaque, encoding, offset, str(queue_id), str(queue_offset))
            )
        a, b, c, d, e, f = self._pieces
        header = (
            f"{a}{code}{b}{physical_offset:016X}{c}{queue_id}{d}{queue_offset}{e}{opaque}{f}"
        ).encode()
        return _PREFIX.pack(4 + len(header), len(header)) + header

    def _command(
        self, code: int, opaque: int, encoding: int, offset: str, queue_id: str, queue_offset: str
    ) -> Command:
        return Command(
            code,
            {
                "msgId": self._id_prefix + offset,
                "queueId": queue_id,
                "queueOffset": queue_offset,
                **self._ext,
            },
            b"",
            FLAG_RESPONSE,
            opaque,
            encoding=encoding,
        )


class Stored(NamedTuple):
    """What a plain reply says; its code is SUCCESS. See ``headers.send.SendMessageReply``."""

    message_id: str
    queue_offset: int
    transaction_id: str | None
    region: str | None
    is_traced: bool


AnswerPlain = Callable[[bytes, dict[int, Any], Callable[..., Stored]], int]


def answer_none(data: bytes, waiters: dict[int, Any], make: Callable[..., Stored]) -> int:
    """The twin answers those who wait for the plain replies that the data begins with, and says how long these are.

    ``waiters`` are those of ``remoting.pending``.
    """
    return 0


_twin = twin("messages")
answer_plain: Final[AnswerPlain] = answer_none if _twin is None else _twin.answer_plain
