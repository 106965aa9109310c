"""Bytes <-> commands: splits a stream into frames, decodes and encodes whole frames. No I/O.

Next on a message's path: ``command`` (what is in a frame), ``remoting.dispatcher`` (who handles it).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, overload

from cometmq.base.errors import LocalProtocolError, RemoteProtocolError
from cometmq.native.cut_pull import CutPull
from cometmq.native.send_run import SendRun
from cometmq.protocol import header_binary, header_json
from cometmq.protocol.command import BINARY, JSON, Body, Command

FRAME_BYTES_MAX: Final = 16 * 1024 * 1024

HEADER_BYTES_TAKEN: Final = 1024 * 1024
"""The longest header that is accepted and sent. It holds the properties of a message, up to 32 KiB."""

JOINED_PART_BYTES_MAX: Final = 4096
"""Body parts that are smaller than this on average are joined: writing each costs more than copying it."""

Cut = Callable[[bytes, int, int], SendRun | CutPull | None]
"""Takes what was received, where the next frame begins, and the size of the largest frame."""

# length of the rest, header word
_PREFIX = struct.Struct(">iI")
_PREFIX_BYTES: Final = 8
_HEADER_DECODERS: Final = {JSON: header_json.decode_header, BINARY: header_binary.decode_header}


class LargeFrame(NamedTuple):
    """The start of a frame: its header, and what has come of its body."""

    command: Command
    """Without its body."""
    body_bytes: int
    """The size of the whole body."""
    begun: bytes
    """The first bytes of it."""


class FrameDecoder:
    """Splits a byte stream into commands. One per connection; not thread-safe.

    An incomplete frame is kept as the bytes received so far; memory is never allocated in advance.
    """

    __slots__ = ("_frame_bytes_max", "_pending", "_wanted_bytes")

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._pending = bytearray()
        self._wanted_bytes = _PREFIX_BYTES

    @property
    def pending_bytes(self) -> int:
        """Bytes of an incomplete frame."""
        return len(self._pending)

    def clear(self) -> None:
        """Discard a frame that will not be completed."""
        self._pending = bytearray()
        self._wanted_bytes = _PREFIX_BYTES

    @overload
    def feed(self, data: bytes) -> Iterator[Command]: ...

    @overload
    def feed(self, data: bytes, cut: Cut | None) -> Iterator[Command | SendRun | CutPull]: ...

    def feed(self, data: bytes, cut: Cut | None = None) -> Iterator[Command | SendRun | CutPull]:
        """The commands completed by ``data``, in order. Consume the iterator before feeding again.

        Args:
            cut: takes runs of sends and known pulls out of the stream, for those who can work on them.

        Raises:
            RemoteProtocolError: the stream is broken and can no longer be trusted.
        """
        pending = self._pending
        if pending:
            pending += data
            if len(pending) < self._wanted_bytes:
                return
            data = bytes(pending)
            pending.clear()
        at = frame_end = 0
        end = len(data)
        view = memoryview(data)
        while end - at >= _PREFIX_BYTES:
            if cut is not None and (found := cut(data, at, self._frame_bytes_max)):
                yield found
                at = found.end
                continue
            length, word = _PREFIX.unpack_from(data, at)
            header_bytes = word & 0xFFFFFF
            # Signed on purpose: the peer writes a Java int, and a negative length is hostile.
            if not 4 <= length <= self._frame_bytes_max:
                raise RemoteProtocolError(
                    f"frame of {length} bytes; expected 4 to {self._frame_bytes_max}"
                )
            if header_bytes > length - 4:
                raise RemoteProtocolError(f"header of {header_bytes} bytes in a frame of {length}")
            if header_bytes > HEADER_BYTES_TAKEN:
                raise RemoteProtocolError(
                    f"header of {header_bytes} bytes; expected at most {HEADER_BYTES_TAKEN}"
                )
            decode_header = _HEADER_DECODERS.get(word >> 24)
            if decode_header is None:
                raise RemoteProtocolError(f"header encoding {word >> 24}; expected 0 or 1")
            frame_end = at + 4 + length
            if frame_end > end:
                break
            header_at = at + _PREFIX_BYTES
            body_at = header_at + header_bytes
            yield decode_header(view[header_at:body_at], data[body_at:frame_end])
            at = frame_end
        if at < end:
            pending += view[at:]
            # A length counts only after the check above, which needs the whole prefix. Otherwise a hostile one would
            # make us wait for, and keep, two gigabytes.
            self._wanted_bytes = frame_end - at if end - at >= _PREFIX_BYTES else _PREFIX_BYTES

    def take_large(self, missing_bytes_min: int) -> LargeFrame | None:
        """Hand over the frame that has not ended yet, if its header is here and so many bytes of it are missing.

        The caller receives the rest of the body itself; the next byte to feed is the one behind that.

        Raises:
            RemoteProtocolError: the header cannot be read.
        """
        pending = self._pending
        if not pending or self._wanted_bytes - len(pending) < missing_bytes_min:
            return None
        length, word = _PREFIX.unpack_from(pending)
        body_at = _PREFIX_BYTES + (word & 0xFFFFFF)
        if len(pending) < body_at:
            return None
        header = memoryview(bytes(pending[_PREFIX_BYTES:body_at]))
        # ``feed`` has checked the prefix.
        command = _HEADER_DECODERS[word >> 24](header, b"")
        begun = bytes(pending[body_at:])
        self.clear()
        return LargeFrame(command, 4 + length - body_at, begun)


def encode(command: Command) -> list[Body]:
    """The frame's bytes in parts ready for one ``writelines``: prefix and header, then the body unjoined."""
    if command.encoding == JSON:
        header = header_json.encode_header(command)
        word = len(header)
    else:
        header = header_binary.encode_header(command)
        word = len(header) | BINARY << 24
    parts = command.body_parts
    body_bytes = sum(map(len, parts)) if parts is not None else len(command.body)
    length = 4 + len(header) + body_bytes
    if len(header) > HEADER_BYTES_TAKEN or length > 0x7FFFFFFF:
        raise LocalProtocolError(f"frame of {length} bytes with a header of {len(header)}")
    head = _PREFIX.pack(length, word) + header
    if parts is not None:
        return with_parts(head, parts, body_bytes)
    if body_bytes:
        return [head, command.body]
    return [head]


def with_parts(head: bytes, parts: Sequence[Body], body_bytes: int) -> list[Body]:
    """A frame whose body is given in parts, the small ones joined."""
    if body_bytes < JOINED_PART_BYTES_MAX * len(parts):
        return [b"".join((head, *parts))]
    return [head, *parts]


def encode_bytes(command: Command) -> bytes:
    """The frame as one piece; for tests and small commands."""
    return b"".join(encode(command))


def decode_bytes(frame: bytes) -> Command:
    """The command of exactly one whole frame. Raises RemoteProtocolError."""
    decoder = FrameDecoder(frame_bytes_max=max(len(frame), 4))
    commands = list(decoder.feed(frame))
    if len(commands) != 1 or decoder.pending_bytes:
        raise RemoteProtocolError(f"expected one whole frame in {len(frame)} bytes")
    return commands[0]
