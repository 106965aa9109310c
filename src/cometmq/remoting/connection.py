"""One peer: bytes in, replies out, and the calls that we make ourselves.

Bytes are cut into commands as they come (``protocol.frame``). The commands wait for the next turn of the event loop,
which hands them to the dispatcher and writes all replies at once (``remoting.turn``). No task, future or timer exists
per request.

Reading is held while the peer does not take what we sent, or while too many of its requests are being worked on in the
background. Commands that have been received by then wait until reading is released. A connection that we opened is
never held for its unsent bytes: the other end stops reading from us while we do not read from it, and two ends that
wait for each other to read would wait forever. There the callers wait instead.

Everything here belongs to the event loop's thread.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final, cast

from cometmq.base.errors import (
    CallTimedOut,
    ConnectionLost,
    RemoteProtocolError,
    TooManyInFlight,
)
from cometmq.model.address import join_address, pack_host
from cometmq.native.cut_pull import CutPull
from cometmq.native.send_run import SendRun
from cometmq.protocol.command import FLAG_ONEWAY, Body, Command
from cometmq.protocol.frame import FrameDecoder, encode
from cometmq.protocol.send_reply import Stored
from cometmq.remoting.bounds.reached import MALFORMED
from cometmq.remoting.certificates.subject import peer_subject
from cometmq.remoting.large_body import LARGE_BYTES, LargeBody, LentMemory
from cometmq.remoting.pending import PendingCalls

if TYPE_CHECKING:
    from cometmq.remoting.endpoint import Endpoint

logger = logging.getLogger("cometmq.remoting")

# Why reading is held, as bits.
HELD_WRITES: Final = 1
HELD_HANDLERS: Final = 2
HELD_STOPPING: Final = 4
HELD_CLOSED: Final = 8
HELD_TURN: Final = 16

# A body of at least this size goes to the transport at once, so that it counts for back-pressure before the next
# request is handled. Smaller ones wait for the end of the turn, but never more than so many parts.
BULK_BYTES: Final = 16 * 1024
PARTS_MAX: Final = 512

# Our own requests leave earlier: the server works on the first ones while we make the next. A producer with 64 sends in
# flight gained between a third and double by this on a machine shared with others.
REQUEST_PARTS_MAX: Final = 32

REASON_CHARS_MAX: Final = 300
"""Reasons are cut to this length, because they may quote what the peer sent."""


class Connection(asyncio.Protocol):
    """A connection to one peer, accepted or opened by us; both kinds send and receive requests."""

    __slots__ = (
        "__weakref__",
        "_broken",
        "_decoder",
        "_dispatcher",
        "_drained",
        "_endpoint",
        "_flush_scheduled",
        "_is_lost",
        "_is_paused",
        "_loop",
        "_out",
        "_parts_max",
        "_pending",
        "_time",
        "_transport",
        "_turn",
        "_writers_waiting",
        "close_reason",
        "closed_at",
        "commands",
        "congested_at",
        "frame_began",
        "handlers_running",
        "held",
        "is_accepted",
        "is_handling",
        "is_queued",
        "last_active",
        "peer",
        "peer_host",
        "unhandled_bytes",
    )

    def __init__(self, endpoint: Endpoint, *, is_accepted: bool) -> None:
        loop = asyncio.get_running_loop()
        limits = endpoint.limits
        self.peer = "unconnected"
        """``ip:port`` of the other end, IPv6 in brackets."""
        self.peer_host = b""
        """The same as a record stores it: the born host of what the peer sends."""
        self.is_accepted = is_accepted
        self.commands: deque[Command | SendRun | CutPull] = deque()
        """Received, and not handled yet. The turn takes them from the left."""
        self.held = 0
        """The reasons why the peer is not read from and its commands are not handled, as bits."""
        self.is_queued = False
        """Whether the connection waits for the next turn."""
        self.is_handling = False
        """Whether the turn is handling the commands of this connection, and will flush the replies."""
        self.last_active = loop.time()
        self.congested_at: float | None = None
        """Since when the unsent bytes have been above the high-water mark."""
        self.closed_at: float | None = None
        self.close_reason = ""
        self.handlers_running = 0
        self.frame_began: float | None = None
        """Since when the peer has been sending a frame that is not complete yet."""
        self.unhandled_bytes = 0
        """Received, and neither handled nor dropped yet."""
        self._endpoint = endpoint
        self._turn = endpoint.turn
        self._dispatcher = endpoint.dispatcher
        self._loop = loop
        self._time = loop.time
        self._transport = cast(asyncio.Transport, None)
        self._decoder = FrameDecoder(limits.frame_bytes_max)
        self._broken: str | None = None
        self._is_lost = False
        self._is_paused = False
        self._out: list[Body] = []
        self._parts_max = PARTS_MAX if is_accepted else REQUEST_PARTS_MAX
        self._flush_scheduled = False
        self._drained: asyncio.Future[None] | None = None
        self._writers_waiting = 0
        self._pending = PendingCalls(loop, limits.calls_max)
        if not is_accepted:
            # The next call opens another one. A server leaves that to its client, and to the sweep.
            self._pending.on_silence = self._give_up

    @property
    def is_closed(self) -> bool:
        """No more commands are handled or sent; the last bytes may still be leaving."""
        return self.held & HELD_CLOSED != 0

    @property
    def subject(self) -> str:
        """The name in the certificate that the peer has proved to own; empty without one."""
        return "" if self._transport is None else peer_subject(self._transport)

    @property
    def is_congested(self) -> bool:
        """The peer does not take what was sent: more than the high-water mark is waiting."""
        return self.congested_at is not None

    @property
    def is_held(self) -> bool:
        """The peer is not read from at present, or any more."""
        return self.held != 0

    @property
    def in_flight(self) -> int:
        """Our calls that the peer has not answered yet."""
        return len(self._pending)

    @property
    def outgoing_bytes(self) -> int:
        """Bytes that wait in the transport."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def send(self, command: Command) -> None:
        """Send a command as it is; those of one turn of the loop leave together. Dropped when closed.

        Raises:
            LocalProtocolError: the command does not fit into a frame.
        """
        if self.held & HELD_CLOSED:
            return
        out = self._out
        out += encode(command)
        is_bulky = command.body_parts is not None or len(command.body) >= BULK_BYTES
        if is_bulky or len(out) >= self._parts_max:
            self.flush()
        elif not self.is_handling and not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self.flush)

    def send_parts(self, parts: list[Body]) -> None:
        """Send an encoded reply with a body in parts, at once. Dropped when closed."""
        if not self.held & HELD_CLOSED:
            self._out += parts
            self.flush()

    def send_frame(self, frame: bytes) -> None:
        """Send an encoded reply, together with the others of this turn of the loop. Dropped when closed."""
        if self.held & HELD_CLOSED:
            return
        self._out.append(frame)
        if len(self._out) >= PARTS_MAX:
            self.flush()
        elif not self.is_handling and not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self.flush)

    def add_frame(self, frame: bytes) -> None:
        """The same for the finish of a gathered kind, after which the turn flushes the connection anyway."""
        if not self.held & HELD_CLOSED:
            self._out.append(frame)

    def oneway(self, command: Command) -> None:
        """Send a request that nobody answers; nothing tells whether it arrived."""
        command.flag |= FLAG_ONEWAY
        # An opaque of its own: if the peer answers in spite of the flag, no call takes that for its reply.
        command.opaque = self._pending.number()
        self.send(command)

    async def call(self, command: Command, timeout: float) -> Command:
        """Send a request and return its reply, whatever its code. The opaque is assigned here.

        Raises:
            CallTimedOut: no reply within ``timeout`` seconds; ``sent`` is False when the peer was too congested to
                send at all.
            ConnectionLost: the connection closed first.
            TooManyInFlight: the bound on unanswered calls is reached; nothing was sent.
        """
        deadline = self._time() + timeout
        if self.congested_at is not None:
            await self.drained(timeout)
        reply = self.start_call(command, deadline)
        try:
            return await reply
        finally:
            # Only a cancelled call is still there.
            self._pending.forget(command.opaque)

    def start_call(
        self, command: Command, deadline: float = math.inf, memory: LentMemory | None = None
    ) -> asyncio.Future[Command]:
        """Send a request now, however much waits to be sent, and return the future of its reply; see ``call``.

        Args:
            deadline: on the loop's clock; then the future fails with CallTimedOut.
            memory: lent for the body of the reply, should it be large.

        Raises:
            ConnectionLost: the connection is closed.
            TooManyInFlight: the bound on unanswered calls is reached; nothing was sent.
        """
        if self.is_closed:
            raise ConnectionLost(f"connection to {self.peer} is closed: {self.close_reason}")
        command.opaque, reply = self._pending.add(command.code, deadline, memory)
        try:
            self.send(command)
        except BaseException:
            self._pending.forget(command.opaque)
            raise
        return reply

    def expect_reply(
        self, code: int, timeout: float
    ) -> tuple[int, asyncio.Future[Command | Stored]]:
        """The opaque of a send that its caller encodes, and the future of its reply; see ``start_call``.

        The caller goes on at once with ``send_encoded``, and calls ``forget`` when it stops waiting.
        """
        if self.held & HELD_CLOSED:
            raise ConnectionLost(f"connection to {self.peer} is closed: {self.close_reason}")
        return self._pending.add(code, self._time() + timeout, None, True)

    def send_encoded(self, head: bytes, body: bytes) -> None:
        """Send a frame as ``send`` does. Dropped when closed."""
        if self.held & HELD_CLOSED:
            return
        out = self._out
        out += (head, body)
        if len(body) >= BULK_BYTES or len(out) >= self._parts_max:
            self.flush()
        elif not self.is_handling and not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self.flush)

    def forget(self, opaque: int) -> None:
        """Nobody waits for this reply any more; it will be dropped as unknown."""
        self._pending.forget(opaque)

    async def drained(self, timeout: float) -> None:
        """Return once the peer has taken enough of what was sent. Raises as ``call`` does."""
        if self._writers_waiting >= self._endpoint.limits.calls_max:
            raise TooManyInFlight(f"{self._writers_waiting} calls wait for {self.peer} to read")
        self._writers_waiting += 1
        try:
            async with asyncio.timeout(timeout):
                # Again and again: whoever woke up earlier may have filled the buffer by now.
                while self.is_congested and not self.is_closed:
                    if self._drained is None:
                        self._drained = self._loop.create_future()
                    await asyncio.shield(self._drained)
        except TimeoutError:
            raise CallTimedOut(
                f"{self.peer} did not take {self.outgoing_bytes} unsent bytes in {timeout:g} s",
                sent=False,
            ) from None
        finally:
            self._writers_waiting -= 1

    def close(self, reason: str) -> None:
        """Send what is queued, then close. Our unanswered calls end with ConnectionLost at once."""
        if self.is_closed:
            return
        self.flush()
        self._end(reason)
        if self._transport is not None:
            self._transport.close()

    def close_half(self, reason: str) -> None:
        """Send what is queued and close our half; discard what the peer sends until it closes, too.

        A plain close with unread requests makes the kernel reset the connection, and the peer may then lose replies
        that had already arrived.
        """
        if self.is_closed:
            return
        self.flush()
        self._end(reason)
        if not self._transport.can_write_eof():
            self._transport.close()
            return
        try:
            self._transport.write_eof()
        except OSError:
            # The peer has gone already. Only asyncio's own event loop says so.
            self._transport.close()
            return
        if self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()

    def abort(self, reason: str) -> None:
        """Close without sending what is queued."""
        self._end(reason)
        if self._transport is not None:
            self._transport.abort()

    def hold(self, why: int) -> None:
        """Stop reading, and handle no more commands, until every reason is released."""
        self.held |= why
        if not self._is_paused and not self.is_closed and not self._transport.is_closing():
            self._is_paused = True
            self._transport.pause_reading()

    def release(self, why: int) -> None:
        if not self.held & why:
            return
        self.held &= ~why
        if not self.held:
            # It handles the commands that are left, and reads on.
            self._turn.add(self)

    def run_handler(self, work: Coroutine[Any, Any, None], body_bytes: int = 0) -> None:
        """Work on a request in the background; it keeps a body of ``body_bytes`` until it is done."""
        self._endpoint.run_handler(self, work, body_bytes)

    def __repr__(self) -> str:
        state = f"closed ({self.close_reason})" if self.is_closed else "open"
        held = [
            name
            for bit, name in (
                (HELD_WRITES, "writes"),
                (HELD_HANDLERS, "handlers"),
                (HELD_STOPPING, "stopping"),
            )
            if self.held & bit
        ]
        return (
            f"<Connection {'from' if self.is_accepted else 'to'} {self.peer} {state}"
            f"{' held=' + '+'.join(held) if held else ''}"
            f" in_flight={self.in_flight} handlers={self.handlers_running}"
            f" unread={self._decoder.pending_bytes}B unsent={self.outgoing_bytes}B"
            f" idle={self._time() - self.last_active:.1f}s>"
        )

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        limits = self._endpoint.limits
        self._transport.set_write_buffer_limits(
            limits.outgoing_high_bytes, limits.outgoing_low_bytes
        )
        peername = transport.get_extra_info("peername")
        if not peername:
            self.abort("the peer left before its address could be read")
            return
        host, port = peername[0], peername[1]
        self.peer = join_address(host, port)
        self.peer_host = pack_host(host, port)
        self._pending.peer = self.peer
        logger.debug("connection opened peer=%s accepted=%s", self.peer, self.is_accepted)
        self._endpoint.opened(self)

    def data_received(self, data: bytes) -> None:
        self.last_active = self._time()
        self._pending.heard += 1
        if self.held & HELD_CLOSED or self._broken is not None:
            return
        if not (self.is_accepted or self.held or self.commands or self._decoder.pending_bytes):
            data = data[self._pending.answer_plain(data) :]
            if not data:
                return
        self._decode(data)
        # A transport may deliver once more after it was told to pause: then the commands wait.
        if not self.held:
            self._turn.add(self)
        endpoint, size_bytes = self._endpoint, len(data)
        self.unhandled_bytes += size_bytes
        endpoint.unhandled_bytes += size_bytes
        if endpoint.unhandled_bytes > endpoint.limits.received_bytes_max:
            endpoint.make_room()

    def body_received(self, command: Command) -> None:
        """A command whose large body is complete; see ``large_body``."""
        if not self.held & HELD_CLOSED:
            self.commands.append(command)
            self._turn.add(self)

    def pause_writing(self) -> None:
        self.congested_at = self._time()
        if self.is_accepted:
            self.hold(HELD_WRITES)

    def resume_writing(self) -> None:
        self.congested_at = None
        if self._drained is not None:
            self._drained.set_result(None)
            self._drained = None
        if self.is_accepted:
            self.release(HELD_WRITES)

    def eof_received(self) -> bool:
        # What came together with the end is still to be handled.
        self._turn.run_alone(self)
        self._end(self._peer_left())
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        # Nobody takes the replies any more, but one-way requests are still to be carried out.
        self._is_lost = True
        self._turn.run_alone(self)
        self._end(self._peer_left() if exc is None else f"{type(exc).__name__}: {exc}")
        logger.debug("connection closed peer=%s reason=%s", self.peer, self.close_reason)
        self._endpoint.lost(self)

    # What the turn calls.

    def take_reply(self, reply: Command) -> None:
        """Give a reply to whoever called."""
        if not self._pending.answer(reply):
            logger.debug(
                "reply dropped peer=%s opaque=%d code=%d", self.peer, reply.opaque, reply.code
            )

    def read_on(self) -> None:
        """Every command has been handled."""
        if self._broken is not None:
            self._close_broken(self._broken)
            return
        left_bytes = self._decoder.pending_bytes
        self._endpoint.unhandled_bytes -= self.unhandled_bytes - left_bytes
        self.unhandled_bytes = left_bytes
        if self._is_paused:
            self._is_paused = False
            if self.frame_began is not None:
                # The time during which nobody read is not the peer's fault.
                self.frame_began = self._time()
            if not self._transport.is_closing():
                self._transport.resume_reading()

    def flush(self) -> None:
        """Write what is queued."""
        self._flush_scheduled = False
        out = self._out
        if not out or self._is_lost or self.held & HELD_CLOSED:
            return
        self._out = []
        self.last_active = self._time()
        if len(out) == 1:
            self._transport.write(out[0])
        else:
            self._transport.writelines(out)
        if self.congested_at is not None:
            unsent_bytes = self._transport.get_write_buffer_size()
            if unsent_bytes > self._endpoint.limits.outgoing_bytes_max:
                self._endpoint.reached.count("serverOutgoingBytesMax")
                logger.warning(
                    "slow reader cut off peer=%s unsent_bytes=%d", self.peer, unsent_bytes
                )
                self.abort(f"the peer left {unsent_bytes} bytes unread")

    # Inside.

    def _give_up(self) -> None:
        self.abort("a call timed out, and nothing has come since it was made")

    def _decode(self, data: bytes) -> None:
        before = len(self.commands)
        try:
            self.commands.extend(self._decoder.feed(data, self._dispatcher.cut))
            if not self.is_accepted:
                large = self._decoder.take_large(LARGE_BYTES)
                if large is not None:
                    LargeBody.receive(self, self._transport, large, self._pending)
        except RemoteProtocolError as error:
            # The commands before the fault are good, and are handled first. Only the text is kept: the error itself
            # would hold on to the bytes, and to this connection.
            self._broken = str(error)[:REASON_CHARS_MAX]
        if not self._decoder.pending_bytes:
            self.frame_began = None
        elif self.frame_began is None or len(self.commands) > before:
            self.frame_began = self.last_active

    def _close_broken(self, reason: str) -> None:
        # Gathered requests get their replies before the connection closes.
        self._turn.finish()
        self._endpoint.reached.count(MALFORMED)
        logger.warning("connection closed peer=%s reason=%s", self.peer, reason)
        self.close(f"the peer broke the protocol: {reason}")

    def _end(self, reason: str) -> None:
        if self.is_closed:
            return
        self.held |= HELD_CLOSED
        self.closed_at = self._time()
        self.close_reason = reason
        self.commands.clear()
        self._decoder.clear()
        self._out.clear()
        self._endpoint.unhandled_bytes -= self.unhandled_bytes
        self.unhandled_bytes = 0
        self._pending.fail_all(f"connection to {self.peer} was lost: {reason}")
        if self._drained is not None:
            self._drained.set_result(None)
            self._drained = None

    def _peer_left(self) -> str:
        unfinished_bytes = self._decoder.pending_bytes
        if unfinished_bytes:
            return f"closed by the peer {unfinished_bytes} bytes into a frame"
        return "closed by the peer"
