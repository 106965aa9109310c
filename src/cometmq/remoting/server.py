"""Listens, accepts, tells TLS from plain text, and bounds the number of peers."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Collection
from typing import Final

from cometmq.remoting.bounds.crowd import Crowd, caller_of
from cometmq.remoting.certificates.handshakes import SHUTDOWN_SECONDS, Handshakes, peer_text
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.remoting.endpoint import Endpoint, OnClose
from cometmq.remoting.listener import FirstByte, Listener, bind
from cometmq.remoting.remoting_config import RemotingServerConfig
from cometmq.remoting.tls import TlsConfig

logger = logging.getLogger("cometmq.remoting")

_TLS_HANDSHAKE: Final = b"\x16"
_REFUSAL_LOG_SECONDS: Final = 10.0


class RemotingServer:
    """One listening port. ``start`` it once, ``stop`` it once."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        *,
        config: RemotingServerConfig | None = None,
        tls: TlsConfig | None = None,
        on_close: OnClose | None = None,
        descriptors_below: int | None = None,
    ) -> None:
        """
        Args:
            descriptors_below: a connection that gets a descriptor of this number or above is refused; see
                ``base.descriptors``.
            on_close: called once for every connection that has gone, whoever closed it.

        Raises:
            ConfigError: the TLS settings cannot be used.
        """
        self._config = config or RemotingServerConfig()
        self._ssl = tls.live_server_context() if tls is not None else None
        self._is_plain_allowed = self._ssl is None or (tls is not None and tls.is_plain_allowed)
        self._reached = dispatcher.reached
        self._endpoint = Endpoint(dispatcher, self._config.limits, on_close)
        self._descriptors_below = descriptors_below
        self._listener: Listener | None = None
        self._first_bytes: FirstByte | None = None
        self._crowd = Crowd()
        self._opening: set[asyncio.Task[None]] = set()
        """Those that speak plain text."""
        self._handshakes: Handshakes | None = None
        if self._ssl is not None:
            self._handshakes = Handshakes(self._ssl, self._config, self._reached)
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._refused = 0
        self._refusal_logged_at = float("-inf")

    @property
    def connections(self) -> Collection[Connection]:
        """The open connections; changes while the loop runs."""
        return self._endpoint.connections

    @property
    def port(self) -> int:
        """The bound port. Only between ``start`` and ``stop``."""
        assert self._listener is not None, "the server does not listen"
        return self._listener.port

    async def start(self, host: str, port: int) -> int:
        """Listen on ``host`` ("" for every address) and ``port`` (0 for any free one); the bound port.

        Raises:
            RemotingError: the address cannot be had.
        """
        assert self._listener is None, "the server listens already"
        sockets = await bind(
            host,
            port,
            backlog=self._config.backlog,
            send_buffer_bytes=self._config.send_buffer_bytes,
            receive_buffer_bytes=self._config.receive_buffer_bytes,
        )
        self._first_bytes = FirstByte(self._first_byte_arrived)
        self._listener = Listener(sockets, self._accepted)
        self._schedule_sweep()
        return self._listener.port

    def quiesce(self) -> None:
        """Accept no more connections and take no more requests; replies still go out."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        if self._first_bytes is not None:
            self._first_bytes.close()
        self._endpoint.quiesce()

    async def stop(self, grace: float = 3.0) -> None:
        """Quiesce, let background requests end within ``grace`` seconds, then close all connections."""
        self.quiesce()
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
            self._sweep_timer = None
        for task in self._opening:
            task.cancel()
        if self._opening:
            await asyncio.wait(self._opening, timeout=SHUTDOWN_SECONDS)
        if self._handshakes is not None:
            await self._handshakes.stop()
        await self._endpoint.stop(grace)

    def __repr__(self) -> str:
        state = "stopped" if self._listener is None else f"port={self._listener.port}"
        return f"<RemotingServer {state} connections={len(self.connections)}>"

    def _accepted(self, sock: socket.socket, host: str) -> None:
        assert self._first_bytes is not None
        config = self._config
        caller = caller_of(host)
        peers = len(self._endpoint.connections) + len(self._first_bytes) + len(self._opening)
        if self._handshakes is not None:
            peers += len(self._handshakes)
        if peers >= config.connections_max:
            sock.close()
            self._reached.count("serverConnectionsMax")
            self._log_refusal(
                f"{config.connections_max} are open, the limit (serverConnectionsMax)"
            )
        elif self._crowd.count(caller) >= config.connections_per_address_max:
            sock.close()
            self._reached.count("serverConnectionsPerAddressMax")
            self._log_refusal(
                f"{config.connections_per_address_max} are open from {caller}, the limit for one address"
                " (serverConnectionsPerAddressMax)"
            )
        elif self._descriptors_below is not None and sock.fileno() >= self._descriptors_below:
            sock.close()
            self._reached.count("descriptors")
            self._log_refusal(
                f"{self._descriptors_below} file descriptors are in use, and the rest is for the store: "
                "raise the limit of the process (ulimit -n, LimitNOFILE)"
            )
        else:
            self._first_bytes.watch(self._crowd.admit(sock, caller))

    def _first_byte_arrived(self, sock: socket.socket, first: bytes) -> None:
        # No plain frame starts with this byte: it would be longer than 352 MiB.
        is_tls = first == _TLS_HANDSHAKE
        if not is_tls and not self._is_plain_allowed:
            self._refuse(sock, "plain text, but tls.server.mode=enforcing")
        elif not is_tls:
            task = asyncio.get_running_loop().create_task(self._make_connection(sock))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)
        elif self._handshakes is None:
            self._refuse(sock, "TLS, but no tls.server.certPath is set or tls.server.mode=disabled")
        else:
            self._handshakes.begin(sock, self._new_connection)

    def _refuse(self, sock: socket.socket, reason: str) -> None:
        logger.warning("connection refused peer=%s reason=%s", peer_text(sock), reason)
        sock.close()

    async def _make_connection(self, sock: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(self._new_connection, sock)
        except OSError:
            sock.close()

    def _new_connection(self) -> Connection:
        return Connection(self._endpoint, is_accepted=True)

    def _log_refusal(self, reason: str) -> None:
        """One line at once, then one every few seconds: a flood of peers must not become a flood of lines."""
        self._refused += 1
        now = asyncio.get_running_loop().time()
        if now - self._refusal_logged_at >= _REFUSAL_LOG_SECONDS:
            logger.warning("connections refused count=%d reason=%s", self._refused, reason)
            self._refusal_logged_at = now
            self._refused = 0

    def _schedule_sweep(self) -> None:
        """For sockets that never sent a byte, and for certificates; connections are swept by their endpoint."""
        idle_seconds_max = self._config.idle_seconds_max
        self._reached.tell(asyncio.get_running_loop().time())
        assert self._first_bytes is not None
        self._first_bytes.close_older_than(idle_seconds_max)
        if self._ssl is not None:
            # Handshakes do it, too. Whoever has just replaced a certificate wants to know whether it is good.
            self._ssl.refresh()
        self._sweep_timer = asyncio.get_running_loop().call_later(
            min(idle_seconds_max / 10, 5.0), self._schedule_sweep
        )
