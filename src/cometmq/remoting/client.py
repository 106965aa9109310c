"""Connections by address: opened when first needed, shared by all callers, opened again after a loss."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import ssl
from collections.abc import Callable, Collection

from cometmq.base.errors import CallTimedOut, ConnectFailed
from cometmq.model.address import split_address
from cometmq.protocol.command import Command
from cometmq.remoting.connection import HELD_CLOSED, Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.remoting.endpoint import Endpoint, OnClose
from cometmq.remoting.remoting_config import RemotingClientConfig
from cometmq.remoting.tls import TlsConfig

logger = logging.getLogger("cometmq.remoting")

_SHUTDOWN_SECONDS = 1.0
_ERRNO = re.compile(r"\[Errno (\d+)\]")

Sign = Callable[[Command], None]
"""Adds what tells the server whom a request comes from."""

OnOpen = Callable[[str], None]
"""Hears the address, as it was given, of each connection that was opened."""


class RemotingClient:
    """Makes calls to any number of servers. Requests that servers send go to ``dispatcher``."""

    def __init__(
        self,
        dispatcher: Dispatcher | None = None,
        *,
        config: RemotingClientConfig | None = None,
        tls: TlsConfig | None = None,
        on_open: OnOpen | None = None,
        on_close: OnClose | None = None,
        sign: Sign | None = None,
    ) -> None:
        """Raises ConfigError when the TLS settings cannot be used."""
        self._sign = sign
        self._config = config or RemotingClientConfig()
        self._ssl = tls.live_client_context() if tls is not None else None
        self._on_open = on_open
        self._on_close = on_close
        self._endpoint = Endpoint(dispatcher or Dispatcher(), self._config.limits, self._lost)
        self._by_address: dict[str, Connection] = {}
        self._opening: dict[str, asyncio.Task[Connection]] = {}

    @property
    def connections(self) -> Collection[Connection]:
        return self._endpoint.connections

    async def connection(self, address: str) -> Connection:
        """The open connection to ``host:port``, opened now if there is none.

        Raises:
            ConnectFailed: nobody answers there.
            UsageError: the address is none.
        """
        connection = self._by_address.get(address)
        if connection is not None and not connection.is_closed:
            return connection
        opening = self._opening.get(address)
        if opening is None:
            if self._endpoint.is_stopping:
                raise ConnectFailed(f"cannot connect to {address}: this client is closed")
            opening = asyncio.get_running_loop().create_task(self._open(address))
            self._opening[address] = opening
            opening.add_done_callback(lambda task: self._opened(address, task))
        # Several callers wait for one attempt; one of them giving up must not end it for the others.
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            if self._endpoint.is_stopping and opening.cancelled():
                raise ConnectFailed(f"cannot connect to {address}: this client is closed") from None
            raise

    def ready(self, address: str) -> Connection | None:
        """The connection to ``host:port`` if it is open and takes what is sent; for callers that must not wait."""
        connection = self._by_address.get(address)
        if (
            connection is None
            or connection.held & HELD_CLOSED
            or connection.congested_at is not None
        ):
            return None
        return connection

    async def call(
        self, address: str, command: Command, timeout: float = 3.0, *, as_is: bool = False
    ) -> Command:
        """Send a request and return its reply, whatever code that has. ``timeout`` includes connecting.

        Args:
            as_is: do not sign it; it is somebody else's.

        Raises:
            ConnectFailed, CallTimedOut, ConnectionLost, TooManyInFlight: see ``Connection.call``.
        """
        if not as_is:
            self.sign(command)
        connection = self._by_address.get(address)
        if connection is None or connection.is_closed:
            loop = asyncio.get_running_loop()
            deadline = loop.time() + timeout
            try:
                async with asyncio.timeout_at(deadline):
                    connection = await self.connection(address)
            except TimeoutError:
                raise CallTimedOut(
                    f"no connection to {address} within {timeout:g} s", sent=False
                ) from None
            timeout = deadline - loop.time()
        return await connection.call(command, timeout)

    async def oneway(self, address: str, command: Command, *, as_is: bool = False) -> None:
        """Send a request that nobody answers; waits while the server does not take what was sent before.

        Args:
            as_is: do not sign it; it is somebody else's.

        Raises:
            ConnectFailed, CallTimedOut, ConnectionLost: it was certainly not sent.
        """
        if not as_is:
            self.sign(command)
        connection = await self.connection(address)
        if connection.is_congested:
            await connection.drained(self._config.connect_millis_max / 1000)
        connection.oneway(command)

    def sign(self, command: Command) -> None:
        """For those who call on a connection themselves; ``call`` and ``oneway`` do it."""
        if self._sign is not None:
            self._sign(command)

    async def close(self) -> None:
        """Close all connections; calls under way end with ConnectionLost."""
        self._endpoint.is_stopping = True
        for task in list(self._opening.values()):
            task.cancel()
        if self._opening:
            await asyncio.wait(self._opening.values(), timeout=_SHUTDOWN_SECONDS)
        await self._endpoint.stop(grace=_SHUTDOWN_SECONDS)

    def __repr__(self) -> str:
        return f"<RemotingClient connections={len(self.connections)} opening={len(self._opening)}>"

    async def _open(self, address: str) -> Connection:
        host, port = split_address(address)
        config = self._config
        timeout = config.connect_millis_max / 1000
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout):
                if self._ssl is None:
                    transport, connection = await loop.create_connection(
                        self._new_connection, host, port
                    )
                else:
                    transport, connection = await loop.create_connection(
                        self._new_connection,
                        host,
                        port,
                        ssl=self._ssl,
                        ssl_handshake_timeout=timeout,
                        ssl_shutdown_timeout=_SHUTDOWN_SECONDS,
                    )
        except TimeoutError:
            raise ConnectFailed(
                f"cannot connect to {address}: no answer in {timeout:g} s"
            ) from None
        except ssl.SSLError as error:
            raise ConnectFailed(f"cannot connect to {address} with TLS: {error.reason}") from error
        except OSError as error:
            raise ConnectFailed(f"cannot connect to {address}: {system_reason(error)}") from error
        self._set_buffers(transport.get_extra_info("socket"))
        return connection

    def _opened(self, address: str, task: asyncio.Task[Connection]) -> None:
        del self._opening[address]
        if task.cancelled() or task.exception() is not None:
            return
        self._by_address[address] = task.result()
        if self._on_open is not None:
            self._on_open(address)

    def _lost(self, connection: Connection) -> None:
        for address in [key for key, value in self._by_address.items() if value is connection]:
            del self._by_address[address]
        if self._on_close is not None:
            self._on_close(connection)

    def _new_connection(self) -> Connection:
        return Connection(self._endpoint, is_accepted=False)

    def _set_buffers(self, sock: socket.socket | None) -> None:
        if sock is None:
            return
        if self._config.send_buffer_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._config.send_buffer_bytes)
        if self._config.receive_buffer_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._config.receive_buffer_bytes)


def system_reason(error: OSError) -> str:
    """Why a connection failed, in the words of the system, whichever event loop says it.

    asyncio's own puts the address there instead, ``Connect call failed ('::1', 1, 0, 0)``, and of a name with several
    addresses a list of such texts.
    """
    if isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    numbers = [error.errno] if error.errno else map(int, _ERRNO.findall(str(error)))
    return ", ".join(dict.fromkeys(map(os.strerror, numbers))) or str(error)
