"""Large bodies on connections that we opened: received straight into the memory that they are handed out in.

The pieces that a socket gives are otherwise gathered, joined and cut, which copies each byte three times. As soon as
``protocol.frame`` sees that much of a frame is missing, the transport reads into the frame's own memory until it is
whole; then the connection reads on. Bodies of requests that others send us stay as they are: there nobody may have us
set memory aside by announcing a large frame.

Whoever is done with one body before the next one lends the memory for it (``LentMemory``): always the same then, which
the system need not hand out anew for each reply.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from cometmq.protocol.command import Body
from cometmq.protocol.frame import LargeFrame
from cometmq.remoting.pending import PendingCalls

if TYPE_CHECKING:
    from cometmq.remoting.connection import Connection

LARGE_BYTES: Final = 256 * 1024
"""So much must be missing of a frame: more than one read of a socket brings."""

LENT_STEP_BYTES: Final = 1 << 20
"""Lent memory grows by whole steps, so that replies of about one size do not make it grow again and again."""


class LentMemory:
    """Memory for the body of one large reply at a time. Taken by the event loop's thread, given back by any.

    Lend it to a call (``Connection.call``): the body of a large reply is then a view of it, and is valid until
    ``give_back``. A reply that comes before that gets memory of its own, and so does one whose call has ended.
    """

    __slots__ = ("_is_taken", "_memory")

    def __init__(self) -> None:
        self._memory = bytearray()
        self._is_taken = False

    def take(self, size_bytes: int) -> memoryview | None:
        """Room for so many bytes; None while the memory is in use."""
        if self._is_taken:
            return None
        self._is_taken = True
        if size_bytes > len(self._memory):
            self._memory = bytearray(-(-size_bytes // LENT_STEP_BYTES) * LENT_STEP_BYTES)
        return memoryview(self._memory)[:size_bytes]

    def give_back(self, body: Body) -> None:
        """Nobody looks at ``body`` any more: if it lies in this memory, the next one may overwrite it.

        Which body is said, because the next one may be in this memory by now, or another one that did not find it free
        may be elsewhere.
        """
        if isinstance(body, memoryview) and body.obj is self._memory:
            self._is_taken = False


class LargeBody(asyncio.BufferedProtocol):
    """Stands in for a connection until the body of one frame is complete."""

    __slots__ = ("_at", "_body", "_command", "_connection", "_is_lent", "_pending", "_transport")

    def __init__(
        self,
        connection: Connection,
        transport: asyncio.Transport,
        frame: LargeFrame,
        pending: PendingCalls,
    ) -> None:
        self._connection = connection
        self._transport = transport
        self._pending = pending
        self._command = frame.command
        memory = pending.lent_to(frame.command) if frame.command.is_response else None
        lent = memory.take(frame.body_bytes) if memory is not None else None
        self._is_lent = lent is not None
        self._body = memoryview(bytearray(frame.body_bytes)) if lent is None else lent
        self._at = len(frame.begun)
        self._body[: self._at] = frame.begun

    @classmethod
    def receive(
        cls,
        connection: Connection,
        transport: asyncio.Transport,
        frame: LargeFrame,
        pending: PendingCalls,
    ) -> None:
        """Have the transport read the rest of a frame's body; the connection gets the command when it is whole.

        Args:
            pending: the connection's calls, which may have lent memory.
        """
        transport.set_protocol(cls(connection, transport, frame, pending))

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._is_lent and not self._pending.is_waited_for(self._command):
            # Given up meanwhile: whoever lent the memory may use it for something else.
            self._is_lent = False
            self._body = memoryview(bytearray(len(self._body)))
        return self._body[self._at :]

    def buffer_updated(self, nbytes: int) -> None:
        self._at += nbytes
        self._connection.last_active = asyncio.get_running_loop().time()
        self._pending.heard += 1
        if self._at < len(self._body):
            return
        self._transport.set_protocol(self._connection)
        # Readers cut messages out of a body and count on bytes; only who lent memory gets a view of it.
        command = self._command
        command.body = self._body if self._is_lent else bytes(self._body)
        # uvloop's transport keeps this object until it has the next one of its kind, maybe never.
        del self._body, self._command
        self._connection.body_received(command)

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def eof_received(self) -> bool:
        return self._connection.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)
