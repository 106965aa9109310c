"""The head of the reply to a pull that found messages, written directly.

The text around its numbers is always the same. It comes from ``header_json``, so both ways produce the same bytes.
"""

from __future__ import annotations

import struct
from typing import Final

from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import FLAG_RESPONSE, Command
from cometmq.protocol.header_json import encode_header

_PREFIX = struct.Struct(">iI")
# They stand for what differs.
_FIELDS: Final = ("<suggested>", "<next>", "<min>", "<max>")
_OPAQUE: Final = 1_000_000_001

FOUND: Final = "FOUND"


def reply_fields(
    suggested: object, next_offset: object, min_offset: object, max_offset: object
) -> dict[str, str]:
    """The fields of a reply to a pull."""
    return {
        "suggestWhichBrokerId": str(suggested),
        "nextBeginOffset": str(next_offset),
        "minOffset": str(min_offset),
        "maxOffset": str(max_offset),
    }


def _pieces() -> list[str]:
    """What is around the numbers."""
    rest = encode_header(
        Command(
            int(ResponseCode.SUCCESS),
            reply_fields(*_FIELDS),
            flag=FLAG_RESPONSE,
            opaque=_OPAQUE,
            remark=FOUND,
        )
    ).decode()
    pieces = []
    for mark in (*_FIELDS, str(_OPAQUE)):
        piece, _, rest = rest.partition(mark)
        pieces.append(piece)
    return [*pieces, rest]


_A, _B, _C, _D, _E, _F = _pieces()


def found_head(
    suggested: int,
    next_offset: int,
    min_offset: int,
    max_offset: int,
    opaque: int,
    body_bytes: int,
) -> bytes:
    """All of the frame but its body; in JSON."""
    header = (
        f"{_A}{suggested}{_B}{next_offset}{_C}{min_offset}{_D}{max_offset}{_E}{opaque}{_F}".encode()
    )
    return _PREFIX.pack(4 + len(header) + body_bytes, len(header)) + header
