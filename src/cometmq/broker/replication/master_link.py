"""A slave's connection at its master: reports in, pieces of the log out. ``feed`` decides what to send.

The log is sent from its mapping as fast as the slave takes it: while the transport's buffer is full nothing more is
read, so a slow slave costs a bounded amount of memory. Belongs to the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol, cast

from cometmq.base.errors import RemoteProtocolError
from cometmq.broker.replication.feed import Feed, FeedLimits, LogSpan
from cometmq.broker.replication.ha_wire import SlaveIdentity
from cometmq.remoting.certificates.subject import peer_subject

logger = logging.getLogger("cometmq.broker")

BUFFER_HIGH_BYTES: Final = 4 * 1024 * 1024
BUFFER_LOW_BYTES: Final = 1024 * 1024
TURN_BYTES: Final = 2 * 1024 * 1024
"""What one slave is given before others have their turn on the loop."""


class MasterLog(Protocol):
    """The log as the feed of slaves sees it."""

    @property
    def span(self) -> LogSpan: ...

    def view(self, offset: int, size_bytes: int) -> memoryview | None:
        """Bytes of one file; None when they are gone."""
        ...


class MasterWire(Protocol):
    """How a master speaks to one slave: cuts what comes, and heads what goes."""

    @property
    def only_reads(self) -> bool:
        """The peer does not follow."""
        ...

    @property
    def slave(self) -> SlaveIdentity | None:
        """Who the peer is, if the wire tells."""
        ...

    @property
    def has_news(self) -> bool:
        """Whether there is something to say though nothing of the log is left to send."""
        ...

    def feed(self, data: bytes) -> int | None:
        """The newest report in what has come, if there is one. Raises RemoteProtocolError."""
        ...

    def take_words(self) -> bytes:
        """What has to be said before anything else, once."""
        ...

    def fit(self, offset: int, size_bytes: int) -> int:
        """How much of a piece may go into one frame; 0: nothing of it may be sent now."""
        ...

    def header(self, offset: int, size_bytes: int) -> bytes: ...


class Slaves(Protocol):
    """Who is told about this connection."""

    def reported(self, link: MasterLink, offset: int) -> None:
        """The peer says that its log ends at ``offset``."""
        ...

    def left(self, link: MasterLink, reason: str | None) -> None:
        """It is gone; the reason is None when it is in the log already."""
        ...


class MasterLink(asyncio.Protocol):
    def __init__(
        self,
        log: MasterLog,
        slaves: Slaves,
        limits: Callable[[], FeedLimits],
        wire: MasterWire,
        *,
        loop: asyncio.AbstractEventLoop,
        admits: Callable[[MasterLink], str | None],
    ) -> None:
        """
        Args:
            admits: why this peer, which has just connected, may not be a slave; None when it may.
        """
        self.peer = self.host = "?"
        self.subject = ""
        """The name in the certificate of the peer, if it has one."""
        self.feed = Feed(limits(), loop.time())
        self.bytes_per_second = 0
        """Sent in the last second."""
        self._sent_bytes = 0
        self._log = log
        self._slaves = slaves
        self._loop = loop
        self._admits = admits
        self.wire = wire
        self._transport: asyncio.Transport | None = None
        self._is_paused = False
        self._is_scheduled = False
        self._is_told = False

    @property
    def is_paused(self) -> bool:
        """The slave does not take what it was sent."""
        return self._is_paused

    @property
    def unsent_bytes(self) -> int:
        """What waits in memory for the slave to take it."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    @property
    def confirmed(self) -> int:
        return self.feed.confirmed or 0

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def close(self, reason: str) -> None:
        if self._transport is not None and self.is_open:
            self._is_told = True
            logger.info("slave disconnected peer=%s reason=%s", self.peer, reason)
            self._transport.abort()

    def log_grew(self) -> None:
        """There is more to send. What is appended in one turn of the loop is sent together."""
        if not self._is_scheduled and not self._is_paused:
            self._is_scheduled = True
            self._loop.call_soon(self._send_more)

    def tick(self) -> None:
        """To be called every second or so: heartbeats, and the end of a slave that says nothing."""
        now = self._loop.time()
        self.bytes_per_second, self._sent_bytes = self._sent_bytes, 0
        if self._transport is not None and self._transport.is_closing():
            self._transport.abort()
            return
        if self.feed.is_silent(now):
            self.close("it said nothing for too long")
            return
        if self._is_paused or not self.is_open:
            return
        offset = self.feed.heartbeat(self._log.span, now, is_due=self.wire.has_news)
        if offset is not None and self._transport is not None:
            self._transport.write(self.wire.header(offset, 0))
            self.feed.sent(0, now)

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(BUFFER_HIGH_BYTES, BUFFER_LOW_BYTES)
        host, port, *_ = transport.get_extra_info("peername") or ("?", 0)
        self.host = host
        self.peer = f"{host}:{port}"
        self.subject = peer_subject(transport)
        refusal = self._admits(self)
        if refusal is not None:
            self._refuse(refusal)

    def data_received(self, data: bytes) -> None:
        try:
            offset = self.wire.feed(data)
            words = self.wire.take_words()
            if words and self._transport is not None:
                self._transport.write(words)
            if offset is None:
                return
            if self.wire.slave is not None:
                self.feed.from_last_file = self.wire.slave.from_last_file
            self.feed.reported(offset, self._log.span, self._loop.time())
        except RemoteProtocolError as error:
            # Where this log ends tells a slave that has more how far back to look.
            self._refuse(str(error), last_word=self.wire.header(self._log.span.end, 0))
            return
        if not self.wire.only_reads:
            self._slaves.reported(self, offset)
        self.log_grew()

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self.log_grew()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._slaves.left(self, None if self._is_told else str(exc or "closed"))

    # Inside.

    def _refuse(self, reason: str, *, last_word: bytes = b"") -> None:
        """Hang up, with one line in the log. ``tick`` sees to the end of a peer that does not read."""
        self._is_told = True
        logger.warning("slave refused peer=%s reason=%s", self.peer, reason)
        if self._transport is not None:
            self._transport.write(last_word)
            self._transport.close()

    def _send_more(self) -> None:
        self._is_scheduled = False
        budget = TURN_BYTES
        while budget > 0 and not self._is_paused and self.is_open:
            piece = self.feed.next_piece(self._log.span)
            if piece is None:
                return
            offset, size_bytes = piece[0], self.wire.fit(*piece)
            if not size_bytes:
                return
            data = self._log.view(offset, size_bytes)
            if data is None:
                # Its file was deleted this very moment: the span says so next time.
                break
            assert self._transport is not None
            self._transport.writelines((self.wire.header(offset, size_bytes), data))
            self.feed.sent(size_bytes, self._loop.time())
            self._sent_bytes += size_bytes
            budget -= size_bytes
        if not self._is_paused and self.is_open:
            self.log_grew()

    def __repr__(self) -> str:
        return f"<MasterLink to {self.peer} confirmed={self.feed.confirmed} next={self.feed.next_offset}>"
