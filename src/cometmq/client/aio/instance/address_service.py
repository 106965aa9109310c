"""Asks the HTTP address service for the name servers: ``GET /rocketmq/nsaddr`` -> ``10.0.0.1:9876;10.0.0.2:9876``."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from http.client import HTTPConnection, HTTPException
from typing import Final

from cometmq.client.core.name_server_choice import SERVICE_PORT, parse_service_answer
from cometmq.client.errors import AddressServiceFailed
from cometmq.model.address import split_address

ANSWER_BYTES_MAX: Final = 64 * 1024


async def fetch_name_servers(service: str, path: str, timeout: float) -> list[str]:
    """The addresses returned by the service at ``host[:port]``.

    Raises:
        AddressServiceFailed: no answer within ``timeout`` seconds, or one that is not a list of addresses.
    """
    where = f"http://{service}{path}"
    try:
        host, port = split_address(service if ":" in service else f"{service}:{SERVICE_PORT}")
        request = _Get(host, port, path, timeout)
        async with asyncio.timeout(timeout):
            try:
                text = await asyncio.to_thread(request.run)
            finally:
                request.hang_up()
        return parse_service_answer(text)
    except TimeoutError:
        raise AddressServiceFailed(f"{where} did not answer within {timeout:g} s") from None
    except (OSError, HTTPException, ValueError) as error:
        raise AddressServiceFailed(f"{where}: {error}") from error


class _Get:
    """One request, run in a thread. ``hang_up`` ends it from outside, because its own timeout is per read."""

    def __init__(self, host: str, port: int, path: str, timeout: float) -> None:
        self._connection = HTTPConnection(host, port, timeout=timeout)
        self._path = path
        self._socket: socket.socket | None = None

    def run(self) -> str:
        with contextlib.closing(self._connection):
            self._connection.connect()
            self._socket = self._connection.sock
            self._connection.request("GET", self._path, headers={"Accept": "text/plain"})
            with self._connection.getresponse() as answer:
                if answer.status != 200:
                    raise HTTPException(f"status {answer.status} where 200 was expected")
                content = answer.read(ANSWER_BYTES_MAX + 1)
        if len(content) > ANSWER_BYTES_MAX:
            raise HTTPException(f"an answer of more than {ANSWER_BYTES_MAX} bytes")
        return content.decode()

    def hang_up(self) -> None:
        if self._socket is not None:
            # Already closed if all went well.
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
