"""The port where slaves connect: accepts them, keeps the table of who has what, and moves the replicated mark."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from cometmq.base.errors import RemotingError
from cometmq.broker.replication.feed import FeedLimits
from cometmq.broker.replication.ha_wire import ReportReader
from cometmq.broker.replication.master_link import MasterLink, MasterLog, MasterWire
from cometmq.broker.replication.replicas import Replicas
from cometmq.broker.replication.replication_config import ReplicationConfig, is_allowed
from cometmq.remoting.bounds.reached import Reached
from cometmq.remoting.certificates.handshakes import Handshakes
from cometmq.remoting.listener import Listener, bind

logger = logging.getLogger("cometmq.broker")

TICK_SECONDS: Final = 1.0
BACKLOG: Final = 100
NOT_ALLOWED: Final = "its address is not in haAllowedAddresses"


def _everybody(host: str, subject: str) -> str | None:
    return None


class HaPort:
    """Args:
    replicas: the table of who has what, kept up to date here.
    config: the settings now; some may change while running.
    is_master: whether slaves may follow this broker, now. Who follows a slave would make its own log like that of a
        broker that may itself be wrong. Who only reads is served all the same.
    on_change: told after a slave came, left or confirmed more.
    wire: how to speak to a slave that has connected.
    admits: why a host, with the name in its certificate, may not connect, though haAllowedAddresses says nothing
        about it; None when it may. Asked again every second.
    handshakes: speak TLS only.
    reached: counts connections too many.
    """

    def __init__(
        self,
        log: MasterLog,
        replicas: Replicas,
        *,
        config: Callable[[], ReplicationConfig],
        is_master: Callable[[], bool],
        on_change: Callable[[], None],
        wire: Callable[[], MasterWire] = ReportReader,
        admits: Callable[[str, str], str | None] = _everybody,
        handshakes: Handshakes | None = None,
        reached: Reached | None = None,
    ) -> None:
        self._admits_host = admits
        self._handshakes = handshakes
        self._reached = reached or Reached()
        self.replicas = replicas
        self._log = log
        self._config = config
        self._is_master = is_master
        self._on_change = on_change
        self._wire = wire
        self._links: dict[MasterLink, None] = {}
        self._server: asyncio.Server | None = None
        self._listener: Listener | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def links(self) -> list[MasterLink]:
        """The connected slaves."""
        return [link for link in self._links if link in self.replicas]

    @property
    def peers(self) -> list[MasterLink]:
        """Everybody who is connected, also those who have not shown to be slaves."""
        return list(self._links)

    async def start(self, bind_address: str, port: int) -> int:
        """Listen. The bound port.

        Raises:
            RemotingError: the port cannot be had.
        """
        loop = asyncio.get_running_loop()
        try:
            if self._handshakes is not None:
                self._listener = await self._listen(self._handshakes, bind_address, port)
            else:
                self._server = await loop.create_server(self._accept, bind_address or None, port)
        except (OSError, RemotingError) as error:
            raise RemotingError(
                f"cannot listen for slaves on {bind_address}:{port}: {error}; set haListenPort to a free port"
            ) from None
        self._timer = loop.call_later(TICK_SECONDS, self._tick)
        if self._listener is not None:
            return self._listener.port
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def _listen(self, handshakes: Handshakes, host: str, port: int) -> Listener:
        """Raises RemotingError."""
        sockets = await bind(
            host, port, backlog=BACKLOG, send_buffer_bytes=0, receive_buffer_bytes=0
        )
        return Listener(sockets, lambda sock, _: handshakes.begin(sock, self._accept))

    async def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        if self._handshakes is not None:
            await self._handshakes.stop()
        if self._server is not None:
            self._server.close()
        self.disconnect("this broker stops serving slaves")
        if self._server is not None:
            await self._server.wait_closed()
            self._server = None

    def disconnect(self, reason: str) -> None:
        """Let go of all slaves; they may come back."""
        for link in list(self._links):
            # At once: what they confirmed may not be true any more.
            self.replicas.left(link)
            link.close(reason)

    def log_grew(self) -> None:
        for link in self._links:
            link.log_grew()

    # What links tell.

    def reported(self, link: MasterLink, offset: int) -> None:
        if not self._is_master():
            link.close("this broker is no master")
            return
        was_known = link in self.replicas
        span = self._log.span
        # A log that ends where a file begins may be empty: a copy that has nothing of the older files.
        since = 0 if offset % span.file_bytes else link.feed.next_offset or 0
        if link.wire.slave is not None:
            self.replicas.identified(link, link.peer, offset, link.wire.slave)
        else:
            self.replicas.reported(link, link.peer, offset, span.end, since)
        if link in self.replicas:
            if not was_known:
                logger.info("slave connected peer=%s log_end=%d", link.peer, offset)
            self._on_change()

    def left(self, link: MasterLink, reason: str | None) -> None:
        self._links.pop(link, None)
        if link in self.replicas and reason is not None:
            logger.info("slave gone peer=%s reason=%s", link.peer, reason)
        self.replicas.left(link)
        self._on_change()

    # Inside.

    def _accept(self) -> asyncio.Protocol:
        return MasterLink(
            self._log,
            self,
            self._limits,
            self._wire(),
            loop=asyncio.get_running_loop(),
            admits=self._admits,
        )

    def _admits(self, link: MasterLink) -> str | None:
        """Why a peer that has connected may not be a slave here; None when it may."""
        self._links[link] = None
        config = self._config()
        if len(self._links) > config.slaves_max:
            self._reached.count("haConnectionsMax")
            return f"there are {config.slaves_max} connections already (haConnectionsMax)"
        return self._refusal(link)

    def _refusal(self, link: MasterLink) -> str | None:
        allowed = self._config().allowed_addresses
        if not allowed:
            return self._admits_host(link.host, link.subject)
        return None if is_allowed(link.host, allowed) else NOT_ALLOWED

    def _limits(self) -> FeedLimits:
        config = self._config()
        return FeedLimits(
            piece_bytes=config.piece_bytes,
            heartbeat_seconds=config.heartbeat_ms / 1000,
            silence_seconds=config.silence_ms / 1000,
            from_last_file=config.from_last_file,
        )

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)
        for link in list(self._links):
            refusal = self._refusal(link)
            if refusal is None:
                link.tick()
            else:
                link.close(refusal)
