"""A blocking connection for tasks: they run in processes of their own and do one thing at a time.

Requests may be sent ahead; replies are taken in the order of the requests or by their number. The body of a reply is
received straight into the memory that it is handed out in, so megabytes are not copied on the way. Whoever is done with
one body before the next asks for a lent one: always the same memory then, which the system need not hand out anew.
"""

from __future__ import annotations

import socket
import ssl
import struct
from types import TracebackType
from typing import Final, Self

import numpy as np

from cometmq.base.errors import CallTimedOut, ConnectFailed, ConnectionLost, RemoteProtocolError
from cometmq.client.config import Credentials
from cometmq.model.address import split_address
from cometmq.protocol import header_binary, header_json
from cometmq.protocol.command import JSON, Command
from cometmq.protocol.frame import FRAME_BYTES_MAX, HEADER_BYTES_MAX, encode
from cometmq.remoting.auth import sign
from cometmq.remoting.tls import TlsConfig

CONNECT_SECONDS_MAX: Final = 5.0
CALL_SECONDS_MAX: Final = 30.0
UNASKED_MAX: Final = 1024
"""Replies to others and requests of the server that a call passes over before it gives up."""

# length of the rest, header word
_PREFIX = struct.Struct(">iI")
_PARTS_PER_CALL: Final = 512
"""Buffers that one system call takes; the least that POSIX promises is 16, Linux takes 1,024."""


class BlockingConnection:
    """To one broker. Use it as a context manager; not thread-safe.

    Raises:
        ConnectFailed: nobody answers at the address.
    """

    def __init__(
        self,
        address: str,
        *,
        tls: TlsConfig | None = None,
        credentials: Credentials | None = None,
        timeout: float = CALL_SECONDS_MAX,
    ) -> None:
        self.address = address
        self._credentials = credentials
        self._opaque = 0
        self._waiting: dict[int, Command] = {}
        self._lent = np.empty(0, dtype=np.uint8)
        host, port = split_address(address)
        context = tls.client_context() if tls is not None else None
        try:
            self._socket = socket.create_connection((host, port), timeout=CONNECT_SECONDS_MAX)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is not None:
                # Closes the plain one itself when the handshake fails.
                self._socket = context.wrap_socket(self._socket, server_hostname=host)
        except OSError as error:
            raise ConnectFailed(f"cannot connect to {address}: {error}") from error
        self._socket.settimeout(timeout)
        self._timeout = timeout

    def call(self, command: Command) -> Command:
        """The reply to a request, whatever its code.

        Raises:
            CallTimedOut, ConnectionLost: as in ``send`` and ``receive``.
        """
        return self.receive(self.send(command))

    def send(self, command: Command) -> int:
        """Send a request, signed if need be. Its number, for ``receive``.

        Raises:
            CallTimedOut: the broker does not take it.
            ConnectionLost: the connection has gone.
        """
        self._opaque = (self._opaque + 1) & 0x7FFFFFFF
        command.opaque = self._opaque
        account = self._credentials
        if account is not None and account.access_key:
            sign(command, account.access_key, account.secret_key, account.security_token or None)
        try:
            parts = encode(command)
            if isinstance(self._socket, ssl.SSLSocket) or len(parts) > _PARTS_PER_CALL:
                self._socket.sendall(b"".join(parts))
            else:
                self._send_parts([memoryview(part) for part in parts])
        except TimeoutError:
            raise CallTimedOut(
                f"{self.address} did not take a request within {self._timeout:g} s", sent=False
            ) from None
        except OSError as error:
            raise ConnectionLost(f"connection to {self.address} was lost: {error}") from error
        return self._opaque

    def receive(self, opaque: int, *, is_body_lent: bool = False) -> Command:
        """The reply to the request of this number; replies to others are kept for those who ask for them.

        Args:
            is_body_lent: the body lies in memory that the next call with this argument overwrites.

        Raises:
            CallTimedOut: no reply in time; the connection is of no use any more.
            ConnectionLost: the broker closed it.
            RemoteProtocolError: what came is no reply.
        """
        if opaque in self._waiting:
            return self._waiting.pop(opaque)
        for _ in range(UNASKED_MAX):
            reply = self._receive_next(opaque if is_body_lent else None)
            if reply.opaque == opaque and reply.is_response:
                return reply
            if reply.is_response:
                self._waiting[reply.opaque] = reply
        raise RemoteProtocolError(f"{self.address} sent {UNASKED_MAX} frames, none the reply")

    def close(self) -> None:
        self._socket.close()
        self._waiting.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<BlockingConnection {self.address}>"

    def _send_parts(self, parts: list[memoryview]) -> None:
        while parts:
            sent = self._socket.sendmsg(parts)
            while parts and sent >= len(parts[0]):
                sent -= len(parts.pop(0))
            if parts and sent:
                parts[0] = parts[0][sent:]

    def _receive_next(self, lent_for: int | None) -> Command:
        """The body is lent only to the reply that is waited for: others lie about for longer."""
        try:
            length, word = _PREFIX.unpack(self._read(_fresh(_PREFIX.size)))
            header_bytes = word & HEADER_BYTES_MAX
            if not 4 + header_bytes <= length <= FRAME_BYTES_MAX:
                raise RemoteProtocolError(
                    f"frame of {length} bytes with a header of {header_bytes} from {self.address}; "
                    f"expected at most {FRAME_BYTES_MAX}"
                )
            header = self._read(_fresh(header_bytes))
            is_json = word >> 24 == JSON
            decode = header_json.decode_header if is_json else header_binary.decode_header
            reply = decode(header, b"")
            body_bytes = length - 4 - header_bytes
            is_lent = reply.opaque == lent_for and reply.is_response
            reply.body = self._read(self._lend(body_bytes) if is_lent else _fresh(body_bytes))
        except TimeoutError:
            raise CallTimedOut(
                f"{self.address} did not answer within {self._timeout:g} s", sent=True
            ) from None
        except OSError as error:
            raise ConnectionLost(f"connection to {self.address} was lost: {error}") from error
        return reply

    def _lend(self, size_bytes: int) -> memoryview:
        if size_bytes > len(self._lent):
            self._lent = np.empty(size_bytes, dtype=np.uint8)
        return self._lent.data[:size_bytes]

    def _read(self, view: memoryview) -> memoryview:
        at = 0
        while at < len(view):
            count = self._socket.recv_into(view[at:])
            if not count:
                raise ConnectionLost(f"{self.address} closed the connection")
            at += count
        return view


def _fresh(size_bytes: int) -> memoryview:
    # Not cleared beforehand, as a bytearray would be: for megabytes that is felt.
    return np.empty(size_bytes, dtype=np.uint8).data
