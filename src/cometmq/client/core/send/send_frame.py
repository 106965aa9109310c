"""The request of a plain send, written directly as a frame: the most frequent request, always of the same shape.

Through ``Command`` and ``frame.encode`` it takes three times as long. The text around what differs comes from
``header_json`` itself, so that both ways produce the same bytes; ``protocol.send_reply`` does the same for the reply.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

from cometmq.client.core.send.prepare import SendRequest
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol.header_json import encode_header

HEAD_BYTES_MAX: Final = 256 * 1024
"""A longer header takes the general way, which knows the limit. Property texts have 32 KiB at most."""

SHAPES_MAX: Final = 10_000
"""For so many queues the text around is kept; then it is made anew."""

_PREFIX = struct.Struct(">iI")
_encode = msgspec.json.Encoder().encode
# Placeholders for what differs, and how they look: in JSON, no text can hold a key with its quotes.
_NUMBER: Final = 1_000_000_001
_PROPERTIES: Final = "<properties>"
_BORN_MARK: Final = b'"g":"%d"' % _NUMBER
_PROPERTIES_MARK: Final = b'"i":"%b"' % _PROPERTIES.encode()
_OPAQUE_MARK: Final = b'"opaque":%d' % _NUMBER

_Shape = tuple[bytes, bytes, bytes, bytes]


class SendFrames:
    """Writes the requests of one producer."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[str, str, int], _Shape] = {}

    def head(self, request: SendRequest, queue: MessageQueue, opaque: int) -> bytes | None:
        """The frame of a plain request up to the body; None if only the general way can write it."""
        key = request.wire_topic, queue.broker_name, queue.queue_id
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._make_shape(request, queue, key)
        try:
            properties = _encode(request.properties)
        except UnicodeEncodeError:
            return None
        a, b, c, d = shape
        header = b"%b%d%b%b%b%d%b" % (a, request.born_ms, b, properties, c, opaque, d)
        if len(header) > HEAD_BYTES_MAX:
            return None
        return _PREFIX.pack(4 + len(header) + len(request.body), len(header)) + header

    def _make_shape(
        self, request: SendRequest, queue: MessageQueue, key: tuple[str, str, int]
    ) -> _Shape:
        sample = msgspec.structs.replace(request, born_ms=_NUMBER, properties=_PROPERTIES)
        command = sample.to(queue)
        command.opaque = _NUMBER
        a, rest = encode_header(command).split(_BORN_MARK)
        b, rest = rest.split(_PROPERTIES_MARK)
        c, d = rest.split(_OPAQUE_MARK)
        if len(self._shapes) >= SHAPES_MAX:
            self._shapes.clear()
        shape = self._shapes[key] = a + b'"g":"', b'"' + b + b'"i":', c + b'"opaque":', d
        return shape
